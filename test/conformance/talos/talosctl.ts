// Runs talosctl, and counts how often: the last lines of a run say how many invocations went as documented.
import { execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { realPart } from '../../real/parts.ts'
import { SIMULATED } from './answers.ts'

const part = await realPart('talosctl')
export const hasTalosctl = 'path' in part
const program = 'path' in part ? part.path : ''

export type Ran = { readonly code: number; readonly out: string; readonly err: string }

let asked = 0

/** To be called once in a file: each test tells of the invocations that it made, which count as good if it passes. */
export function countInvocations(): void {
  beforeEach(() => {
    asked = 0
  })
  afterEach(({ task }) => {
    if (asked > 0) task.meta.answer = { of: SIMULATED, agrees: task.result?.state !== 'fail', count: asked }
  })
}

/** @param home The folder it runs in, with the talosconfig `admin`. */
const settings = (home: string, env: Readonly<Record<string, string>> = {}) => ({
  cwd: home,
  env: { ...process.env, HOME: home, TALOSCONFIG: join(home, 'admin'), ...env },
})

/** Runs a command to its end. */
export function talosctl(home: string, args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ran> {
  asked++
  return new Promise(resolve => {
    const options = { ...settings(home, env), timeout: 90_000, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 } as const
    execFile(program, args, options, (error, out, err) => resolve({ code: error ? Number(error.code ?? -1) : 0, out, err }))
  })
}

export type Watching = {
  /** What came so far. */
  readonly seen: () => string
  readonly stop: () => Promise<void>
}

/** A command that goes on until it is stopped. */
export function talosctlOn(home: string, args: readonly string[]): Watching {
  asked++
  const child = spawn(program, args, { ...settings(home), stdio: ['ignore', 'pipe', 'inherit'] })
  let seen = ''
  child.stdout.on('data', (chunk: Buffer) => (seen += chunk.toString()))
  const gone = new Promise<void>(resolve => child.once('close', () => resolve()))
  return {
    seen: () => seen,
    stop: async () => {
      child.kill('SIGINT')
      await gone
    },
  }
}
