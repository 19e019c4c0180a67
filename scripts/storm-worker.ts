// A thread of `npm run storm`: plays the seeds that it is given.
import { parentPort, workerData } from 'node:worker_threads'
import type { Wish } from '../src/storm/draw.ts'
import type { Verdict } from '../src/storm/judge.ts'
import { startCoverage } from './storm-coverage.ts'

export interface StormTask {
  wishes: Wish[]
  isLast: boolean
}
export interface StormAnswer {
  verdicts: Verdict[]
  isLast: boolean
  cpuMs: number
  /** Branches that were reached, where that is asked. */
  covered?: string[]
}

const { sabotage, coverage } = workerData as { sabotage?: string; coverage: boolean }
const port = parentPort
if (!port) throw new Error('this is a thread of scripts/storm.ts')
// Before anything is loaded that is counted: much runs once, while it loads.
const stopCoverage = coverage ? await startCoverage() : undefined
const { loadStorm, sabotageOf } = await import('../test/storm/sabotage.ts')
const storm = await loadStorm(sabotage === undefined ? undefined : sabotageOf(sabotage))

const work = async ({ wishes, isLast }: StormTask): Promise<void> => {
  const before = process.threadCpuUsage()
  const verdicts: Verdict[] = []
  for (const wish of wishes) {
    const { text: _, ...verdict } = await storm.judge(storm.drawPlan(wish))
    verdicts.push(verdict)
  }
  const used = process.threadCpuUsage(before)
  const covered = isLast && stopCoverage ? await stopCoverage() : undefined
  port.postMessage({ verdicts, isLast, cpuMs: (used.user + used.system) / 1000, ...(covered ? { covered } : {}) } satisfies StormAnswer)
  if (isLast) port.close()
}
port.on('message', (task: StormTask) => void work(task))
