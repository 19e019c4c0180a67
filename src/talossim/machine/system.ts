import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { ContainerdNamespace } from '../../../proto/gen/common/common_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { releaseOf } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import type { StreamHandler } from '../call.ts'
import { streaming, unary } from '../dispatch.ts'
import { runningOn } from './running.ts'

const methods = MachineService.method

const MiB = 1024 ** 2
const GiB = 1024 ** 3

type Mount = { readonly filesystem: string; readonly mountedOn: string; readonly size: number; readonly used: number }

/** As the kernel lists them. */
export const mountsOf = (machine: Machine): readonly Mount[] => {
  const mount = (filesystem: string, mountedOn: string, size = 0, used = 0): Mount => ({ filesystem, mountedOn, size, used })
  const kernel = [mount('proc', '/proc'), mount('sysfs', '/sys'), mount('cgroup2', '/sys/fs/cgroup')]
  if (machine.platform === 'container')
    return [mount('overlay', '/', 100 * GiB, 30 * GiB), ...kernel, mount('overlay', '/var', 100 * GiB, 30 * GiB)]
  const system = machine.disks.find(disk => disk.system)
  const name = system?.path ?? '/dev/sda'
  return [
    mount('/dev/loop0', '/', 64 * MiB, 64 * MiB),
    mount('devtmpfs', '/dev', GiB * 4),
    ...kernel,
    mount('tmpfs', '/run', GiB * 4, 2 * MiB),
    mount('tmpfs', '/system', GiB * 4, MiB),
    mount(`${name}5`, '/system/state', 100 * MiB, 6 * MiB),
    mount(`${name}6`, '/var', (system?.bytes ?? 100 * GiB) - 2 * GiB, 9 * GiB),
  ]
}

/** Images that the two containerds have, by namespace: of the system, and of the pods. */
export const imagesOf = (site: Site, machine: Machine, namespace: 'system' | 'cri'): readonly string[] => {
  const pods = (): readonly string[] => runningOn(site, machine).pods.flatMap(pod => pod.containers.map(({ image }) => image))
  if (namespace === 'cri') return [...new Set(pods())].toSorted()
  const kubelet = machine.kubeletRun.image
  const own = [
    ...(machine.services.has('etcd') ? [`registry.k8s.io/etcd:v${releaseOf(versionOf(machine)).etcd}`] : []),
    ...(machine.services.has('kubelet') && kubelet !== '' ? [kubelet] : []),
  ]
  return [...new Set([...machine.images.keys(), ...own])].toSorted()
}

const imageList: StreamHandler<typeof methods.imageList> = async ({ site, machine }, { namespace }, send) => {
  if (namespace === ContainerdNamespace.NS_UNKNOWN) return refuse('InvalidArgument', 'unsupported namespace NS_UNKNOWN')
  for (const name of imagesOf(site, machine, namespace === ContainerdNamespace.NS_CRI ? 'cri' : 'system')) {
    const digest = site.registry.pinned(name).split('@')[1] ?? ''
    send({ name, digest, size: BigInt(128 * MiB), createdAt: timestampFromMs(machine.bootedAt) })
  }
  return answer(undefined)
}

/** Logs that machined keeps beside those of the services. */
export const INNER_LOGS: readonly string[] = ['controller-runtime', 'dns-resolve-cache', 'kernel']

/** What a machine has: file systems, images, logs. */
export const systemMethods = {
  mounts: unary(methods.mounts, ({ machine }) => {
    const stats = mountsOf(machine).map(({ filesystem, mountedOn, size, used }) => ({
      ...{ filesystem, mountedOn, size: BigInt(size), available: BigInt(size - used) },
    }))
    return answer({ messages: [{ stats }] })
  }),
  logsContainers: unary(methods.logsContainers, ({ machine }) =>
    answer({ messages: [{ ids: [...machine.services.keys(), ...INNER_LOGS].toSorted() }] }),
  ),
  imageList: streaming(methods.imageList, imageList),
}
