// How long `npm run demo` takes until one sees something, in a clone of what is committed.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from './format.ts'

export type FirstPicture = {
  /** Milliseconds from the command to the first line about the upgrade that runs. */
  readonly onNothingMs: number
  readonly installedMs: number
}

const root = join(import.meta.dirname, '..')
/** The first word about the progress of the upgrade. Not the lines before it, which only tell what is being started. */
const PICTURE = /^\d\d:\d\d:\d\d (Pending|Running|Waiting|cp-)/m

export const firstPicture = async (options: { readonly runs: number }): Promise<FirstPicture> => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-bench-'))
  try {
    const clone = join(folder, 'clone')
    execFileSync('git', ['clone', '--quiet', '--no-hardlinks', root, clone])
    // A machine that has nothing has no cache either.
    const env = { ...process.env, npm_config_cache: join(folder, 'npm-cache'), NO_COLOR: '1' }
    const onNothingMs = await untilPicture(clone, env)
    const installed: number[] = []
    for (let i = 0; i < options.runs; i++) installed.push(await untilPicture(clone, env))
    return { onNothingMs, installedMs: median(installed) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const untilPicture = async (cwd: string, env: NodeJS.ProcessEnv): Promise<number> => {
  const began = performance.now()
  const demo = spawn('npm', ['run', 'demo', '--silent', '--', '--once'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const closed = once(demo, 'close')
  let said = ''
  try {
    return await new Promise<number>((resolve, reject) => {
      const hear = (chunk: Buffer): void => {
        said += chunk.toString()
        if (PICTURE.test(said)) resolve(performance.now() - began)
      }
      demo.stdout.on('data', hear)
      demo.stderr.on('data', hear)
      demo.once('error', reject)
      demo.once('close', () => reject(new Error(`the demo ended without a picture:\n${said}`)))
    })
  } finally {
    if (demo.pid && demo.exitCode === null) process.kill(-demo.pid, 'SIGTERM')
    await closed
  }
}
