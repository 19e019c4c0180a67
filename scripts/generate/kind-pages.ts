// What a kind's value tells of itself. Deadlines and reasons may be functions of the operation and the machine: they are asked about an
// operation with nothing but defaults, for a control plane and for a worker of a cluster of three and three.
import { formatDuration } from '../../src/api/duration.ts'
import type { JSONSchemaProps } from '../../src/api/structural.ts'
import { toStructural } from '../../src/api/structural.ts'
import type { KindBlock, Target } from '../../src/api/talos-operation.ts'
import { talosOperation } from '../../src/api/talos-operation.ts'
import type { Kind, Stage, Step } from '../../src/core/kind.ts'
import { timing } from '../../src/core/timing.ts'
import type { View } from '../../src/core/world.ts'
import { NO_FACTS } from '../../src/core/world.ts'
import { fieldTable } from './fields.ts'
import type { Files } from './files.ts'
import { code, generatedFrom, page, table } from './markdown.ts'

export const kindFolder = 'docs/reference/kinds'

/** A kind as far as it is built: the block is always there. */
export type DocumentedKind = KindBlock & Partial<Pick<Kind, 'stages'>>

export const kindPages = (kinds: readonly DocumentedKind[]): Files =>
  new Map(kinds.map(kind => [`${kindFolder}/${kind.name}.md`, kindPage(kind)]))

/** The steps that fail with a reason when their deadline passes, as links from docs/reference. */
export const stepsByReason =
  (kinds: readonly DocumentedKind[]) =>
  (reason: string): readonly string[] =>
    kinds.flatMap(kind =>
      (kind.stages ?? [])
        .flatMap(stepsOf)
        .filter(step => reasonsOf(step, kind).includes(reason))
        .map(step => `[${kind.name}: ${step.name}](kinds/${kind.name}.md)`),
    )

const kindPage = (kind: DocumentedKind): string => {
  const block = toStructural(kind.spec, `spec.${kind.block}`)
  return page(
    generatedFrom('src/kinds'),
    `# ${kind.name}`,
    kind.summary,
    `## spec.${kind.block}`,
    block.description === kind.summary ? undefined : block.description,
    fieldTable(block),
    `The other fields of ${code('spec')} are those of every [TalosOperation](../resources/talosoperation.md).`,
    ...(kind.stages ?? []).flatMap(one => stage(one, kind)),
  )
}

const stage = ({ name, summary, steps, abandon }: Stage, kind: DocumentedKind): string[] => [
  `## Stage: ${name}`,
  summary,
  'The steps of one machine, in their order. Each is asked anew at every look: what is done already is not done again. A step that is not done at its deadline pauses the operation with the reason.',
  steps.length === 0 ? 'It has no steps.' : stepTable(steps, kind),
  ...(abandon.length === 0 ? [] : ['When a machine is closed before its end, and is healthy:', stepTable(abandon, kind)]),
]

const stepTable = (steps: readonly Step[], kind: DocumentedKind): string =>
  table(
    ['Step', 'What it is', 'For', 'Deadline', 'Reason when it passes', 'Notes'],
    steps.map(step => [
      code(step.name),
      step.summary,
      applies(step, kind),
      oneOrBoth(kind, view => deadlineOf(step, view)) ?? 'depends on the machine',
      reasonsOf(step, kind)
        .map(reason => `[${reason}](../reasons.md#${reason.toLowerCase()})`)
        .join(', ') || 'depends on the machine',
      notes(step, kind).join('; '),
    ]),
  )

/** Some steps have one time in which they may begin, and another from their first act on. */
const deadlineOf = (step: Step, view: View): string => {
  const text = (ms: number | undefined): string => (ms === undefined ? 'none' : formatDuration(ms))
  const begins = new Date(0).toISOString()
  const waiting = text(step.deadlineMs?.(view))
  const acting = text(
    step.deadlineMs?.({ ...view, target: { ...view.target, step: step.name, stepStartedAt: begins, firstActedAt: begins } }),
  )
  return waiting === acting ? waiting : `${waiting} to begin, ${acting} from then on`
}

const applies = (step: Step, kind: DocumentedKind): string => {
  if (!step.applies) return 'every machine'
  const [controlPlane, worker] = (['controlplane', 'worker'] as const).map(role => asked(() => step.applies?.(sampleView(kind, role))))
  if (controlPlane === true && worker === false) return 'control planes'
  if (controlPlane === false && worker === true) return 'workers'
  return 'machines that need it'
}

