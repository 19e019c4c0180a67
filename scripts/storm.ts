// `npm run storm -- --seeds N --from S --kind K --faults F [--minutes M]`: plays drawn runs on all cores and ends with one line of counts; the exit
// code is 1 when something was violated. A seed that fails tells its story, is made smaller, and is kept as a plan in .cache/storm/.
// `--seed S --replay` tells the story of one seed, `--plan FILE --replay` that of a plan. `--sabotage NAME` plays with one line of the source spoiled
// (test/storm/sabotages.ts). `--coverage` tells which branches of core, kinds and engine no seed reached. `--deaths` lets the controller die once at each
// call that changes something, of every kind.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { FAMILIES, type Family, type Plan } from '../src/storm/plan.ts'
import { tellPlan } from '../src/storm/tell.ts'
import { stormKinds } from '../src/storm/operations.ts'
import type { Verdict } from '../src/storm/judge.ts'
import { loadStorm, sabotageOf } from '../test/storm/sabotage.ts'
import { cases, dieAtEachCall } from '../test/storm/deaths.ts'
import { coverageReport } from './storm-coverage.ts'
import type { StormAnswer, StormTask } from './storm-worker.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    kind: { type: 'string', default: 'all' },
    faults: { type: 'string' },
    minutes: { type: 'string' },
    machines: { type: 'string' },
    workers: { type: 'string' },
    plan: { type: 'string' },
    sabotage: { type: 'string' },
    replay: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    deaths: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})

const refuse = (what: string): never => {
  console.error(what)
  process.exit(2)
}
const number = (name: string, text: string): number => {
  const value = Number(text)
  return Number.isSafeInteger(value) && value >= 0 ? value : refuse(`--${name} must be a number, and is ${text}`)
}
const families = values.faults?.split(',').map(name => {
  const found = FAMILIES.find(f => f === name)
  return found ?? refuse(`--faults knows no ${name} (it knows: ${FAMILIES.join(', ')})`)
})
if (values.kind !== 'all' && !stormKinds.includes(values.kind))
  refuse(`--kind knows no ${values.kind} (it knows: all, ${stormKinds.join(', ')})`)
const [controlPlanes, machineWorkers] = values.machines?.split('+').map(n => number('machines', n)) ?? []
const sabotage =
  values.sabotage === undefined ? undefined : (sabotageOf(values.sabotage) ?? refuse(`there is no sabotage ${values.sabotage}`))

const wishOf = (seed: number) => ({
  seed,
  kind: values.kind === 'all' ? stormKinds[seed % stormKinds.length]! : values.kind,
  ...(families ? { families: families as Family[] } : {}),
  ...(controlPlanes === undefined ? {} : { controlPlanes }),
  ...(machineWorkers === undefined ? {} : { workers: machineWorkers }),
})
const storm = await loadStorm(sabotage)

if (values.deaths) {
  let [all, wrongs] = [0, 0]
  for (const [name, told] of Object.entries(cases)) {
    const { calls, deaths, wrong } = await dieAtEachCall(told)
    console.log([`${name}: ${calls} calls, ${deaths} deaths`, ...wrong].join('\n'))
    all += deaths
    wrongs += wrong.length
  }
  console.log(`${all} deaths, ${wrongs} violations`)
  process.exit(wrongs > 0 ? 1 : 0)
}

if (values.replay) {
  const seed = number('seed', values.seed ?? values.from)
  const plan = values.plan ? (JSON.parse(readFileSync(values.plan, 'utf8')) as Plan) : storm.drawPlan(wishOf(seed))
  const { text, violations } = await storm.replay(plan)
  console.log(text)
  console.log(`${violations.length} violations`)
  process.exit(violations.length > 0 ? 1 : 0)
}

const first = number('from', values.seed ?? values.from)
const deadline = values.minutes === undefined ? Infinity : performance.now() + Number(values.minutes) * 60_000
const last =
  values.seed !== undefined
    ? first + 1
    : values.minutes !== undefined && values.seeds === '100'
      ? Infinity
      : first + number('seeds', values.seeds)
const count = values.seed !== undefined ? 1 : number('workers', values.workers ?? String(availableParallelism()))

const failed: Verdict[] = []
const ends = new Map<string, number>()
const covered = new Set<string>()
let next = first
let played = 0
let calls = 0
let virtualMs = 0
let cpuMs = 0
const began = performance.now()

const hear = (answer: StormAnswer): void => {
  for (const branch of answer.covered ?? []) covered.add(branch)
  cpuMs += answer.cpuMs
  for (const verdict of answer.verdicts) {
    played++
    calls += verdict.calls
    virtualMs += verdict.virtualMs
    for (const end of verdict.ends) ends.set(end, (ends.get(end) ?? 0) + 1)
    if (verdict.violations.length > 0) failed.push(verdict)
  }
}

/** One thread: asks for the next seeds until there are none. */
const work = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./storm-worker.ts', import.meta.url), {
      workerData: { sabotage: values.sabotage, coverage: values.coverage },
    })
    const give = (): void => {
      const isOver = next >= last || performance.now() >= deadline || (sabotage !== undefined && failed.length > 0)
      const wishes = []
      while (!isOver && wishes.length < 4 && next < last) wishes.push(wishOf(next++))
      worker.postMessage({ wishes, isLast: wishes.length === 0 } satisfies StormTask)
    }
    worker.on('message', (answer: StormAnswer) => {
      hear(answer)
      if (!answer.isLast) give()
    })
    worker.on('error', reject)
    worker.on('exit', () => resolve())
    give()
  })
await Promise.all(Array.from({ length: count }, work))

for (const verdict of failed.toSorted((a, b) => a.seed - b.seed).slice(0, 10)) {
  const wish = wishOf(verdict.seed)
  const [violation] = verdict.violations
  console.log(`\nseed ${verdict.seed}, kind ${wish.kind}: ${violation?.checker}: ${violation?.what}`)
  if (sabotage) continue
  const plan = await storm.shrink(wish, violation?.checker ?? '')
  const { text } = await storm.judge(plan)
  console.log(`\nThe smallest that shows it:\n${text}`)
  const folder = join(import.meta.dirname, '..', '.cache', 'storm')
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${wish.kind}-${verdict.seed}.json`)
  writeFileSync(path, `${JSON.stringify(plan, undefined, 2)}\n`)
  console.log(`npm run storm -- --plan .cache/storm/${wish.kind}-${verdict.seed}.json --replay\n${tellPlan(plan)}`)
}
if (values.coverage) console.log(coverageReport(covered))
const minutes = (performance.now() - began) / 60_000
for (const [end, times] of [...ends].toSorted((a, b) => b[1] - a[1])) console.log(`${String(times).padStart(7)} ${end}`)
console.log(
  `${played} seeds (${first} to ${next - 1}), ${failed.length} violations, ${calls} calls, ${(virtualMs / 3_600_000).toFixed(0)} hours of virtual time in ${minutes.toFixed(1)} minutes: ${(played / minutes).toFixed(0)} seeds a minute on ${count} cores, ${(cpuMs / Math.max(1, played)).toFixed(0)} ms of processor each`,
)
process.exitCode = failed.length > 0 ? 1 : 0
