import type { ApiServer } from './api-server.ts'
import { withCordon } from './cordon.ts'
import { nodeIPsOf } from './kubelet.ts'
import { imageVersion, kubernetesConfigOf, nodeWishesOf } from './kubernetes-config.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { applyToNode } from './node-apply.ts'
import { RESOURCE, change, conditionOf, ensure, timestamp, withCondition } from './objects.ts'
import { releaseOf } from './releases.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import type { KubeObject } from './store.ts'

/** Set by Talos on a Node that it cordoned itself. */
const TALOS_CORDON = 'talos.dev/cordoned'

export type Nodes = {
  readonly of: (machine: Machine) => KubeObject | undefined
  /** The Node is this machine's: nobody else of that name wrote it after it. */
  readonly isOf: (machine: Machine) => boolean
  readonly isReady: (name: string) => boolean
  /** Whether pods may be placed there. */
  readonly isSchedulable: (name: string) => boolean
  /** The Node of a machine of a running cluster. */
  readonly create: (machine: Machine) => void
}

type NodeSpec = { unschedulable?: boolean }

const kubeletVersion = (site: Site, machine: Machine): string => imageVersion(machine.kubeletRun.image) + site.vendorTail(machine)

const nodeInfo = (site: Site, machine: Machine) => {
  const version = versionOf(machine)
  return {
    machineID: machine.nodeID.slice(0, 32).toLowerCase(),
    systemUUID: machine.uuid,
    bootID: machine.bootID,
    kernelVersion: releaseOf(version).kernel,
    osImage: `Talos (${version})`,
    containerRuntimeVersion: 'containerd://2.2.5',
    kubeletVersion: kubeletVersion(site, machine),
    kubeProxyVersion: '',
    operatingSystem: 'linux',
    architecture: machine.arch,
  }
}

const addressesOf = (site: Site, machine: Machine) => [
  ...nodeIPsOf(machine).map(address => ({ type: site.addressType(machine), address })),
  { type: 'Hostname', address: machine.hostname },
]

