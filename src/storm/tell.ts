import type { Violation } from './checker.ts'
import type { Plan, Strike } from './plan.ts'
import type { Stage } from './stage.ts'

/** A run as text: the plan, then everything that happened in its order. The same plan gives the same text, byte for byte. */

/** What machines and Kubernetes do all the time, of no interest to who looks for the fault. */
const DULL = new Set(['node-boot', 'evict-refused', 'phase-failed'])

const when = ({ when: moment }: Strike): string => ('at' in moment ? `${seconds(moment.at)}` : `call ${moment.call}`)
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)}s`

export const tellPlan = (plan: Plan): string => {
  const { shape } = plan
  return [
    `seed ${plan.seed}, kind ${plan.kind}: ${shape.controlPlanes}+${shape.workers} machines, Talos ${shape.talos}, Kubernetes ${shape.kubernetes}, ${shape.replicas} controllers, ${shape.haste} times as fast, resources ${shape.homeOutside ? 'elsewhere' : 'in the cluster itself'}`,
    ...(shape.setting ? [`set up: ${JSON.stringify(shape.setting)}`] : []),
    ...plan.operations.map(o => `operation ${o.name}: ${JSON.stringify(o.spec)}`),
    ...(plan.considered ?? []).map(
      ({ spec, at }) => `considered ${at === undefined ? 'first' : `after ${seconds(at)}`}: ${JSON.stringify(spec)}`,
    ),
    ...plan.strikes.map(
      (s, i) =>
        `strike ${i}: ${when(s)} ${s.family}: ${s.what}${s.machine === undefined ? '' : ` (machine ${s.machine})`}${s.forMs === undefined ? '' : ` for ${seconds(s.forMs)}`}${s.times === undefined ? '' : `, ${s.times}`}`,
    ),
  ].join('\n')
}

export const tellRun = (stage: Stage, violations: readonly Violation[]): string => {
  const { world } = stage.story
  const begin = world.schedule.now() - world.schedule.monotonic() + 300_000
  const lines: { readonly at: number; readonly text: string }[] = [
    ...stage.notes().map(({ at, text }) => ({ at, text: `* ${text}` })),
    ...world.journal
      .entries()
      .filter(e => !DULL.has(e.what))
      .map(e => ({ at: e.at - begin, text: `${e.machine || '-'} ${e.what}${e.detail ? ` ${e.detail}` : ''}` })),
    ...stage
      .operations()
      .flatMap(o => (o.status.history ?? []).map(h => ({ at: Date.parse(h.at) - begin, text: `${o.metadata.name}: ${h.message}` }))),
    ...violations.map(({ at, checker, what }) => ({ at, text: `! ${checker}: ${what}` })),
  ]
  const told = lines.map((line, i) => ({ ...line, i })).toSorted((a, b) => a.at - b.at || a.i - b.i)
  return [
    tellPlan(stage.plan),
    '',
    ...told.map(({ at, text }) => `${seconds(at).padStart(9)} ${text}`),
    ...stage
      .operations()
      .map(
        ({ metadata, status }) => `= ${metadata.name}: ${[status.phase, status.failureReason, status.message].filter(Boolean).join(', ')}`,
      ),
    '',
  ].join('\n')
}
