import type { Fault, Result } from '../../ports/fault.ts'
import type { BudgetFacts, Kube, PodFacts, VolumeFacts } from '../../ports/kube.ts'
import type { Answer } from '../kind.ts'
import { YES, no, unknown } from '../kind.ts'
import { ms } from '../ledger.ts'
import { matchesSelector, naturally } from '../rollout-order.ts'
import type { Need, View, World } from '../world.ts'
import { budgetFacts, displayName, isKnown, nodeFacts, nodeOf, podFacts, volumeFacts } from '../world.ts'
import { hasRoomElsewhere, nodeNameOf } from './target.ts'

/** Why a pod is left where it is, or undefined when it has to go. */
const staysBecause = (pod: PodFacts): string | undefined => {
  if (pod.mirror) return 'a static pod goes with its machine'
  if (pod.ownerKind === 'DaemonSet') return 'its DaemonSet would put it back'
  if (pod.phase === 'Succeeded' || pod.phase === 'Failed') return 'it has ended'
  return undefined
}

const isSelf = (pod: PodFacts, world: World): boolean =>
  world.self !== undefined && pod.namespace === world.self.namespace && pod.name === world.self.pod

/** Our own pod stays where no other Node could take it: evicted, it could come back only to this very Node, and nobody would be there to uncordon it. */
const selfStays = (view: View, pod: PodFacts): boolean => {
  if (!isSelf(pod, view.world)) return false
  const nodes = nodeFacts(view.world)
  return nodes.ok && !hasRoomElsewhere(nodes.value, pod.node)
}

/** Only what has a Node is drained (`drainGoal`), and no status may say otherwise (`unsound`). */
export const nodeToDrain = (view: Pick<View, 'target'>): string => {
  const node = nodeNameOf(view)
  if (node === undefined) throw new Error(`${displayName(view.target)} is to be drained, and has no node`)
  return node
}

/** Times of the API are right to a second. */
const SECOND = 1000

/**
 * It tolerates the cordon, and was put on this very Node since the drain began: evicted, it would be put back, again and again. Whoever drains goes by
 * what was there when he began, and those he has asked to go. How long the drain has been going on is told by no clock that somebody may have set.
 */
const isPutBack = ({ target, world }: View, { toleratesCordon, ownerKind, ageMs }: PodFacts, isPast: boolean): boolean => {
  if (toleratesCordon !== true || ownerKind === '') return false
  const drainingMs = target.step === 'drain' ? Math.min(world.now - ms(target.stepStartedAt), world.watchedMs) : 0
  return isPast || (ageMs !== undefined && ageMs + SECOND <= drainingMs)
}

const isLeaving = (view: View, pod: PodFacts, isPast: boolean): boolean =>
  staysBecause(pod) === undefined && !selfStays(view, pod) && !isPutBack(view, pod, isPast)

/** `isPast`: the Node was drained, and only has to have stayed so. */
const leaving = (view: View, isPast = false): Result<readonly PodFacts[]> => {
  const pods = podFacts(view.world, nodeToDrain(view))
  if (!pods.ok) return pods
  const going = pods.value.filter(p => isLeaving(view, p, isPast))
  return { ok: true, value: going.toSorted((a, b) => naturally(id(a), id(b))) }
}

const id = (pod: Pick<PodFacts, 'namespace' | 'name'>): string => `${pod.namespace}/${pod.name}`

/** What is put back meanwhile, for those who wonder why it is there. */
const putBackText = (view: View, isPast: boolean): string => {
  const pods = podFacts(view.world, nodeToDrain(view))
  const back = pods.ok ? pods.value.filter(p => !p.terminating && staysBecause(p) === undefined && isPutBack(view, p, isPast)).map(id) : []
  if (back.length === 0) return ''
  const [stay, they] = back.length === 1 ? ['stays', 'it tolerates'] : ['stay', 'they tolerate']
  return `; ${some(back.toSorted(naturally))} ${stay}: ${they} the cordon and would be put back`
}

const some = (names: readonly string[]): string =>
  names.length > 4 ? `${names.slice(0, 4).join(', ')} and ${names.length - 4} more` : names.join(', ')