const notes = (step: Step, kind: DocumentedKind): string[] => {
  const told = (ms: number | undefined): string => (ms === undefined ? '' : formatDuration(ms))
  const stable = oneOrBoth(kind, view => told(step.stableMs?.(view)))
  const guarded = oneOrBoth(kind, view => told(step.guardStableMs?.(view)))
  return [
    ...(step.act ? [] : ['only waits']),
    ...(step.act?.disruptive ? ['disruptive: leadership and lock are read again right before it'] : []),
    ...(step.act?.long ? ['takes minutes, runs beside the others'] : []),
    ...(guarded ? [`what allows it must hold for ${guarded}`] : []),
    ...(stable ? [stable === '0s' ? 'must hold for as long as spec says' : `must hold for ${stable}`] : []),
    ...(step.milestone ? ['cannot be undone: what comes before it is history then'] : []),
    ...(step.commits ? ['from here the machine is carried to its end, whatever is asked'] : []),
  ]
}

const stepsOf = ({ steps, abandon }: Stage): readonly Step[] => [...steps, ...abandon]

const reasonsOf = (step: Step, kind: DocumentedKind): string[] => {
  const { failure } = step
  if (typeof failure === 'string') return [failure]
  const answers = (['controlplane', 'worker'] as const).map(role => asked(() => failure(sampleView(kind, role))))
  return [...new Set(answers.filter(answer => answer !== undefined))]
}

/** The answer where both roles have the same, else both; undefined where the question needs a real machine. */
const oneOrBoth = (kind: DocumentedKind, ask: (view: View) => string): string | undefined => {
  const [controlPlane, worker] = (['controlplane', 'worker'] as const).map(role => asked(() => ask(sampleView(kind, role))))
  if (controlPlane === undefined || worker === undefined) return undefined
  if (controlPlane !== '' && worker === '') return `${controlPlane} on a control plane`
  return controlPlane === worker ? controlPlane : `${controlPlane} for a control plane, ${worker} for a worker`
}

/** A question that looks at facts or at required fields cannot be answered about a sample. */
const asked = <T>(ask: () => T): T | undefined => {
  try {
    return ask()
  } catch {
    return undefined
  }
}

const metadata = {
  namespace: 'default',
  uid: '',
  resourceVersion: '',
  generation: 1,
  creationTimestamp: '',
  labels: {},
  annotations: {},
  finalizers: [],
}
const machines = (['controlplane', 'worker'] as const).flatMap(role => [1, 2, 3].map(number => ({ name: `${role}-${number}`, role })))

const sampleView = (kind: DocumentedKind, role: Target['role']): View => {
  const spec = defaultsOf(toStructural(talosOperation([kind]).spec)) as Record<string, unknown>
  const operation = {
    metadata: { ...metadata, name: 'sample' },
    spec: { ...spec, clusterRef: { name: 'sample' }, kind: kind.name } as View['operation']['spec'],
    status: {},
  }
  return {
    operation,
    target: { name: `${role}-1`, role, node: `${role}-1`, phase: 'Running' },
    world: {
      now: 0,
      watchedMs: 0,
      timing: timing(),
      cluster: {
        metadata: { ...metadata, name: 'sample' },
        spec: { talosconfigSecretRef: { name: 'sample', key: 'talosconfig' } },
        status: {},
      },
      machines: machines.map(machine => ({
        metadata: { ...metadata, name: machine.name },
        spec: { clusterRef: { name: 'sample' }, address: machine.name, role: machine.role },
        status: {},
      })),
      lock: undefined,
      others: [],
      self: undefined,
      running: [],
      // A machine on which nothing runs: what is asked of one is asked after its pods.
      facts: { ...NO_FACTS, pods: { [`${role}-1`]: { ok: true, value: [] } }, budgets: { ok: true, value: [] } },
    },
  }
}

/** What the API server fills in, all objects taken as given. */
const defaultsOf = (schema: JSONSchemaProps): unknown => {
  if (schema.default !== undefined && schema.type !== 'object') return schema.default
  if (schema.type !== 'object' || !schema.properties) return undefined
  const entries = Object.entries(schema.properties).map(([name, field]) => [name, defaultsOf(field)] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}
