import { readFileSync } from 'node:fs'

const LOOK_EVERY_MS = 1_000
/** npm, its shell, and the script that found a newer Node. */
const MOST = 4

/**
 * Calls back when the process that started us is gone, or one of those between us and npm: a kill -9 of any of them must end the demo, and none of
 * them can hand it on. The answer stops it.
 */
export const whenOrphaned = (run: () => void): (() => void) => {
  const chain = parents()
  const timer = setInterval(() => {
    if (parents(chain.length).join() === chain.join()) return
    clearInterval(timer)
    run()
  }, LOOK_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

const parents = (length = process.env['npm_lifecycle_event'] ? MOST : 1): readonly number[] => {
  const chain = [process.ppid]
  while (chain.length < length && !isNpm(chain.at(-1)!)) {
    const next = parentOf(chain.at(-1)!)
    if (next === undefined) break
    chain.push(next)
  }
  return chain
}

// Only Linux tells; elsewhere the nearest has to do.
const parentOf = (pid: number): number | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}

const isNpm = (pid: number): boolean => {
  try {
    return /^npm|\/npm(-cli\.js)?\0/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  } catch {
    return false
  }
}
