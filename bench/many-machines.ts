// Many machines at rest: what one process costs that simulates them, and what the controller costs that watches them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { connectionsOf, loadOf, memoryOf } from './process-facts.ts'
import type { Shipped } from './shipped.ts'

export type ManyMachines = {
  readonly controlPlanes: number
  readonly workers: number
  readonly machines: {
    /** From the start of the process until all answer. */
    readonly startMs: number
    readonly rssKb: number
    /** Of one core. */
    readonly load: number
  }
  readonly controller: {
    /** From its start until it has found all machines. */
    readonly startMs: number
    readonly rssKb: number
    readonly load: number
    /** Open connections to machines. */
    readonly connections: number
  }
}

const TALOS_PORT = 50_000
/** So that what a start leaves behind is gone. */
const SETTLE_MS = 20_000
/** Two looks of discovery. */
const WATCHED_MS = 60_000

export const manyMachines = async ({ controller }: Shipped, controlPlanes: number, workers: number): Promise<ManyMachines> => {
  const began = performance.now()
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, 'many-machines-child.ts'),
      ...[String(controlPlanes), String(workers), controller],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const closed = once(child, 'close')
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const line = async (): Promise<string> => {
    const { done, value } = await lines.next()
    if (done) throw new Error('the process with the machines ended')
    return value
  }
  try {
    const pid = child.pid ?? 0
    await line()
    const startMs = performance.now() - began
    await pause(SETTLE_MS)
    const machines = { startMs, load: await loadOf(pid, WATCHED_MS), rssKb: memoryOf(pid, 'VmRSS') }

    const asked = performance.now()
    child.stdin.write('controller\n')
    const controllerPid = Number(await line())
    const foundMs = performance.now() - asked
    await pause(SETTLE_MS)
    const load = await loadOf(controllerPid, WATCHED_MS)
    return {
      ...{ controlPlanes, workers, machines },
      controller: {
        ...{ startMs: foundMs, load },
        rssKb: memoryOf(controllerPid, 'VmRSS'),
        connections: connectionsOf(controllerPid, TALOS_PORT),
      },
    }
  } finally {
    child.kill('SIGTERM')
    await closed
  }
}
