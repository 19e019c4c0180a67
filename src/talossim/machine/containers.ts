import { ContainerDriver } from '../../../proto/gen/common/common_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import { RESOURCE, change, timestamp } from '../../world/objects.ts'
import { setServiceHealth, setServiceState } from '../../world/services.ts'
import type { Call } from '../call.ts'
import { unary } from '../dispatch.ts'
import { cpuSecondsOf, memoryOf, runningOn, type Process } from './running.ts'

const methods = MachineService.method

/** The namespace of the pods. */
export const KUBERNETES = 'k8s.io'
/** What the containerd of the system runs; etcd and the kubelet are in the other one, which no driver shows. */
const SYSTEM_CONTAINERS: readonly string[] = ['apid', 'trustd']

/** A container as the API names it. */
export type Named = {
  readonly display: string
  readonly podName: string
  readonly name: string
  readonly internalId: string
  readonly uid: string
  readonly image: string
  readonly status: string
  readonly network: string
  readonly isSandbox: boolean
  readonly process: Process
}

const systemContainers = ({ site, machine }: Call): readonly Named[] => {
  const { services } = runningOn(site, machine)
  return SYSTEM_CONTAINERS.flatMap(id => {
    const process = services.get(id)
    const names = { display: id, podName: id, name: id, internalId: id, uid: '' }
    // They run from a folder of the machine's own file system, not from an image.
    return process ? [{ ...names, image: '', status: 'RUNNING', network: '', isSandbox: false, process }] : []
  })
}

const podContainers = ({ site, machine }: Call, driver: ContainerDriver): readonly Named[] =>
  runningOn(site, machine).pods.flatMap(pod =>
    pod.containers.map(({ id, name, image, isSandbox, process }): Named => {
      const isCri = driver === ContainerDriver.CRI
      const inPod = isCri ? `${pod.name}:${name}:${id.slice(0, 12)}` : `${pod.name}:${name}`
      return {
        ...{ display: isSandbox ? pod.name : inPod, podName: pod.name, name, internalId: id, image, isSandbox, process },
        uid: isSandbox && isCri ? pod.uid : '',
        status: isCri ? (isSandbox ? 'SANDBOX_READY' : 'CONTAINER_RUNNING') : 'RUNNING',
        network: isSandbox && isCri ? pod.network : '',
      }
    }),
  )

/** What a driver shows of a namespace. */
export const containersIn = (call: Call, namespace: string, driver: ContainerDriver): Answer<readonly Named[]> => {
  if (driver === ContainerDriver.CRI && namespace !== KUBERNETES)
    return refuse('Unknown', 'CRI inspector is supported only for K8s namespace')
  if (namespace === KUBERNETES) return answer(podContainers(call, driver))
  return answer(namespace === 'system' ? systemContainers(call) : [])
}

/** One container by what the API calls it; by the CRI also without the end of its id. */
export const containerNamed = (call: Call, namespace: string, driver: ContainerDriver, id: string): Answer<Named> => {
  const there = containersIn(call, namespace, driver)
  if (!there.ok) return there
  const found = there.value.find(({ display }) => display === id || (id.split(':').length === 2 && display.startsWith(`${id}:`)))
  return found ? answer(found) : refuse('Unknown', `container ${JSON.stringify(id)} not found`)
}

const NANO = 1e9

const restartInPod = ({ site, machine }: Call, { podName, name }: Named): Answer<void> => {
  const [namespace = '', pod = ''] = podName.split('/')
  type Status = { name: string; restartCount?: number; state?: object }
  const at = timestamp(site.schedule.now())
  const changed = change(site.store, RESOURCE.pods, namespace, pod, now => {
    const { containerStatuses = [], ...status } = now.status as { containerStatuses?: readonly Status[] }
    const restarted = containerStatuses.map(one =>
      one.name === name ? { ...one, restartCount: (one.restartCount ?? 0) + 1, state: { running: { startedAt: at } } } : one,
    )
    return { ...now, status: { ...status, containerStatuses: restarted } }
  })
  if (changed) site.journal.write(machine.name, 'container-restarted', `${podName}:${name}`)
  return answer(undefined)
}

const restart = (call: Call, named: Named): Answer<void> => {
  const { site, machine } = call
  if (named.podName === 'trustd') {
    setServiceState(
      site,
      machine,
      'trustd',
      'Waiting',
      'Error running Containerd(trustd), going to restart forever: task "trustd" failed: exit code 143',
    )
    setServiceState(site, machine, 'trustd', 'Running', `Started task trustd (PID ${named.process.pid}) for container trustd`)
    setServiceHealth(site, machine, 'trustd', true)
    return answer(undefined)
  }
  const isOwnPod =
    named.process.cgroup.startsWith('kubepods/') && !named.isSandbox && site.store.get('pods', ...placeOf(named)) !== undefined
  const isMirror = named.podName.endsWith(`-${machine.name}`) && named.podName.startsWith('kube-system/kube-')
  if (!isOwnPod || isMirror) return refuse('Unimplemented', `the simulation cannot restart ${named.display}`)
  return restartInPod(call, named)
}

const placeOf = ({ podName }: Named): readonly [namespace: string, name: string] => {
  const [namespace = '', name = ''] = podName.split('/')
  return [namespace, name]
}

/** The containers of a machine: those of its own services that run in some, and those of its pods. */
export const containerMethods = {
  containers: unary(methods.containers, (call, { namespace, driver }) => {
    const there = containersIn(call, namespace, driver)
    if (!there.ok) return there
    const containers = there.value.map(({ display, podName, name, internalId, uid, image, status, network, process }) => ({
      ...{ namespace, id: display, name, podId: podName, internalId, uid, image, status },
      ...{ pid: process.pid, networkNamespace: network },
    }))
    return answer({ messages: [{ containers }] })
  }),
  stats: unary(methods.stats, (call, { namespace, driver }) => {
    const there = containersIn(call, namespace, driver)
    if (!there.ok) return there
    const now = call.site.schedule.now()
    const stats = there.value.map(({ display, podName, name, isSandbox, process }) => ({
      ...{ namespace, id: display, name, podId: podName },
      // The CRI measures no sandboxes.
      memoryUsage: BigInt(isSandbox ? 0 : memoryOf(process, now)),
      cpuUsage: BigInt(isSandbox ? 0 : Math.round(cpuSecondsOf(process, now) * NANO)),
    }))
    return answer({ messages: [{ stats }] })
  }),
  restart: unary(methods.restart, (call, { namespace, driver, id }) => {
    const named = containerNamed(call, namespace, driver, id)
    if (!named.ok) return named
    const restarted = restart(call, named.value)
    return restarted.ok ? answer({ messages: [{}] }) : restarted
  }),
}
