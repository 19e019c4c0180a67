import { ANNOTATION } from '../../api/names.ts'
import { durationMs } from '../../api/duration.ts'
import { RESOURCE, conditionOf } from '../../world/objects.ts'
import type { Machine } from '../../world/machine.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { KubeObject } from '../../world/store.ts'
import type { Checker } from '../checker.ts'
import type { Scene } from '../scene.ts'
import { OWN_POD } from '../setting.ts'
import { TAKES_AWAY } from './control-planes.ts'

/** What must not be done to Nodes and the pods on them. */

const nodeNameOf = (object: KubeObject): string | undefined => (object['spec'] as { nodeName?: string }).nodeName
const isCordoned = (node: KubeObject | undefined): boolean =>
  (node?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true

/** The volume is of a claim of the pod, in the names of the invented cluster. */
const uses = (pod: KubeObject, attachment: KubeObject): boolean => {
  const { volumes = [] } = pod['spec'] as { volumes?: readonly { name: string; persistentVolumeClaim?: { claimName: string } }[] }
  const { persistentVolumeName } = (attachment['spec'] as { source: { persistentVolumeName: string } }).source
  const claims = volumes.map(v => v.persistentVolumeClaim?.claimName ?? `${pod.metadata.name}-${v.name}`)
  return claims.some(claim => persistentVolumeName === `pv-${pod.metadata.namespace}-${claim}`)
}

/** When each pod or volume came to its node. */
const arrivals = (scene: Scene, resource: string): Map<string, number> => {
  const since = new Map<string, number>()
  for (const { metadata } of scene.world.store.list(resource).items) since.set(metadata.uid, Number.NEGATIVE_INFINITY)
  scene.world.store.watch(resource, undefined, ({ object, type }) => {
    if (type === 'DELETED') since.delete(object.metadata.uid)
    else if (nodeNameOf(object) !== undefined && !since.has(object.metadata.uid)) since.set(object.metadata.uid, scene.now())
  })
  return since
}

export const drainedFirst: Checker = {
  name: 'drained-before-it-goes',
  rule: 'I27',
  post: (scene, object) => {
    const { store } = scene.world
    const hasRoomBeside = (name: string): boolean =>
      store.list(RESOURCE.nodes).items.some(node => {
        const { taints = [] } = (node['spec'] ?? {}) as { taints?: readonly unknown[] }
        return node.metadata.name !== name && !isCordoned(node) && taints.length === 0 && conditionOf(node, 'Ready')?.status === 'True'
      })
    const podsSince = arrivals(scene, RESOURCE.pods)
    /** When the drain of each machine was begun last. */
    const begun = new Map<Machine, number>()
    scene.onOperation(({ before, after }) => {
      for (const target of after?.status.machines ?? []) {
        const was = before?.status.machines?.find(t => t.name === target.name)
        const machine = scene.machineOf(target)
        if (machine && target.step === 'drain' && (was?.step !== 'drain' || was.stepStartedAt !== target.stepStartedAt))
          begun.set(machine, scene.now())
      }
    })
    // By which a pod is told from those that came before the drain: what a wrong clock makes of that is no fault of the drain.
    const isClockOff = scene.stage.plan.strikes.some(s => s.family === 'clock')
    const isPutBack = (pod: KubeObject, machine: Machine): boolean => {
      const { tolerations = [] } = pod['spec'] as { tolerations?: readonly { key?: string; operator?: string }[] }
      const mayBe = tolerations.some(
        ({ key, operator }) => operator === 'Exists' && (key === undefined || key === 'node.kubernetes.io/unschedulable'),
      )
      const since = podsSince.get(pod.metadata.uid) ?? Infinity
      return mayBe && (isClockOff || since >= (begun.get(machine) ?? Infinity))
    }
    const volumesSince = arrivals(scene, RESOURCE.attachments)
    scene.onAct(({ what, machine, askedAt }) => {
      if (!TAKES_AWAY.has(what)) return
      const open = scene.openOn(machine)
      const drain = open?.target.goal?.['drain']
      const node = store.get(RESOURCE.nodes, '', machine.name)
      const wasReady = node && conditionOf(node, 'Ready')?.status === 'True'
      // Where no kubelet is there to end them, pods stay whatever one asks.
      if (drain === undefined || drain === 'none' || !machine.kubelet || !wasReady || !isCordoned(node)) return
      const seen = askedAt('podsOn', machine.name)
      const stays = (pod: KubeObject): boolean => {
        const owner = pod.metadata.ownerReferences?.find(o => o.controller)?.kind
        const isOwn = pod.metadata.namespace === OWN_POD.namespace && pod.metadata.name === OWN_POD.pod
        // Nobody would be there to go on if it could come back only to this very Node.
        return owner === 'DaemonSet' || owner === 'Node' || (isOwn && !hasRoomBeside(machine.name)) || isPutBack(pod, machine)
      }
      const here = store.list(RESOURCE.pods).items.filter(pod => {
        const phase = (pod['status'] as { phase?: string } | undefined)?.phase
        return nodeNameOf(pod) === machine.name && phase !== 'Succeeded' && phase !== 'Failed'
      })
      const left = here.filter(pod => !stays(pod) && (podsSince.get(pod.metadata.uid) ?? Infinity) < seen)
      if (left.length > 0) object(`${what} on ${machine.name} with ${left.map(p => p.metadata.name).join(', ')} still there`)
      const volumesSeen = askedAt('volumeAttachments', machine.name)
      const attached = store
        .list(RESOURCE.attachments)
        .items.filter(v => nodeNameOf(v) === machine.name && (volumesSince.get(v.metadata.uid) ?? Infinity) < volumesSeen)
        .filter(v => !here.some(pod => stays(pod) && uses(pod, v)))
      if (attached.length > 0) object(`${what} on ${machine.name} with ${attached.length} volumes attached`)
    })
  },
}

/** What was asked of the pods of a machine in one try of a step. */
type Asked = { readonly since: number; readonly pods: Set<string> }

export const evictedNotDeleted: Checker = {
  name: 'evicted-not-deleted',
  rule: 'cases',
  post: (scene, object) => {
    const { world } = scene
    const asked = new Map<string, Asked>()
    const isClockOff = scene.stage.plan.strikes.some(s => s.family === 'clock')
    const workOn = (name: string | undefined) => {
      const machine = world.machines.find(m => m.name === name)
      const open = machine && scene.openOn(machine)
      return open && { ...open, key: `${open.operation.metadata.uid} ${name} ${open.target.stepStartedAt}` }
    }
    scene.onCall(({ port, name, target }) => {
      if (port !== 'kube' || name !== 'evict') return
      const [namespace = '', pod = ''] = target.split('/')
      const found = world.store.get(RESOURCE.pods, namespace, pod)
      const key = workOn(found && nodeNameOf(found))?.key
      if (key === undefined) return
      const before = asked.get(key) ?? { since: scene.now(), pods: new Set() }
      asked.set(key, before)
      before.pods.add(target)
    })
    scene.onEntry(({ what, machine: name, detail }, isByHand) => {
      if (what !== 'pod-deleted' || isByHand) return
      const open = workOn(name)
      if (!open) return object(`${detail} on ${name} was deleted, and nobody works on that machine`)
      const { policy, timeout } = open.operation.spec.drain
      if (policy !== 'force') return object(`${detail} was deleted instead of evicted; the policy is ${policy}`)
      const tried = asked.get(open.key)
      if (!tried?.pods.has(detail)) return object(`${detail} was deleted, and nobody had asked for its eviction`)
      const triedMs = scene.now() - tried.since
      if (triedMs < durationMs(timeout) - 1000 && !isClockOff)
        object(`${detail} was deleted after evictions had been asked for in ${triedMs} ms; they have ${timeout}`)
    })
  },
}

export const foreignCordons: Checker = {
  name: 'foreign-cordons-stay',
  rule: 'I7',
  post: (scene, object) => {
    const { store } = scene.world
    const foreign = new Set<string>()
    scene.onEntry(({ what, machine: node, detail }) => {
      if (what === 'node-deleted') foreign.delete(node)
      // Talos goes by its own mark, which is left of its cordon where somebody has lifted that.
      if (what === 'uncordon' && detail === 'by Talos') foreign.delete(node)
      if (detail !== 'by a person') return
      // Told before it is done: one who cordons a Node that is cordoned already changes nothing that anybody could see.
      if (what === 'cordon' && !isCordoned(store.get(RESOURCE.nodes, '', node))) foreign.add(node)
      if (what === 'uncordon') foreign.delete(node)
    })
    store.watch(RESOURCE.nodes, undefined, ({ object: node, previous, type }) => {
      if (type !== 'MODIFIED' || scene.stage.isByHand() || !previous) return
      const was = previous.metadata.annotations?.[ANNOTATION.cordonedBy]
      const { name } = node.metadata
      if (!isCordoned(previous) && isCordoned(node)) return
      if (!isCordoned(previous) || isCordoned(node)) return
      if (previous.metadata.annotations?.['talos.dev/cordoned'] !== undefined) return
      if (was === undefined) return object(`${name} was uncordoned, and the cordon had no mark of ours`)
      if (foreign.has(name)) object(`a person's cordon of ${name} was lifted`)
    })
    return () => {
      for (const name of foreign) {
        const node = store.get(RESOURCE.nodes, '', name)
        if (node && !isCordoned(node)) object(`a person's cordon of ${name} is gone`)
      }
      for (const node of store.list(RESOURCE.nodes).items) {
        const { name, annotations } = node.metadata
        const isMarked = annotations?.[ANNOTATION.cordonedBy] !== undefined
        if (isCordoned(node) && !isMarked && !foreign.has(name) && annotations?.['talos.dev/cordoned'] === undefined)
          object(`${name} is cordoned, and nobody says by whom`)
      }
    }
  },
}

/** Steps during which the machine is to stay cordoned. */
const SHUT = new Set(['drain', 'reboot', 'upgrade', 'verify', 'node-ready', 'api-server', 'rejoin'])

export const cordonsReturn: Checker = {
  name: 'cordons-are-given-back',
  rule: 'I7',
  post: (scene, object) => {
    const { store } = scene.world
    // An operation that no list shows yet is known by the lock alone: where a hand has given that to another, it is taken for gone.
    const isStale = scene.stage.plan.strikes.some(({ family }) => family === 'stale')
    let isRobbed = false
    scene.onLock((_before, _after, isByHand) => {
      isRobbed ||= isByHand
    })
    store.watch(RESOURCE.nodes, undefined, ({ object: node, previous, type }) => {
      if (type !== 'MODIFIED' || scene.stage.isByHand() || !isCordoned(previous) || isCordoned(node)) return
      if (isStale && isRobbed) return
      const { [ANNOTATION.cordonedBy]: uid, ['talos.dev/cordoned']: byTalos } = previous?.metadata.annotations ?? {}
      // Our mark may be left of a cordon that somebody lifted before Talos set its own.
      if (byTalos !== undefined) return
      const operation = uid === undefined ? undefined : scene.stage.operations().find(o => o.metadata.uid === uid)
      const target = operation?.status.machines?.find(t => t.node === node.metadata.name || t.goal?.['node'] === node.metadata.name)
      if (!operation || target?.phase !== 'Running' || !SHUT.has(target.step ?? '')) return
      const isClosing =
        operation.spec.paused || operation.spec.cancelled || operation.metadata.deletionTimestamp || operation.status.phase === 'Paused'
      if (!isClosing) object(`${node.metadata.name} was uncordoned in the middle of its ${target.step}`)
    })
    return () => {
      for (const node of store.list(RESOURCE.nodes).items) {
        const uid = node.metadata.annotations?.[ANNOTATION.cordonedBy]
        // Without a TalosCluster nobody knows how to reach its Nodes.
        if (uid === undefined || store.list(ICHOR.clusters).items.length === 0) continue
        const machine = scene.world.machines.find(m => m.name === node.metadata.name)
        if (machine && scene.world.isUp(machine) && !staysCordoned(scene, machine, uid))
          object(`${node.metadata.name} is well, and our cordon was left on it`)
      }
    }
  },
}

/** Steps whose act sends a machine away. */
const GOES = new Set(['leave', 'reset', 'reboot', 'upgrade', 'shutdown'])

/**
 * Nothing may move to a machine that may go away at any moment, although it is there: it has left etcd, or was asked to wipe itself or to boot, and no
 * answer says for certain that it will not. Its cordon stays, and the operation, which has stopped, says so.
 */
export const staysCordoned = (scene: Scene, machine: Machine, uid: string): boolean => {
  const operation = scene.stage.operations().find(o => o.metadata.uid === uid)
  const target = operation && scene.targetOf(operation, machine)
  // What did not work is tried again later, by a clock that was wrong in up to an hour.
  if (Date.parse(target?.retryAt ?? '') > scene.now()) return true
  return target?.phase === 'Failed' && target.committed !== undefined && GOES.has(target.step ?? '') && operation?.status.phase === 'Paused'
}
