import { talosOperation } from '../api/talos-operation.ts'
import type { OperationSpec } from '../api/talos-operation.ts'
import { timing } from '../core/timing.ts'
import type { Plan as Told } from '../engine/plan.ts'
import { planOperation } from '../engine/plan.ts'
import { examineCluster, examineStranger } from '../engine/examine.ts'
import { clusterLooks, onboardingLooks } from '../core/looks/cluster-looks.ts'
import { lookAt } from '../core/looks/look.ts'
import { kinds } from '../kinds/registry.ts'
import type { Result } from '../ports/fault.ts'
import { openPorts } from '../world/ports/open.ts'
import { PLANNER } from './checkers/words.ts'
import type { Draft } from './plan.ts'
import type { Story } from './story.ts'
import { CLUSTER, NAMESPACE } from './story.ts'

/** What an operation would do, asked for by a person before it is created. Undefined where its kind is none. */
export const planBefore = async ({ world }: Story, draft: Draft): Promise<Result<Told> | undefined> => {
  const definition = talosOperation(kinds)
  const kind = kinds.find(k => k.name === draft.spec.kind)
  const spec = definition.spec.safeParse({ clusterRef: { name: CLUSTER }, ...draft.spec })
  if (!kind || !spec.success) return undefined
  const { home, connections, clock } = openPorts(world, { name: PLANNER, operation: definition })
  return planOperation(
    { home, connections, clock, timing: timing(), self: undefined },
    kind,
    NAMESPACE,
    draft.name,
    spec.data as OperationSpec,
  )
}

/** What is wrong with the cluster, asked for by a person: one finding a line. As one who has the talosconfig alone would see it, and as it is registered. */
export const examine = async ({ world }: Story): Promise<readonly string[]> => {
  const { home, connections, clock } = openPorts(world, { name: PLANNER, operation: talosOperation(kinds) })
  const examiner = { home, connections, clock, withinMs: EXAMINED_MS, resolve: () => Promise.resolve([]) }
  const key = { namespace: NAMESPACE, name: CLUSTER }
  // Somebody mistypes its name.
  const spec = talosOperation(kinds).spec.parse({ clusterRef: { name: 'homme' }, kind: 'talos', talos: { version: 'v1.13.9' } })
  const [first] = kinds
  if (first)
    await planOperation(
      { home, connections, clock, timing: timing(), self: undefined },
      first,
      NAMESPACE,
      'mistyped',
      spec as OperationSpec,
    )
  const sight = await examineCluster(examiner, key)
  if (!sight.ok) return [sight.fault.message]
  const stranger = await examineStranger(examiner, key, sight.value.world.cluster.spec)
  return [...lookAt(clusterLooks, sight.value), ...lookAt(onboardingLooks, stranger)].flatMap(({ look, findings }) =>
    findings.filter(({ severity }) => severity !== 'ok').map(({ message }) => `${look}: ${message}`),
  )
}

const EXAMINED_MS = 10_000
