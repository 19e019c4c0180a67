// The same etcd snapshot through our client and through talosctl, in turns. Once from a simulated machine, and once from a peer that costs nothing:
// the first is slow itself, so only the second sees the difference between the two.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { startChild, type Child } from '../src/app/child.ts'
import { realPart } from '../test/real/parts.ts'
import { median } from './format.ts'

export type Downloads = { readonly ourMs: number; readonly talosctlMs: number; readonly ourPeakRssKb: number }
export type SnapshotDownload = { readonly mebibytes: number; readonly fromSimulated: Downloads; readonly fromPeer: Downloads }

const root = join(import.meta.dirname, '..')
const run = promisify(execFile)
const START_MS = 60_000

/** Where talosctl cannot be had: why. */
export const snapshotDownload = async (mebibytes: number, runs: number): Promise<SnapshotDownload | { readonly missing: string }> => {
  const talosctl = await realPart('talosctl')
  if ('missing' in talosctl) return talosctl
  const folder = mkdtempSync(join(tmpdir(), 'ichor-bench-'))
  const removeClient = await buildClient()
  const started: Child[] = []
  const start = async (name: string, args: readonly string[], ready: RegExp): Promise<RegExpExecArray> => {
    const logPath = join(folder, `${name}.log`)
    const child = await startChild({ command: process.execPath, args: ['--disable-warning=ExperimentalWarning', ...args], logPath })
    started.push(child)
    return said(child, logPath, ready)
  }
  try {
    const peerConfig = join(folder, 'talosconfig')
    const [peer = ''] = await start(
      'peer',
      [join(import.meta.dirname, 'snapshot-peer.ts'), String(mebibytes), peerConfig],
      /^127\.0\.0\.1:\d+$/m,
    )
    const fromPeer = await measured(talosctl.path, folder, { talosconfig: peerConfig, address: peer, node: '127.0.0.1', mebibytes, runs })
    await started.pop()?.kill()

    const sim = ['sim', 'talos', '--machines', '1+0', '--etcd-size', String(mebibytes), '--quiet']
    const [, address = '', talosconfig = ''] = await start(
      'sim',
      [join(root, 'src', 'app', 'cli', 'entry.ts'), ...sim],
      /^ {2}(127\.\S+) +cp-1[^]*export TALOSCONFIG=(\S+)[^]*Ctrl-C ends/m,
    )
    const fromSimulated = await measured(talosctl.path, folder, { talosconfig, address, node: address, mebibytes, runs: 3 })
    return { mebibytes, fromSimulated, fromPeer }
  } finally {
    for (const child of started) await child.kill('SIGINT')
    removeClient()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** As it ships: in one file, with nothing in memory that only development needs. Where it finds its packages. */
const CLIENT = join(root, '.cache', 'bench', 'download-snapshot.mjs')
const buildClient = async (): Promise<() => void> => {
  await build({
    entryPoints: [join(import.meta.dirname, 'download-snapshot.ts')],
    ...{ bundle: true, platform: 'node', target: 'node24', format: 'esm', packages: 'external', outfile: CLIENT, logLevel: 'warning' },
  })
  return () => rmSync(CLIENT, { force: true })
}

const said = async (child: Child, logPath: string, pattern: RegExp): Promise<RegExpExecArray> => {
  for (const end = Date.now() + START_MS; ;) {
    const found = pattern.exec(readFileSync(logPath, 'utf8'))
    if (found) return found
    if (child.hasExited() || Date.now() > end) throw new Error(`it did not start:\n${child.lastWords()}`)
    await pause(50)
  }
}

type From = {
  readonly talosconfig: string
  readonly address: string
  readonly node: string
  readonly mebibytes: number
  readonly runs: number
}

const measured = async (talosctl: string, folder: string, { talosconfig, address, node, mebibytes, runs }: From): Promise<Downloads> => {
  const path = join(folder, 'db.snapshot')
  const timed = async (command: string, args: readonly string[]): Promise<{ readonly ms: number; readonly stdout: string }> => {
    rmSync(path, { force: true })
    const began = performance.now()
    const { stdout } = await run(command, args, { env: { PATH: process.env['PATH'], HOME: folder } })
    const ms = performance.now() - began
    if (statSync(path).size !== mebibytes * 1024 ** 2 + 32) throw new Error(`${command} left ${statSync(path).size} bytes`)
    return { ms, stdout }
  }
  const times: { readonly ours: number[]; readonly theirs: number[] } = { ours: [], theirs: [] }
  let ourPeakRssKb = 0
  for (let i = 0; i < runs; i++) {
    const ours = await timed(process.execPath, [CLIENT, talosconfig, address, path])
    times.ours.push(ours.ms)
    ourPeakRssKb = Math.max(ourPeakRssKb, (JSON.parse(ours.stdout) as { peakRssKb: number }).peakRssKb)
    times.theirs.push((await timed(talosctl, ['--talosconfig', talosconfig, '-n', node, 'etcd', 'snapshot', path])).ms)
  }
  rmSync(path, { force: true })
  return { ourMs: median(times.ours), talosctlMs: median(times.theirs), ourPeakRssKb }
}
