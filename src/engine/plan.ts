import type { OperationSpec, TalosOperation } from '../api/talos-operation.ts'
import { operationHolder } from '../api/names.ts'
import { targetNeeds } from '../core/advance.ts'
import { checksOf, needsOfChecks } from '../core/checks.ts'
import type { Candidate, Checked, Kind, PlannedMachine, Refusal } from '../core/kind.ts'
import { stagesOf } from '../core/stages.ts'
import type { Need, View, World } from '../core/world.ts'
import { isKnown, displayName } from '../core/world.ts'
import type { Role } from '../api/talos-machine.ts'
import type { Result } from '../ports/fault.ts'
import { failed, ok } from '../ports/fault.ts'
import type { Observer } from './observe.ts'
import { noCluster } from './no-cluster.ts'
import { gather, observe } from './observe.ts'

export type Plan = {
  readonly cluster: string
  readonly kind: string
  readonly found: Checked['found']
  /** All refusals; those that `spec.override` would pass say so. */
  readonly refusals: readonly Refusal[]
  readonly notes: readonly string[]
  /** The machines in their order, stage after stage. */
  readonly order: readonly (PlannedMachine & {
    readonly stage: string
    readonly name: string
    readonly role: Role
    readonly node?: string
    readonly skip?: string
  })[]
  /** Who holds the cluster lock now; absent when it is free. */
  readonly holder?: string
}

/**
 * What an operation would do, by the same checks and the same order as the run itself. Reads only: no write on any machine, Node, Lease or object.
 */
export const planOperation = async (
  observer: Observer,
  kind: Kind,
  namespace: string,
  name: string,
  spec: OperationSpec,
): Promise<Result<Plan>> => {
  const key = { namespace, name: spec.clusterRef.name }
  const found = await observer.home.cluster(key)
  if (!found.ok) return found.fault.kind === 'notFound' ? failed('notFound', await noCluster(observer.home, key)) : found
  const operation = imagined(namespace, name, spec)
  const seen = await observe(observer, operation, found.value, [])
  if (!seen.ok) return seen
  const known = await gatherAll(observer, seen.value, world => needs(kind, operation, world))
  const checked = checksOf(kind, operation, known)
  const turns = stagesOf(kind, operation).flatMap(stage => stage.order(operation, known).map(candidate => ({ stage, candidate })))
  const viewOf = (world: World, candidate: Candidate): View => {
    const { skip: _, ...target } = candidate
    return { operation, target: { ...target, phase: 'Pending' }, world }
  }
  const world = await gatherAll(observer, known, seenSoFar =>
    turns.flatMap(({ stage, candidate }) => [...targetNeeds(candidate), ...(stage.openNeeds?.(viewOf(seenSoFar, candidate)) ?? [])]),
  )
  const order = turns.map(({ stage, candidate }) => {
    const { skip, hostname: _, address: __, ...known } = candidate
    const view = viewOf(world, candidate)
    const opening = skip === undefined ? stage.open(view) : { skip }
    return {
      ...known,
      stage: stage.name,
      name: displayName(candidate),
      ...stage.preview(view),
      ...('skip' in opening ? { skip: opening.skip, loses: [] } : {}),
    }
  })
  const { lock } = world
  return ok({
    cluster: spec.clusterRef.name,
    kind: kind.name,
    found: checked.found,
    refusals: checked.refusals,
    notes: checked.notes,
    order,
    ...(lock && lock.holder !== '' && lock.holder !== operationHolder(namespace, name) ? { holder: lock.holder } : {}),
  })
}

/** What is asked for may depend on what was found: asked again until nothing new is. */
const gatherAll = async (observer: Observer, seen: World, needsIn: (world: World) => readonly Need[]): Promise<World> => {
  let world = seen
  for (;;) {
    const missing = needsIn(world).filter(need => !isKnown(world.facts, need))
    if (missing.length === 0) return world
    world = await gather(observer, world, missing)
  }
}

const needs = (kind: Kind, operation: TalosOperation, world: World): readonly Need[] => [
  ...needsOfChecks(kind, operation, world),
  ...stagesOf(kind, operation).flatMap(stage => stage.orderNeeds(operation, world)),
]

/** The operation as it would be, were it created. */
const imagined = (namespace: string, name: string, spec: OperationSpec): TalosOperation => ({
  metadata: {
    name,
    namespace,
    uid: '',
    resourceVersion: '',
    generation: 1,
    creationTimestamp: '',
    labels: {},
    annotations: {},
    finalizers: [],
  },
  spec,
  status: {},
})
