// What is asserted in every case: watched while the story runs, whatever it is about.
import { ANNOTATION, leaseName, operationHolder } from '../../src/api/names.ts'
import { allowedUnavailable } from '../../src/core/rollout-order.ts'
import type { OperationStatus } from '../../src/api/talos-operation.ts'
import { CLUSTER, NAMESPACE, type Story } from '../../src/storm/story.ts'
import { imageVersion } from '../../src/core/component-image.ts'
import { versionOrder } from '../../src/core/versions.ts'
import type { JournalEntry } from '../../src/world/journal.ts'
import type { Component } from '../../src/world/kubernetes-config.ts'
import type { Machine } from '../../src/world/machine.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import type { KubeObject } from '../../src/world/store.ts'

/** What a case does on purpose, and only that. */
export type Allowed = {
  /** How often an operation was tried: one, and one more for each retry. */
  readonly attempts?: number
  /** Times that a controller was killed: the answer of an installer may be lost with it. */
  readonly deaths?: number
  /** Machines that the case itself takes away. */
  readonly away?: readonly string[]
  /** Control planes whose Node the case deletes: they serve all the same. */
  readonly nodeless?: readonly string[]
  /** One or two control planes, acknowledged: their restart is an outage. */
  readonly apiOutage?: boolean
  /** The pods of these are not drained: a single node, or the policy skip. */
  readonly undrained?: boolean
  /** Workloads whose pods are put back on the cordoned Node, which they tolerate. */
  readonly putBack?: readonly string[]
  /** Begins of the names of volumes whose pods stay. */
  readonly attached?: readonly string[]
  /** The policy force: what would not be evicted is deleted. */
  readonly deletes?: boolean
  /** Machines that somebody holds at what they run. */
  readonly held?: readonly string[]
  /** Machines that are broken in the end: their cordon stays. */
  readonly keepsCordon?: readonly string[]
}

/** Acts of ours that take something away from somebody. */
const TAKES = new Set([
  ...['reboot-requested', 'upgrade-requested', 'install-began', 'forfeit'],
  ...['shutdown-requested', 'reset-requested', 'service-restart', 'etcd-defragmented'],
])
/** Those after which nothing of it answers any more. */
const ENDS = new Set(['reboot-requested', 'upgrade-requested', 'shutdown-requested', 'reset-requested'])
const FENCED = new Set([
  ...['install', 'reboot', 'upgrade', 'forfeitLeadership', 'cordon', 'evict', 'deletePod', 'deleteNode'],
  ...['setComponentImage', 'applyManifests', 'applyConfiguration'],
  ...['shutdown', 'reset', 'restartService', 'defragment', 'disarmAlarms', 'leaveEtcd', 'removeMember'],
])
const MOST_BYTES = 64 * 1024

export type Watch = {
  /** What the case itself does to a machine, as a person at its console would: not to be laid at the controller's door. */
  readonly byHand: (run: () => void) => void
  /** Everything that was wrong, in the end; empty where nothing was. */
  readonly verdict: () => readonly string[]
}

