import { hashOf } from '../../world/static-pods.ts'
import type { KubeObject } from '../../world/store.ts'
import type { Machine } from '../../world/machine.ts'
import { RESOURCE } from '../../world/objects.ts'
import type { Site } from '../../world/site.ts'
import { programOf, type Program } from './programs.ts'
import { hexOf, share, swing } from './steady.ts'

/** A process, with what it takes of its machine. */
export type Process = Program & {
  readonly name: string
  readonly pid: number
  readonly ppid: number
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** Path below the root of the control groups. */
  readonly cgroup: string
  /** Of the pod, where it has a network of its own. */
  readonly network: string
}

/** A container of Kubernetes; the first of each pod is its sandbox. */
export type PodContainer = {
  readonly process: Process
  /** 64 hexadecimal digits. */
  readonly id: string
  readonly name: string
  readonly image: string
  readonly isSandbox: boolean
}

export type RunningPod = {
  /** `namespace/name`. */
  readonly name: string
  readonly uid: string
  /** Name of its network namespace; empty where it has the machine's. */
  readonly network: string
  readonly containers: readonly PodContainer[]
}

export type Running = {
  /** All processes, the first first. */
  readonly processes: readonly Process[]
  /** By id of the service; those that are a part of machined are not among them. */
  readonly services: ReadonlyMap<string, Process>
  readonly pods: readonly RunningPod[]
}

const MiB = 1024 ** 2

/** Bytes that a process holds at a moment. */
export const memoryOf = ({ name, pid, memoryMiB }: Process, nowMs: number): number =>
  Math.round(memoryMiB * MiB * (0.95 + 0.1 * share(name, pid)) * swing(nowMs, name, pid))

/** Seconds of one core that a process has used since its start; it only grows. */
export const cpuSecondsOf = ({ name, pid, cores, startedAt }: Process, nowMs: number): number =>
  (Math.max(0, nowMs - startedAt) / 1000) * cores * (0.8 + 0.4 * share(pid, name))

/** Where each service's process lives; what is not here is a part of machined. */
const GROUPS: Readonly<Record<string, string>> = {
  ...{ containerd: 'system/runtime', cri: 'podruntime/runtime', apid: 'system/apid', trustd: 'system/trustd' },
  ...{ udevd: 'system/udevd', dashboard: 'system/dashboard', etcd: 'podruntime/etcd', kubelet: 'podruntime/kubelet' },
}
/** Services in containers, by the service that runs the containers. */
const RUNTIMES: Readonly<Record<string, string>> = { apid: 'containerd', trustd: 'containerd', etcd: 'cri', kubelet: 'cri' }

const LAST_PID = 32_768
const FIRST_PID = 1000

/** Gives each process a number that it keeps, whoever comes and goes beside it. */
const createPids = (machine: Machine): ((name: string, startedAt: number) => number) => {
  const taken = new Set<number>()
  return (name, startedAt) => {
    let pid = FIRST_PID + Math.floor(share(machine.bootID, name, startedAt) * (LAST_PID - FIRST_PID))
    while (taken.has(pid)) pid = pid + 1 < LAST_PID ? pid + 1 : FIRST_PID
    taken.add(pid)
    return pid
  }
}

/** When the service began to run. What ran already when the world began has run since the boot. */
const startedAtOf = (site: Site, machine: Machine, id: string): number => {
  const at = machine.services
    .get(id)
    ?.events.findLast(({ state, message }) => state === 'Running' && !message.startsWith('Health check'))?.at
  const began = site.schedule.now() - site.schedule.monotonic()
  return at === undefined || at <= began ? machine.bootedAt : at
}

type Pod = {
  readonly name: string
  readonly uid: string
  readonly hostNetwork: boolean
  /** When its sandbox came up. */
  readonly startedAt: number
  readonly containers: readonly { readonly name: string; readonly image: string; readonly startedAt: number }[]
}

type PodSpec = {
  readonly nodeName?: string
  readonly hostNetwork?: boolean
  readonly containers?: readonly { readonly name: string; readonly image: string }[]
}
type PodStatus = {
  readonly startTime?: string
  readonly containerStatuses?: readonly { readonly name: string; readonly state?: { readonly running?: { readonly startedAt?: string } } }[]
}