/**
 * Its Node was not ready when the machine was opened, nor since: nobody is there to end its pods or to let go of their volumes, so that they were asked
 * to go is all that can be had. What is done to the machine may be its cure.
 */
const isSilent = (view: View, name: string): boolean => {
  const nodes = nodeFacts(view.world)
  const node = nodes.ok ? nodeOf(nodes.value, name) : undefined
  return node !== undefined && !node.ready && node.readySince < ms(view.target.startedAt)
}

/** So many rounds of evictions pass before what the API will never grant is given up: a budget may just be taking the place of another. */
const ROUNDS_FOR_NEVER = 5

/** Done when the pods are really gone, not only on their way, and their volumes are detached. */
export const drainDone = (view: View, isPast = false): Answer => {
  const node = nodeToDrain(view)
  const pods = leaving(view, isPast)
  if (!pods.ok) return unknown(`its pods cannot be listed: ${pods.fault.message}`)
  if (isSilent(view, node) && pods.value.every(p => p.terminating)) return YES
  if (pods.value.length > 0) {
    const never = neverEvicted(view)
    const { target, operation } = view
    const { step, attempts = 0 } = target
    if (never.length > 0 && operation.spec.drain.policy !== 'force' && step === 'drain' && attempts >= ROUNDS_FOR_NEVER) {
      const message = `${displayName(target)}: drain cannot end: ${some(never)}. Leave it one of these budgets.`
      return { is: 'failed', reason: 'DrainBlocked', message }
    }
    const blocked = blockedBy(view)
    const there = `${pods.value.length === 1 ? '1 pod is' : `${pods.value.length} pods are`} still there: ${some(pods.value.map(id))}`
    return no(`${blocked.length > 0 ? some(blocked) : there}${putBackText(view, isPast)}`)
  }
  const volumes = volumeFacts(view.world, node)
  if (!volumes.ok) return unknown(`its volumes cannot be listed: ${volumes.fault.message}`)
  const { going, doubtful } = attached(view, volumes.value, isPast)
  if (going.length > 0) return no(`volumes are still attached: ${some(going.map(volumeText))}`)
  if (doubtful.length === 0) return YES
  return { is: 'yes', but: `volumes are still attached, and may be of pods that stay: ${some(doubtful.map(volumeText))}` }
}

/** So long volumes are waited for of which nobody can tell whether their pods stay. */
const DOUBTFUL_MS = 120_000

/** Where only such volumes are left, the drain is done after a while all the same. */
export const drainStableMs = (view: View): number | undefined => {
  const answer = drainDone(view)
  return answer.is === 'yes' && answer.but !== undefined ? DOUBTFUL_MS : undefined
}

/** What `drainDone` asks about. Volumes are looked at once the pods are gone. */
export const drainNeeds = (view: View): readonly Need[] => {
  const node = nodeToDrain(view)
  const needs: readonly Need[] = [{ what: 'pods', node }, { what: 'budgets' }]
  if (!isKnown(view.world.facts, { what: 'pods', node })) return needs
  // Whatever a pod that went past the drain is, it is no more of those that were waited for.
  const pods = leaving(view, true)
  return pods.ok && pods.value.length === 0 ? [...needs, { what: 'volumes', node }] : needs
}

const volumeText = ({ name, claim }: VolumeFacts): string => (claim === undefined ? name : `${name} of claim ${claim}`)

/**
 * Volumes that are to be detached with the pods that go, and those of which it cannot be told. One that a pod uses that stays, a DaemonSet's or our own,
 * stays with it.
 */
const attached = (view: View, volumes: readonly VolumeFacts[], isPast: boolean) => {
  const pods = podFacts(view.world, nodeToDrain(view))
  const stay = pods.ok ? pods.value.filter(p => p.phase !== 'Succeeded' && p.phase !== 'Failed' && !isLeaving(view, p, isPast)) : []
  const kept = new Set(stay.flatMap(({ namespace, claims = [] }) => claims.map(claim => `${namespace}/${claim}`)))
  const isDoubtful = ({ claim }: VolumeFacts): boolean => claim === undefined && kept.size > 0
  return {
    going: volumes.filter(v => !isDoubtful(v) && (v.claim === undefined || !kept.has(v.claim))),
    doubtful: volumes.filter(isDoubtful),
  }
}

