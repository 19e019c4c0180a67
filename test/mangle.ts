// Status as a hand, or another version of Ichor, might leave it: whatever the CRD lets through.
import fc from 'fast-check'
import { PHASE_NAMES, TARGET_PHASE_NAMES } from '../src/api/phases.ts'
import { REASON_NAMES } from '../src/api/reasons.ts'
import type { OperationStatus } from '../src/api/talos-operation.ts'
import { operationStatus } from '../src/api/talos-operation.ts'
import { kinds } from '../src/kinds/registry.ts'

/** One edit: which field of the status as it is then, and what becomes of it. Numbers are taken modulo what there is. */
export type Mangling = { readonly field: number; readonly value: number; readonly how: 'set' | 'drop' | 'repeat' | 'empty' | 'whole' }

export const mangling: fc.Arbitrary<Mangling> = fc.record({
  field: fc.nat(9999),
  value: fc.nat(9999),
  how: fc.oneof(
    { weight: 6, arbitrary: fc.constant('set' as const) },
    { weight: 3, arbitrary: fc.constant('drop' as const) },
    { weight: 1, arbitrary: fc.constantFrom('repeat' as const, 'empty' as const, 'whole' as const) },
  ),
})

const STEPS = [...new Set(kinds.flatMap(k => k.stages.flatMap(s => s.steps.map(step => step.name))))]
const STAGES = kinds.flatMap(k => k.stages.map(s => s.name))
const NONSENSE = ['', 'of-another-version', 'x'.repeat(60)]
const TIMES = ['0001-01-01T00:00:00Z', '2019-06-01T00:00:00Z', '2031-01-01T00:00:00Z', '9999-12-31T23:59:59Z']

/** What could stand in a field of that name; `names` are those of the machines. */
const poolOf = (field: string, before: unknown, names: readonly string[]): readonly unknown[] => {
  if (field === 'phase') return [...PHASE_NAMES, ...TARGET_PHASE_NAMES]
  if (field === 'reason' || field === 'failureReason') return REASON_NAMES
  if (field === 'step' || field === 'committed') return [...STEPS, ...NONSENSE]
  if (field === 'stage') return [...STAGES, ...NONSENSE]
  if (field === 'role') return ['controlplane', 'worker']
  if (field === 'drain') return ['wait', 'force', ...NONSENSE]
  if (typeof before === 'number') return [0, 1, -1, 7, 2_147_483_647]
  if (typeof before === 'boolean') return [!before]
  if (typeof before === 'string' && /^\d{4}-\d\d-\d\dT/.test(before)) return TIMES
  if (typeof before === 'string') return [...NONSENSE, ...names]
  return [undefined]
}

const WHOLES: readonly OperationStatus[] = [
  ...PHASE_NAMES.map((phase): OperationStatus => ({ phase, message: 'written by hand' })),
  ...REASON_NAMES.map((failureReason): OperationStatus => ({ phase: 'Paused', failureReason, message: 'written by hand' })),
]

/** The places in a value, outermost first, each as the path to it. */
const placesIn = (value: unknown, path: readonly string[] = []): readonly (readonly string[])[] => {
  if (typeof value !== 'object' || value === null) return [path]
  return [...(path.length > 0 ? [path] : []), ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...path, key]))]
}

/** The status after the edit; undefined where the CRD would refuse it, or it changes nothing. */
export const mangled = (status: OperationStatus, { field, value, how }: Mangling): OperationStatus | undefined => {
  const next = how === 'empty' ? {} : how === 'whole' ? WHOLES[value % WHOLES.length] : edited(status, field, value, how)
  const parsed = operationStatus.safeParse(next)
  if (!parsed.success || hasTwice(parsed.data)) return undefined
  return JSON.stringify(parsed.data) === JSON.stringify(status) ? undefined : parsed.data
}

const edited = (status: OperationStatus, field: number, value: number, how: Mangling['how']): unknown => {
  const copy = structuredClone(status)
  // What is only told to people would be nearly all there is.
  const { history: _, conditions: __, message: ___, ...rest } = copy
  const places = placesIn(rest)
  const path = places[field % Math.max(1, places.length)]
  const key = path?.at(-1)
  if (path === undefined || key === undefined) return copy
  // An own copy of the way there, so that what is shared stays as it is.
  const parent = path.slice(0, -1).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], copy) as Record<string, unknown>
  const names = (status.machines ?? []).flatMap(t => [t.name, t.node ?? t.name])
  if (Array.isArray(parent)) {
    if (how === 'repeat') while (parent.length < 16) parent.push(parent[Number(key)])
    else parent.splice(Number(key), 1)
  } else if (how === 'drop') delete parent[key]
  else {
    const pool = poolOf(key, parent[key], names)
    parent[key] = pool[value % pool.length]
  }
  return copy
}

/** The list of machines is a map by name. */
const hasTwice = ({ machines = [] }: OperationStatus): boolean => new Set(machines.map(t => t.name)).size < machines.length