/** What the API says of a pod, as far as it is of this life of the machine: it goes on to show what an earlier one ran. */
const podOf = (machine: Machine, pod: KubeObject): Pod => {
  const spec = pod.spec as PodSpec
  const { startTime = '', containerStatuses: statuses = [] } = (pod.status ?? {}) as PodStatus
  // The API tells whole seconds.
  const isOfThisLife = (at: number): boolean => at >= Math.floor(machine.bootedAt / 1000) * 1000
  const containers = (spec.containers ?? []).flatMap(({ name, image }) => {
    const started = Date.parse(statuses.find(status => status.name === name)?.state?.running?.startedAt ?? '')
    return isOfThisLife(started) ? [{ name, image, startedAt: started }] : []
  })
  const first = Math.min(...containers.map(({ startedAt }) => startedAt))
  const ready = Date.parse(startTime)
  const { namespace = '', name, uid } = pod.metadata
  return {
    ...{ name: `${namespace}/${name}`, uid, hostNetwork: spec.hostNetwork === true, containers },
    startedAt: isOfThisLife(ready) ? Math.min(ready, first) : first,
  }
}

/** The kubelet knows them by a hash, whatever the API shows of them. */
const staticPodsOf = ({ name: node, pods }: Machine): readonly Pod[] =>
  [...pods].flatMap(([name, pod]) => {
    const { image, isRunning, startedAt } = pod
    if (!isRunning) return []
    const containers = [{ name, image, startedAt }]
    return [{ name: `kube-system/${name}-${node}`, uid: hashOf(pod), hostNetwork: true, startedAt, containers }]
  })

const isMirror = ({ metadata }: KubeObject): boolean => metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined

const podsOf = (site: Site, machine: Machine): readonly Pod[] => {
  if (machine.services.get('cri')?.state !== 'Running') return []
  const others = site.store
    .list(RESOURCE.pods)
    .items.filter(pod => (pod.spec as PodSpec).nodeName === machine.name && !isMirror(pod))
    .map(pod => podOf(machine, pod))
    .filter(({ containers }) => containers.length > 0)
  return [...staticPodsOf(machine), ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

const PAUSE_IMAGE = 'registry.k8s.io/pause:3.10.1'

/** Everything that runs on a machine now: its services as processes, and the pods that its kubelet has started. */
export const runningOn = (site: Site, machine: Machine): Running => {
  const pidOf = createPids(machine)
  const init: Process = {
    ...programOf('machined'),
    ...{ name: 'machined', pid: 1, ppid: 0, startedAt: machine.bootedAt, cgroup: 'init', network: '' },
  }
  const processes: Process[] = [init]
  const add = (name: string, key: string, parent: Process, where: Pick<Process, 'startedAt' | 'cgroup' | 'network'>): Process => {
    const process = { ...programOf(name), name, pid: pidOf(key, where.startedAt), ppid: parent.pid, ...where }
    processes.push(process)
    return process
  }

  const services = new Map<string, Process>([['machined', init]])
  // Those that run containers come before what runs in them.
  const ids = Object.keys(GROUPS).filter(id => machine.services.get(id)?.state === 'Running')
  for (const id of ids) {
    const where = { startedAt: startedAtOf(site, machine, id), network: '' }
    const runtime = RUNTIMES[id]
    const runtimeGroup = GROUPS[runtime ?? ''] ?? ''
    const parent = runtime === undefined ? init : add('containerd-shim', `shim of ${id}`, init, { ...where, cgroup: runtimeGroup })
    services.set(id, add(id, id, parent, { ...where, cgroup: GROUPS[id] ?? '' }))
  }

  const pods = podsOf(site, machine).map((pod): RunningPod => {
    const network = pod.hostNetwork
      ? ''
      : `cni-${hexOf(8, pod.uid)}-${hexOf(4, pod.uid, 1)}-${hexOf(4, pod.uid, 2)}-${hexOf(4, pod.uid, 3)}-${hexOf(12, pod.uid, 4)}`
    const since = pod.startedAt
    const group = `kubepods/${pod.name.startsWith('kube-system/') ? 'burstable' : 'besteffort'}/pod${pod.uid}`
    const shim = add('containerd-shim', `shim of ${pod.uid}`, init, { startedAt: since, cgroup: 'podruntime/runtime', network: '' })
    const one = (name: string, label: string, image: string, startedAt: number, isSandbox: boolean): PodContainer => {
      const id = hexOf(64, machine.bootID, pod.uid, label, startedAt)
      return { id, name: label, image, isSandbox, process: add(name, id, shim, { startedAt, cgroup: `${group}/${id}`, network }) }
    }
    return {
      ...{ name: pod.name, uid: pod.uid, network },
      containers: [
        one('pause', pod.name, PAUSE_IMAGE, since, true),
        ...pod.containers.map(({ name, image, startedAt }) => one(name, name, image, startedAt, false)),
      ],
    }
  })
  return { processes, services, pods }
}