type Covered = { readonly pod: PodFacts; readonly budgets: readonly BudgetFacts[] }

/** The pods that have not been told to go yet, each with the budgets over it. */
const staying = (view: View): readonly Covered[] => {
  const [pods, budgets] = [leaving(view), budgetFacts(view.world)]
  if (!pods.ok || !budgets.ok) return []
  return pods.value.filter(p => !p.terminating).map(pod => ({ pod, budgets: budgets.value.filter(b => covers(b, pod)) }))
}

/** The Eviction API answers for such a pod with an error, for ever, whatever its budgets allow; but one that does not run yet has no budget. */
const isNever = ({ pod, budgets }: Covered): boolean => budgets.length > 1 && pod.phase !== 'Pending'

const neverText = ({ pod, budgets }: Covered): string =>
  `pod ${id(pod)} is covered by ${budgets.length} PodDisruptionBudgets (${budgets.map(b => b.name).join(', ')}), so it cannot be evicted at all`

const neverEvicted = (view: View): readonly string[] => staying(view).filter(isNever).map(neverText)

/** Such a system guards its pods until their volumes are safe elsewhere, and only names tell it from others. */
const STORAGE = /(^|[-./])(storage|longhorn|rook|ceph|openebs|mayastor|linstor|piraeus|portworx|csi)([-./]|$)/
const ofStorage = ({ namespace, name }: BudgetFacts): string =>
  STORAGE.test(namespace) || STORAGE.test(name)
    ? `; it belongs to a storage system, which lets go by its own drain policy: look at that, and at the replicas of its volumes`
    : ''

/** The pods that a budget holds now, each with the budget. */
export const blockedBy = (view: View): readonly string[] =>
  staying(view).flatMap(covered => {
    if (isNever(covered)) return [neverText(covered)]
    const { pod, budgets } = covered
    const budget = budgets.find(b => b.disruptionsAllowed < 1)
    if (!budget) return []
    const held = `pod ${id(pod)} is held by PodDisruptionBudget ${budget.name} (allowed disruptions ${budget.disruptionsAllowed})`
    return [`${held}${ofStorage(budget)}`]
  })

const covers = ({ namespace, matchLabels, matchExpressions }: BudgetFacts, pod: PodFacts): boolean =>
  namespace === pod.namespace && matchesSelector({ matchLabels, matchExpressions }, pod.labels)

/** Our own pod goes last: until the others are gone somebody has to evict them. */
const inTurn = (view: View): readonly PodFacts[] => {
  const pods = leaving(view)
  if (!pods.ok) return []
  const asked = pods.value.filter(p => !p.terminating)
  const others = pods.value.filter(p => !isSelf(p, view.world))
  return others.length > 0 ? asked.filter(p => !isSelf(p, view.world)) : asked
}

/** One round: every pod is asked to go. Those that a budget holds are asked again in the next round. */
export const evictAll = async (kube: Kube, view: View): Promise<Result<void>> => {
  let denied: Fault | undefined
  for (const pod of inTurn(view)) {
    const evicted = await kube.evict(pod)
    if (!evicted.ok && evicted.fault.kind === 'forbidden') denied = evicted.fault
  }
  return denied ? { ok: false, fault: denied } : DONE
}

/**
 * Only with the policy force, after the timeout: past every budget, with each pod's own grace period. But no pod for which nobody has asked: it may have
 * come only now, or its budget may allow it by now.
 */
export const deleteAll = async (kube: Kube, view: View): Promise<Result<void>> => {
  for (const pod of inTurn(view)) {
    const evicted = await kube.evict(pod)
    if (evicted.ok) continue
    if (evicted.fault.kind === 'forbidden') return evicted
    const deleted = await kube.deletePod(pod)
    if (!deleted.ok) return deleted
  }
  return DONE
}

const DONE: Result<void> = { ok: true, value: undefined }
