// What counted-controller.mjs tells of itself when it is asked.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Process } from '../test/cluster-on-the-wire.ts'

export type Counts = { readonly kubernetes: Readonly<Record<string, number>>; readonly talos: Readonly<Record<string, number>> }

/** What it has asked of others so far. `path` is its $BENCH_COUNTS. */
export const countsOf = async (process: Process, path: string): Promise<Counts> => (await ask(process, 'SIGUSR2', path)) as Counts

/** Kilobytes that it holds and needs: what is left after a collection, in V8's heap and beside it. What it occupies is more. */
export const retainedKbOf = async (process: Process, path: string): Promise<number> =>
  ((await ask(process, 'SIGHUP', path)) as { readonly retainedKb: number }).retainedKb

const WITHIN_MS = 60_000

const ask = async ({ pid }: Process, signal: NodeJS.Signals, path: string): Promise<unknown> => {
  rmSync(path, { force: true })
  process.kill(pid, signal)
  const end = performance.now() + WITHIN_MS
  while (!existsSync(path)) {
    if (performance.now() > end) throw new Error(`the controller does not answer ${signal}`)
    await pause(20)
  }
  return JSON.parse(readFileSync(path, 'utf8'))
}