/** What the kubelet says besides Ready, all well. */
const AT_EASE = [
  ['MemoryPressure', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
  ['DiskPressure', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
  ['PIDPressure', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
].map(([type = '', reason, message]) => ({ type, status: 'False', reason, message }))

type KnownStatus = { nodeInfo?: ReturnType<typeof nodeInfo>; addresses?: unknown }

const DISK_FULL = { type: 'DiskPressure', status: 'True', reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' } as const
/** How often a kubelet looks at its disk. */
const HOUSEKEEPING_MS = 10_000

const READY = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' } as const
const NOT_READY = {
  type: 'Ready',
  status: 'False',
  reason: 'KubeletNotReady',
  message: 'container runtime network not ready: cni plugin not initialized',
} as const
const UNKNOWN = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' } as const

/**
 * What kubelets, the node monitor and Talos' own cordon do to Node objects: a Node that vanished stays Ready for the monitor's grace, and what it says
 * of the machine is written only when the kubelet runs again.
 */
export const createNodes = (site: Site, api: ApiServer): Nodes => {
  const { store, schedule, durations, journal } = site
  /** When each machine's kubelet was heard of last. */
  const lastDown = new Map<Machine, number>()
  const applied = new WeakMap<Machine, string>()
  /** By the name of the Node: where two machines have one name, whoever wrote last. */
  const lastWriter = new Map<string, Machine>()

  const setReady = (machine: Machine, condition: Parameters<typeof withCondition>[2]): void => {
    const before = conditionOf(store.get(RESOURCE.nodes, '', machine.name), 'Ready')?.status
    change(store, RESOURCE.nodes, '', machine.name, node => ({
      ...node,
      status: { ...(node.status as object), conditions: withCondition(node, schedule.now(), condition) },
    }))
    if (before === condition.status) return
    journal.write(machine.name, 'node', condition.status === 'True' ? 'Ready' : condition.status === 'False' ? 'NotReady' : 'Unknown')
    site.tell(machine, 'node')
  }

  /** Talos' own part of the Node. A wish that is met already writes nothing. */
  const applyWishes = (machine: Machine): void => {
    const wishes = nodeWishesOf(site, machine)
    applied.set(machine, JSON.stringify(wishes))
    change(store, RESOURCE.nodes, '', machine.name, node => applyToNode(node, wishes))
  }

  const create = (machine: Machine): void => {
    lastWriter.set(machine.name, machine)
    const labels = {
      'beta.kubernetes.io/arch': machine.arch,
      'beta.kubernetes.io/os': 'linux',
      'kubernetes.io/arch': machine.arch,
      'kubernetes.io/hostname': machine.name,
      'kubernetes.io/os': 'linux',
    }
    ensure(store, RESOURCE.nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: machine.name, labels, annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' } },
      spec: {},
      status: {
        addresses: addressesOf(site, machine),
        capacity: { cpu: '4', memory: '8050604Ki', pods: '110' },
        allocatable: { cpu: '3950m', memory: '7511980Ki', pods: '110' },
        conditions: AT_EASE.map(condition => ({ ...condition, lastTransitionTime: timestamp(schedule.now()) })),
        nodeInfo: nodeInfo(site, machine),
      },
    })
    applyWishes(machine)
    setReady(machine, READY)
  }

  const writeWhatItIs = (machine: Machine): void => {
    lastWriter.set(machine.name, machine)
    change(store, RESOURCE.nodes, '', machine.name, node => ({
      ...node,
      status: { ...(node.status as object), addresses: addressesOf(site, machine), nodeInfo: nodeInfo(site, machine) },
    }))
    applyWishes(machine)
  }

  /** The kubelet writes its Node: first what it is, then, perhaps later, that it is ready. */
  const register = (machine: Machine): void => {
    if (!store.get(RESOURCE.nodes, '', machine.name)) {
      create(machine)
      setReady(machine, NOT_READY)
    }
    writeWhatItIs(machine)
    journal.write(machine.name, 'node-boot', machine.bootID)
    // Some kubelets find the network ready at their first look, others say for a while that it is not.
    if (conditionOf(store.get(RESOURCE.nodes, '', machine.name), 'Ready')?.status !== 'True' || schedule.random.chance(0.5))
      setReady(machine, NOT_READY)
    site.tell(machine, 'node')
    later(site, machine, durations.draw('nodeReady'), () => reportReady(machine))
  }
  const reportReady = (machine: Machine): void =>
    api.whenAvailable(() => {
      if (machine.kubelet && !machine.cut) setReady(machine, READY)
    })

  const reportDisk = (machine: Machine): void => {
    if (!machine.kubelet || machine.cut) return
    const isFull = site.faults.of(machine).diskFull
    const condition = isFull ? DISK_FULL : AT_EASE.find(({ type }) => type === DISK_FULL.type)
    if (!condition) return
    change(store, RESOURCE.nodes, '', machine.name, node => ({
      ...node,
      status: { ...(node.status as object), conditions: withCondition(node, schedule.now(), condition) },
    }))
  }

  const cordonByTalos = (machine: Machine, on: boolean): void =>
    api.whenAvailable(() => {
      change(store, RESOURCE.nodes, '', machine.name, node => {
        const spec = node.spec as NodeSpec
        const { [TALOS_CORDON]: mark, ...others } = node.metadata.annotations ?? {}
        if (on === (spec.unschedulable === true) || (!on && mark === undefined)) return node
        journal.write(machine.name, on ? 'cordon' : 'uncordon', 'by Talos')
        const annotations = on ? { ...others, [TALOS_CORDON]: 'true' } : others
        return withCordon({ ...node, metadata: { ...node.metadata, annotations } }, on, 'talos', timestamp(store.now()))
      })
    })

  site.listen((machine, what) => {
    const { life } = machine
    if (what === 'kubelet-up') {
      const status = store.get(RESOURCE.nodes, '', machine.name)?.status as KnownStatus | undefined
      const known = status?.nodeInfo
      const isSameBoot = known?.bootID === machine.bootID
      const isSamePlace = JSON.stringify(status?.addresses) === JSON.stringify(addressesOf(site, machine))
      // A network that was mended: the kubelet never stopped and goes on posting.
      if (isSameBoot && isSamePlace && known.kubeletVersion === kubeletVersion(site, machine))
        return void later(site, machine, durations.draw('nodeReady'), () => reportReady(machine))
      if (site.faults.of(machine).kubeletNeverRegisters || !kubernetesConfigOf(site, machine).registersNode) return
      later(site, machine, durations.draw('registerNode'), () => {
        api.whenAvailable(() => {
          if (machine.life !== life || !machine.kubelet || machine.cut) return
          if (!isSameBoot) return register(machine)
          // Another kubelet under pods that go on: it finds the network ready.
          writeWhatItIs(machine)
          setReady(machine, READY)
        })
      })
    }
    if (what === 'config' && machine.kubelet && store.get(RESOURCE.nodes, '', machine.name)) {
      const wished = JSON.stringify(nodeWishesOf(site, machine))
      if (wished === applied.get(machine)) return
      later(site, machine, durations.draw('react'), () => api.whenAvailable(() => applyWishes(machine)))
    }
    if (what === 'disk') later(site, machine, durations.fixed(HOUSEKEEPING_MS), () => api.whenAvailable(() => reportDisk(machine)))
    if (what === 'kubelet-down') {
      const missed = schedule.now()
      lastDown.set(machine, missed)
      schedule.after(durations.draw('nodeMonitorGrace'), () => {
        const heard = machine.kubelet && !machine.cut && machine.powered
        if (heard || missed !== lastDown.get(machine)) return
        api.whenAvailable(() => {
          if ((!machine.kubelet || machine.cut) && nodes.isOf(machine)) setReady(machine, UNKNOWN)
        })
      })
    }
    if (what === 'stage') {
      if (machine.stage === 'upgrading' || machine.stage === 'shutting down' || machine.stage === 'resetting') cordonByTalos(machine, true)
      if (machine.stage === 'running') cordonByTalos(machine, false)
    }
  })
  const nodes: Nodes = {
    of: machine => store.get(RESOURCE.nodes, '', machine.name),
    isOf: machine => (lastWriter.get(machine.name) ?? machine) === machine,
    isReady: name => conditionOf(store.get(RESOURCE.nodes, '', name), 'Ready')?.status === 'True',
    isSchedulable: name => (store.get(RESOURCE.nodes, '', name)?.spec as NodeSpec | undefined)?.unschedulable !== true,
    create,
  }
  return nodes
}