/** @param self The controller's own pod, which goes with its machine. */
export const watchAlways = (story: Story, allowed: Allowed, self?: string): Watch => {
  const { world } = story
  const wrong: string[] = []
  const told = new Set<string>()
  let isByHand = false
  let byHand = 0
  const object = (what: string): void => {
    if (told.has(what)) return
    told.add(what)
    wrong.push(`${((world.schedule.now() - begin) / 1000).toFixed(1)} ${what}`)
  }
  const begin = world.schedule.now()
  const tries = allowed.attempts ?? 1

  const isServing = (m: Machine): boolean => world.isUp(m) && m.staticPods && isConnected(world.etcd.memberOf(m))
  const isConnected = (member: ReturnType<typeof world.etcd.memberOf>): boolean => member !== undefined && world.etcd.isConnected(member)
  /** It was reset, and is none of the cluster any more. */
  const hasLeft = ({ name }: Machine): boolean => world.journal.of('wiped', name).length > 0 && !world.store.get(RESOURCE.nodes, '', name)
  const controlPlanesAway = (): readonly string[] =>
    world.machines.filter(m => m.role === 'controlplane' && !isServing(m) && !hasLeft(m)).map(m => m.name)

  const atMostOneAway = (): void => {
    if (allowed.apiOutage) return
    const away = controlPlanesAway().filter(name => !allowed.away?.includes(name) && !allowed.nodeless?.includes(name))
    if (away.length > 1) object(`control planes away together: ${away.join(', ')}`)
  }

  /** Made after the first pod of that Node was evicted. */
  const isSince = (node: string, pod: KubeObject): boolean =>
    Date.parse(pod.metadata.creationTimestamp) + 1000 > (world.journal.of('evicted', node)[0]?.at ?? Infinity)

  const podsOn = (node: string): readonly string[] =>
    world.store
      .list(RESOURCE.pods)
      .items.filter(pod => {
        const owner = pod.metadata.ownerReferences?.find(o => o.controller)?.kind
        const phase = (pod.status as { phase?: string } | undefined)?.phase
        const isHere = (pod.spec as { nodeName?: string }).nodeName === node
        const isPutBack = allowed.putBack?.includes(pod.metadata.labels?.app ?? '') === true && isSince(node, pod)
        const isLeft = isHere && owner !== 'DaemonSet' && owner !== 'Node' && phase !== 'Succeeded' && phase !== 'Failed' && !isPutBack
        // Where the kubelet is dead a pod that was asked to go can go no further.
        return isLeft && (pod.metadata.deletionTimestamp === undefined || world.machine(node).kubelet)
      })
      .map(pod => pod.metadata.name)

  const controlPlanes = world.machines.filter(m => m.role === 'controlplane')
  /** Nothing may be newer than any API server, and no two control planes may lack the same program. */
  const watchComponent = (name: string, detail: string): void => {
    const [component = '', image = ''] = detail.split(' ')
    const others = controlPlanes.filter(m => m.name !== name && m.pods.get(component as Component)?.isRunning === false)
    if (others.length > 0)
      object(`${component} of ${name} was given another image while that of ${others.map(m => m.name).join(', ')} did not run`)
    if (component === 'kube-apiserver') return
    const older = controlPlanes.filter(
      m => (versionOrder(imageVersion(m.pods.get('kube-apiserver')?.image ?? '') ?? '', imageVersion(image) ?? '') ?? 0) < 0,
    )
    if (older.length > 0) object(`${component} of ${name} became newer than kube-apiserver of ${older.map(m => m.name).join(', ')}`)
  }

  const notOurs = new Set<JournalEntry>()
  const watchEntry = (entry: JournalEntry): void => {
    const { machine: name, what, detail } = entry
    atMostOneAway()
    if (what === 'component-image' && !isByHand) watchComponent(name, detail)
    if (what === 'pod-deleted' && !allowed.deletes) object(`${name}: ${detail} was deleted instead of evicted`)
    if (isByHand) return void notOurs.add(entry)
    if (!TAKES.has(what)) return
    const machine = world.machine(name)
    if (machine.role === 'controlplane') {
      const others = controlPlanesAway().filter(other => other !== name && !allowed.nodeless?.includes(other))
      if (others.length > 0) object(`${what} on ${name} while ${others.join(', ')} was away`)
    }
    if (ENDS.has(what) && !allowed.undrained) {
      const left = podsOn(name).filter(pod => pod !== self)
      if (left.length > 0) object(`${what} on ${name} with pods still on it: ${left.join(', ')}`)
      const attached = world.store.list(RESOURCE.attachments).items.filter(v => {
        const { nodeName, source } = v.spec as { nodeName: string; source: { persistentVolumeName: string } }
        return nodeName === name && allowed.attached?.some(begin => source.persistentVolumeName.startsWith(begin)) !== true
      })
      if (attached.length > 0 && machine.kubelet) object(`${what} on ${name} with volumes still attached`)
    }
  }
  world.journal.onEntry(watchEntry)

  world.calls.intercept(({ port, name, target }) => {
    if ((port === 'talos' || port === 'kube') && FENCED.has(name)) {
      const lease = world.store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
      const holder = (lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity ?? ''
      const operations = world.store.list(ICHOR.operations).items
      if (!operations.some(o => operationHolder(NAMESPACE, o.metadata.name) === holder))
        object(`${name} on ${target} without the cluster lock`)
    }
    return undefined
  })

  const secrets = (): readonly string[] =>
    world.store.list(RESOURCE.secrets).items.flatMap(secret => Object.values((secret.data ?? {}) as Record<string, string>))
  const watchObject = (what: string, found: KubeObject): void => {
    const text = JSON.stringify(found)
    if (text.length > MOST_BYTES) object(`${what} ${found.metadata.name} has ${text.length} bytes`)
    if (/-----BEGIN|\beyJ[\w-]{10,}\.eyJ/.test(text) || secrets().some(secret => secret !== '' && text.includes(secret)))
      object(`${what} ${found.metadata.name} carries a secret`)
  }
  const watchStatus = ({ phase, message, waiting, failureReason }: OperationStatus): void => {
    if (phase !== undefined && !message) object(`the operation is ${phase} without a word`)
    if (waiting && !waiting.since) object(`it waits for ${waiting.for}, since nobody knows when`)
    if (phase === 'Paused' && failureReason !== undefined && (message?.length ?? 0) < 20) object(`${failureReason}: ${message}`)
  }
  let events = 0
  const writes: number[] = []
  for (const resource of [ICHOR.operations, ICHOR.machines, ICHOR.clusters, RESOURCE.events]) {
    world.store.watch(resource, undefined, event => {
      watchObject(resource, event.object)
      if (resource === RESOURCE.events && event.type === 'ADDED') events++
      if (resource !== ICHOR.operations) return
      const now = world.schedule.now()
      writes.push(now)
      while ((writes[0] ?? now) < now - 60_000) writes.shift()
      if (writes.length > 120) object('an operation was written more than 120 times in a minute')
      const status = (event.object['status'] ?? {}) as OperationStatus
      watchStatus(status)
      const { maxUnavailable } = event.object.spec as { maxUnavailable: number | string }
      const limit = allowedUnavailable(maxUnavailable, world.machines.filter(m => m.role === 'worker').length)
      const open = (status.machines ?? []).filter(t => t.role === 'worker' && t.phase === 'Running').map(t => t.hostname ?? t.name)
      // One that only pulls is not away.
      if (open.length > limit && status.stage !== 'pull') object(`workers open together: ${open.join(', ')}`)
    })
  }

  const inTheEnd = (): void => {
    const count = (what: string, name: string): number => world.journal.of(what, name).length
    for (const { name } of world.machines) {
      const installs = count('install-began', name) - count('install-cut', name)
      if (installs > tries + (allowed.deaths ?? 0)) object(`${name}: ${installs} installs in ${tries} tries`)
      const reboots = count('reboot-requested', name) + count('upgrade-requested', name)
      if (reboots > tries + byHand) object(`${name}: ${reboots} reboots in ${tries} tries`)
      cordonOf(name)
    }
    const operations = world.store.list(ICHOR.operations).items
    const statuses = operations.map(o => (o['status'] ?? {}) as OperationStatus)
    const stages = Math.max(1, ...statuses.map(({ stages: past = [] }) => past.length + 1))
    const perMachine = Math.max(6, 2 * stages)
    if (events > 20 + perMachine * tries * world.machines.length + 10 * (allowed.deaths ?? 0)) object(`${events} events`)
    if (statuses.length > 0 && statuses.every(s => s.failureReason === 'PreflightRefused')) refused()
    for (const operation of operations) {
      const status = (operation['status'] ?? {}) as OperationStatus
      if (status.phase === 'Completed') completed(status, operation)
    }
  }

  const cordonOf = (name: string): void => {
    const node = world.store.get(RESOURCE.nodes, '', name)
    if (!node) return
    const isCordoned = (node.spec as { unschedulable?: boolean }).unschedulable === true
    const isOurs = node.metadata.annotations?.[ANNOTATION.cordonedBy] !== undefined
    const foreign = world.journal
      .entries()
      .filter(e => e.machine === name && e.detail === 'by a person' && (e.what === 'cordon' || e.what === 'uncordon'))
    const isForeign = foreign.at(-1)?.what === 'cordon'
    if (isForeign && !isCordoned) object(`${name}: a person's cordon was lifted`)
    if (isOurs && !allowed.keepsCordon?.includes(name)) object(`${name}: our cordon was left behind`)
    if (isCordoned && !isForeign && !isOurs) object(`${name}: it is cordoned and nobody says by whom`)
  }

  const refused = (): void => {
    const touched = world.journal
      .entries()
      .filter(e => (TAKES.has(e.what) && !notOurs.has(e)) || (e.detail === 'by Ichor' && e.what.includes('cordon')) || e.what === 'pulled')
    for (const { what, machine } of touched) object(`refused, and yet ${what} on ${machine}`)
    const lease = world.store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    if ((lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity) object('refused, and yet it holds the cluster lock')
  }

  const completed = (status: OperationStatus, operation: KubeObject): void => {
    const { talos, kubernetes } = operation.spec as { talos?: { version: string }; kubernetes?: { version: string } }
    if (kubernetes) everywhere(kubernetes.version, status)
    if (!talos) return
    const { version } = talos
    for (const target of status.machines ?? []) {
      const machine = world.machines.find(m => m.name === target.node || m.hostname === target.hostname)
      const runs = machine?.disk.slots[machine.disk.booted]?.version
      if (target.phase === 'Completed' && runs !== version) object(`Completed, but ${target.hostname} runs ${runs}`)
      if (target.phase !== 'Completed' && target.phase !== 'Skipped') object(`Completed, but ${target.hostname} is ${target.phase}`)
    }
  }

  const everywhere = (version: string, { machines = [] }: OperationStatus): void => {
    for (const machine of world.machines) {
      for (const [component, { image, isRunning }] of machine.pods)
        if (imageVersion(image) !== version || !isRunning) object(`Completed, but ${component} of ${machine.name} is ${image}`)
      const isHeld = allowed.held?.includes(machine.name) === true
      if (!isHeld && imageVersion(machine.kubeletRun.image) !== version)
        object(`Completed, but the kubelet of ${machine.name} is ${machine.kubeletRun.image}`)
    }
    if (machines.some(t => t.phase === 'Pending' || t.phase === 'Running')) object('Completed, but a machine of its last stage is not done')
  }

  return {
    byHand: run => {
      isByHand = true
      byHand++
      run()
      isByHand = false
    },
    verdict: () => {
      inTheEnd()
      return wrong
    },
  }
}
