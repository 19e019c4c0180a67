// `npm run storm`: plays drawn runs; what it can be asked for is in storm-options.ts.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Plan } from '../src/storm/plan.ts'
import { tellPlan } from '../src/storm/tell.ts'
import { stormKinds } from '../src/storm/operations.ts'
import type { Verdict } from '../src/storm/judge.ts'
import { loadStorm, sabotageOf } from '../test/storm/sabotage.ts'
import { sabotages } from '../test/storm/sabotages/all.ts'
import { cases, dieAtEachCall } from '../test/storm/deaths.ts'
import { coverageReport } from './storm-coverage.ts'
import { readStormOptions, STORM_HELP } from './storm-options.ts'
import type { StormAnswer, StormTask } from './storm-worker.ts'

/** All that was said gets out first: what goes into a pipe is written later. */
const leave = async (code: number): Promise<never> => {
  await new Promise<void>(resolve => process.stdout.write('', () => resolve()))
  process.exit(code)
}
const refuse: (what: string) => never = what => {
  console.error(`error: ${what}\n  npm run storm -- --help shows the options.`)
  process.exit(2)
}
const asked = readStormOptions(process.argv.slice(2))
if (asked === 'help') {
  console.log(STORM_HELP)
  process.exit(0)
}
if ('problem' in asked) refuse(asked.problem)
const sabotage = asked.sabotage === undefined ? undefined : sabotageOf(asked.sabotage)
if (asked.sabotage !== undefined && !sabotage)
  refuse(`--sabotage ${asked.sabotage}: there are ${sabotages.map(({ name }) => name).join(', ')}`)

const wishOf = (seed: number) => ({
  seed,
  kind: asked.kind === 'all' ? stormKinds[seed % stormKinds.length]! : asked.kind,
  ...(asked.families ? { families: [...asked.families] } : {}),
  ...(asked.controlPlanes === undefined ? {} : { controlPlanes: asked.controlPlanes }),
  ...(asked.workers === undefined ? {} : { workers: asked.workers }),
})
const storm = await loadStorm(sabotage)

if (asked.deaths) {
  let [all, wrongs] = [0, 0]
  for (const [name, told] of Object.entries(cases)) {
    const { calls, deaths, wrong } = await dieAtEachCall(told)
    console.log([`${name}: ${calls} calls, ${deaths} deaths`, ...wrong].join('\n'))
    all += deaths
    wrongs += wrong.length
  }
  console.log(`${all} deaths, ${wrongs} violations`)
  await leave(wrongs > 0 ? 1 : 0)
}

const isPlan = (value: unknown): value is Plan =>
  typeof value === 'object' && value !== null && ['seed', 'kind', 'shape', 'operations', 'strikes'].every(key => key in value)
const planIn = (path: string): Plan => {
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (isPlan(read)) return read
  } catch (error) {
    return refuse(`--plan ${path}: ${(error as Error).message}`)
  }
  return refuse(
    `--plan ${path}: this is no plan of a run; those that failed are in .cache/storm/, and each of test/storm/kept-plans.json stands in its "plan"`,
  )
}

if (asked.replay) {
  const plan = asked.plan === undefined ? storm.drawPlan(wishOf(asked.seed ?? asked.from)) : planIn(asked.plan)
  const { text, violations } = await storm.replay(plan)
  console.log(text)
  console.log(`${violations.length} violations`)
  await leave(violations.length > 0 ? 1 : 0)
}

const first = asked.seed ?? asked.from
const deadline = asked.minutes === undefined ? Infinity : performance.now() + asked.minutes * 60_000
const last = asked.seed === undefined ? first + asked.seeds : first + 1
const count = asked.seed === undefined ? (asked.threads ?? availableParallelism()) : 1

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
      workerData: { sabotage: asked.sabotage, coverage: asked.coverage },
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
if (sabotage && !failed.some(({ violations }) => violations.some(({ checker }) => checker === sabotage.caughtBy)))
  console.log(
    `\n${sabotage.caughtBy} did not find ${sabotage.name} in these runs. The one in which it does: npx vitest run test/storm/sabotages.test.ts -t ${sabotage.name}`,
  )
if (asked.coverage) console.log(coverageReport(covered))
const minutes = (performance.now() - began) / 60_000
for (const [end, times] of [...ends].toSorted((a, b) => b[1] - a[1])) console.log(`${String(times).padStart(7)} ${end}`)
console.log(
  `${played} seeds (${first} to ${next - 1}), ${failed.length} violations, ${calls} calls, ${(virtualMs / 3_600_000).toFixed(0)} hours of virtual time in ${minutes.toFixed(1)} minutes: ${(played / minutes).toFixed(0)} seeds a minute on ${count} cores, ${(cpuMs / Math.max(1, played)).toFixed(0)} ms of processor each`,
)
process.exitCode = failed.length > 0 ? 1 : 0
