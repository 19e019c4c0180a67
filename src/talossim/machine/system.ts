import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { ContainerDriver, ContainerdNamespace } from '../../../proto/gen/common/common_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { releaseOf } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import type { StreamHandler } from '../call.ts'
import { streaming, unary } from '../dispatch.ts'

const methods = MachineService.method

const GiB = 1024n ** 3n
/** In KiB, as the kernel tells it. */
const MEMORY_KIB = 8n * 1024n * 1024n

const memory = () =>
  answer({
    messages: [
      { meminfo: { memtotal: MEMORY_KIB, memfree: MEMORY_KIB / 2n, memavailable: (MEMORY_KIB * 3n) / 4n, cached: MEMORY_KIB / 4n } },
    ],
  })

const mount = (filesystem: string, mountedOn: string, size: bigint) => ({ filesystem, mountedOn, size, available: (size * 7n) / 10n })

const mounts = ({ machine }: { readonly machine: Machine }) => {
  const stats =
    machine.platform === 'container'
      ? [mount('overlay', '/', 100n * GiB), mount('overlay', '/var', 100n * GiB)]
      : [mount('none', '/', GiB / 16n), mount('/dev/sda5', '/system/state', GiB / 10n), mount('/dev/sda6', '/var', 98n * GiB)]
  return answer({ messages: [{ stats }] })
}

/** Services that run in containers of their own; the others are part of machined. */
const CONTAINED: readonly string[] = ['apid', 'trustd', 'etcd', 'kubelet']
/** Of these, those that the CRI's containerd runs. */
const IN_CRI: readonly string[] = ['etcd', 'kubelet']

const imageOf = (site: Site, machine: Machine, id: string): string => {
  if (id === 'etcd') return `registry.k8s.io/etcd:v${releaseOf(versionOf(machine)).etcd}`
  return id === 'kubelet' ? `ghcr.io/siderolabs/kubelet:${site.kubernetes()}` : ''
}

/** Made of the service's place among them: the same until the machine has others. */
const pidOf = (machine: Machine, id: string): number => 100 + [...machine.services.keys()].toSorted().indexOf(id) * 7

const runningOf = (machine: Machine): readonly string[] =>
  [...machine.services.values()]
    .filter(service => service.state === 'Running')
    .map(service => service.id)
    .toSorted()

const containersOf = (site: Site, machine: Machine, namespace: string, driver: ContainerDriver) => {
  if (namespace !== 'system') return []
  return runningOf(machine)
    .filter(id => CONTAINED.includes(id) && (driver === ContainerDriver.CRI) === IN_CRI.includes(id))
    .map(id => ({ namespace, id, name: id, podId: '', image: imageOf(site, machine, id), pid: pidOf(machine, id), status: 'RUNNING' }))
}

const imageList: StreamHandler<typeof methods.imageList> = async ({ site, machine }, { namespace }, send) => {
  if (namespace === ContainerdNamespace.NS_UNKNOWN) return refuse('InvalidArgument', 'unsupported namespace NS_UNKNOWN')
  for (const name of machine.images.keys()) {
    const digest = site.registry.pinned(name).split('@')[1] ?? ''
    send({ name, digest, size: GiB / 8n, createdAt: timestampFromMs(machine.bootedAt) })
  }
  return answer(undefined)
}

/** What a machine is made of and runs: small, invented, and the same for all but for what runs. */
export const systemMethods = {
  memory: unary(methods.memory, memory),
  mounts: unary(methods.mounts, mounts),
  loadAvg: unary(methods.loadAvg, () => answer({ messages: [{ load1: 0.3, load5: 0.25, load15: 0.2 }] })),
  containers: unary(methods.containers, ({ site, machine }, { namespace, driver }) =>
    answer({ messages: [{ containers: containersOf(site, machine, namespace, driver) }] }),
  ),
  stats: unary(methods.stats, ({ site, machine }, { namespace, driver }) => {
    const stats = containersOf(site, machine, namespace, driver).map(({ id, name, podId }) => ({
      namespace,
      id,
      name,
      podId,
      memoryUsage: GiB / 16n,
    }))
    return answer({ messages: [{ stats }] })
  }),
  processes: unary(methods.processes, ({ machine }) => {
    const processes = runningOf(machine).map(id => ({
      ...{ pid: id === 'machined' ? 1 : pidOf(machine, id), ppid: id === 'machined' ? 0 : 1, state: 'S', threads: 8 },
      ...{ virtualMemory: GiB, residentMemory: GiB / 16n, command: id, executable: `/usr/local/bin/${id}`, args: `/usr/local/bin/${id}` },
    }))
    return answer({ messages: [{ processes }] })
  }),
  logsContainers: unary(methods.logsContainers, ({ machine }) => answer({ messages: [{ ids: [...machine.services.keys()].toSorted() }] })),
  imageList: streaming(methods.imageList, imageList),
}
