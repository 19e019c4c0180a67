// Where the time of a rollout goes, as the simulated world itself knows it: not what the controller believes it waits for, but what its machines do.
import type { OperationStatus, Target } from '../src/api/talos-operation.ts'
import { timing } from '../src/core/timing.ts'
import type { World } from '../src/world/cluster.ts'
import { isUp, type Machine } from '../src/world/machine.ts'
import { INSTALL_IMAGE, readScalar } from '../src/world/machine-config.ts'
import { conditionOf } from '../src/world/objects.ts'
import type { KubeObject } from '../src/world/store.ts'

/**
 * Whose time an instant is.
 *  machine: it pulls, installs, drains, reboots, boots, registers, rejoins etcd; or a budget holds its pods.
 *  stability: what has to hold for a while holds, and must be seen to: etcd's samples and its 20 seconds. Only from when the wait began.
 *  ours: the world is ready for the next move, and it does not come yet.
 */
export type Share = 'machine' | 'stability' | 'ours'

export type Account = {
  /** To be called after every event of the world, or often. The time since the last call is booked as things stood then. */
  readonly look: () => void
  readonly total: (share: Share) => number
  /** `ours` by the step during which it passed, most first, in milliseconds of the world. */
  readonly oursByStep: () => readonly (readonly [step: string, ms: number])[]
}

/** @param options.scale How much faster than real the world's durations are; the mandated waits are divided by it, too. */
export const openAccount = (options: {
  readonly world: World
  readonly status: () => OperationStatus | undefined
  readonly scale?: number
}): Account => {
  const { world, status, scale = 1 } = options
  const totals: Record<Share, number> = { machine: 0, stability: 0, ours: 0 }
  const steps = new Map<string, number>()
  let last: { readonly at: number; readonly share: Share; readonly step: string } | undefined

  return {
    look: () => {
      const now = world.schedule.now()
      if (last) {
        totals[last.share] += now - last.at
        if (last.share === 'ours') steps.set(last.step, (steps.get(last.step) ?? 0) + now - last.at)
      }
      last = { at: now, ...whose(world, status(), scale) }
    },
    total: share => totals[share],
    oursByStep: () => [...steps].toSorted((a, b) => b[1] - a[1]),
  }
}

const whose = (world: World, status: OperationStatus | undefined, scale: number): { readonly share: Share; readonly step: string } => {
  const target = status?.machines?.find(({ phase }) => phase === 'Running')
  if (!target) return { share: 'ours', step: status?.machines ? 'between machines' : 'before the first machine' }
  const step = target.step ?? 'opening'
  const machine = world.machines.find(({ name }) => name === target.node)
  if (!machine) throw new Error(`no machine ${target.node}`)
  if (isBusy(world, machine, target)) return { share: 'machine', step }
  return { share: isMandated(world, machine, target, scale) ? 'stability' : 'ours', step }
}

const isBusy = (world: World, machine: Machine, target: Target): boolean => {
  const { site } = world
  if (machine.installing || machine.sequence !== undefined) return true
  if (!isUp(site, machine) || !nodeIsBack(world, machine)) return true
  if (machine.role === 'controlplane' && !(machine.staticPods && etcdIsWell(world))) return true
  const acted = target.actedAt !== undefined
  switch (target.step) {
    case 'pull':
      return acted && !machine.images.has(target.goal?.['image'] ?? '')
    case 'drain':
      return isDraining(world, machine)
    case 'transfer-leadership':
      return acted && world.etcd.leader() === world.etcd.memberOf(machine)?.id
    case 'record-image':
      return acted && readScalar(machine.config, INSTALL_IMAGE) !== target.goal?.['image']
    default:
      return false
  }
}

const nodeIsBack = (world: World, machine: Machine): boolean => {
  const node = world.nodes.of(machine)
  const info = (node?.status as { nodeInfo?: { bootID?: string } } | undefined)?.nodeInfo
  return info?.bootID === machine.bootID && world.nodes.isReady(machine.name)
}

const etcdIsWell = (world: World): boolean => {
  const views = world.machines.filter(({ role }) => role === 'controlplane').map(machine => world.etcd.view(machine))
  return views.every(
    view => view.ok && view.value.service.healthy && view.value.status.errors.length === 0 && view.value.alarms.length === 0,
  )
}

/** Pods end, volumes are detached, or budgets hold all that is left. */
const isDraining = (world: World, machine: Machine): boolean => {
  const { store } = world
  const left = store.list('pods').items.filter(pod => isOn(pod, machine) && mustGo(pod))
  if (left.some(isLeaving)) return true
  if (left.length > 0) return left.every(pod => isHeld(world, pod))
  return store.list('volumeattachments.storage.k8s.io').items.some(({ spec }) => (spec as { nodeName?: string }).nodeName === machine.name)
}

const isOn = ({ spec }: KubeObject, machine: Machine): boolean => (spec as { nodeName?: string }).nodeName === machine.name
const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined
const mustGo = ({ metadata, status }: KubeObject): boolean => {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)?.kind
  const { phase } = (status ?? {}) as { phase?: string }
  return owner !== 'DaemonSet' && owner !== 'Node' && phase !== 'Succeeded' && phase !== 'Failed'
}
const isHeld = ({ store }: World, pod: KubeObject): boolean =>
  conditionOf(pod, 'Ready')?.status === 'True' &&
  store.list('poddisruptionbudgets.policy').items.some(({ metadata, spec, status }) => {
    const labels = (spec as { selector?: { matchLabels?: Record<string, string> } }).selector?.matchLabels ?? {}
    const covers =
      metadata.namespace === pod.metadata.namespace && Object.entries(labels).every(([key, value]) => pod.metadata.labels?.[key] === value)
    return covers && ((status as { disruptionsAllowed?: number } | undefined)?.disruptionsAllowed ?? 0) < 1
  })

/** The steps that may go on only after they have been seen to be in order for a while; for the sake of etcd, so on control planes only. */
const isMandated = ({ schedule }: World, { role }: Machine, { step, stableSince }: Target, scale: number): boolean => {
  if (stableSince === undefined || role !== 'controlplane') return false
  const { etcdStableMs, etcdSampleMs } = timing(scale)
  return schedule.now() < Date.parse(stableSince) + (step === 'rejoin' ? etcdStableMs : etcdSampleMs)
}
