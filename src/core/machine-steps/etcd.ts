import type { TalosMachine } from '../../api/talos-machine.ts'
import type { OperationSpec } from '../../api/talos-operation.ts'
import type { EtcdGateInput, EtcdGateVerdict } from '../etcd-gate.ts'
import { DEFAULT_QUOTA_BYTES, etcdGate } from '../etcd-gate.ts'
import type { ControlPlaneView } from '../etcd-members.ts'
import { leaderName } from '../etcd-members.ts'
import type { Answer, Verdict } from '../kind.ts'
import { YES, no, wait } from '../kind.ts'
import type { Need, View, World } from '../world.ts'
import { etcdFacts } from '../world.ts'
import { controlPlanesOf, isControlPlane } from './target.ts'

/** What steps of any kind ask about etcd. */

export const etcdNeed = (view: View): readonly Need[] => (isControlPlane(view) ? [{ what: 'etcd' }] : [])

/** etcd is sampled twice before a member of it is touched; other machines need not wait for that. */
export const etcdSampleMs = (view: View): number | undefined => (isControlPlane(view) ? view.world.timing.etcdSampleMs : undefined)

/** etcd as all control planes see it now. */
export const etcdViews = (world: World): readonly ControlPlaneView[] =>
  controlPlanesOf(world).map(({ metadata: { name }, spec: { address }, status: { etcdMemberID } }) => ({
    ...{ name, address, knownAs: etcdMemberID },
    view: etcdFacts(world, name),
  }))

/** The control plane that leads etcd now; undefined where they do not agree. */
export const etcdLeader = (world: World): string | undefined => leaderName(etcdViews(world))

export type Asked = Pick<EtcdGateInput, 'purpose' | 'target' | 'etcdStepAllowed' | 'makesRoom'>

/** The gate of etcd: may this control plane go away, or is all well again. `who`: as far as they acknowledge anything. */
export const gate = (who: { readonly spec: Pick<OperationSpec, 'acknowledge'> }, world: World, asked: Asked): EtcdGateVerdict => {
  const known = controlPlanesOf(world).flatMap(m => {
    const facts = world.facts.machines[m.metadata.name]
    return facts?.ok ? [facts.value.etcdQuotaBytes] : []
  })
  const verdict = etcdGate({
    ...asked,
    controlPlanes: etcdViews(world),
    seenControlPlanes: world.cluster.status.machines?.controlPlanes ?? 0,
    quotaBytes: known.length > 0 ? Math.min(...known) : DEFAULT_QUOTA_BYTES,
    acknowledged: who.spec.acknowledge,
  })
  return verdict.pass ? verdict : { ...verdict, message: asPeopleSay(verdict.message, controlPlanesOf(world)) }
}

/** With host names in place of the names of TalosMachines, which end in a hash and so occur nowhere else. */
const asPeopleSay = (message: string, machines: readonly TalosMachine[]): string =>
  machines.reduce((text, { metadata, status }) => (status.hostname ? text.replaceAll(metadata.name, status.hostname) : text), message)

export const gateText = (verdict: Extract<EtcdGateVerdict, { pass: false }>): string =>
  verdict.remedy ? `${verdict.message} ${verdict.remedy}` : verdict.message

/** The gate as a guard. What only a person can mend ends the step; anything else is waited for, and never walked past. */
export const asGuard = (verdict: EtcdGateVerdict): Verdict => {
  if (verdict.pass) return YES
  const message = gateText(verdict)
  return verdict.kind === 'hold' ? wait(message, verdict.reason) : { may: 'no', reason: verdict.reason, message }
}

/** The gate as the end of a wait. */
export const asAnswer = (verdict: EtcdGateVerdict): Answer => {
  if (verdict.pass) return YES
  const message = gateText(verdict)
  return verdict.kind === 'hold' ? no(message) : { is: 'failed', reason: verdict.reason, message }
}
