import { talosOperation } from '../api/talos-operation.ts'
import type { OperationSpec } from '../api/talos-operation.ts'
import { timing } from '../core/timing.ts'
import type { Plan as Told } from '../engine/plan.ts'
import { planOperation } from '../engine/plan.ts'
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
