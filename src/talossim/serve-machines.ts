import { Server, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js'
import { ClusterService } from '../../proto/gen/cluster/cluster_pb.ts'
import { State } from '../../proto/gen/cosi/resource/state_pb.ts'
import { InspectService } from '../../proto/gen/inspect/inspect_pb.ts'
import { ImageService } from '../../proto/gen/machine/image_pb.ts'
import { LifecycleService } from '../../proto/gen/machine/lifecycle_pb.ts'
import { MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { TimeService } from '../../proto/gen/time/time_pb.ts'
import { StorageService } from '../../proto/gen/storage/storage_pb.ts'
import { grpcService } from '../../proto/grpc.ts'
import type { World } from '../world/cluster.ts'
import type { Machine } from '../world/machine.ts'
import type { Access, Ground } from './call.ts'
import { createResourceStates } from './cosi/states.ts'
import { clusterMethods } from './cluster-service.ts'
import { stateMethods } from './cosi/state-service.ts'
import { imageMethods } from './image-service.ts'
import { inspectMethods } from './inspect-service.ts'
import { lifecycleMethods } from './lifecycle-service.ts'
import type { MachinesPki } from './entrance.ts'
import { createEntrance } from './entrance.ts'
import { accessMethods } from './machine/access.ts'
import { actionMethods } from './machine/actions.ts'
import { configurationMethods } from './machine/apply-configuration.ts'
import { containerMethods } from './machine/containers.ts'
import { counterMethods } from './machine/counters.ts'
import { etcdMaintenanceMethods } from './machine/etcd-maintenance.ts'
import { etcdMethods } from './machine/etcd.ts'
import { eventMethods } from './machine/events.ts'
import { factMethods } from './machine/facts.ts'
import { fileMethods } from './machine/files.ts'
import { logMethods } from './machine/logs.ts'
import { netstatMethods } from './machine/netstat.ts'
import { packetCaptureMethods } from './machine/packet-capture.ts'
import { powerMethods } from './machine/power.ts'
import { serviceMethods } from './machine/services.ts'
import { systemMethods } from './machine/system.ts'
import { REFUSED_SERVICES, refusedMethods } from './refused-services.ts'
import { timeMethods } from './time-service.ts'
import { storageMethods } from './storage-service.ts'

export type MachinesOptions = {
  readonly world: Pick<World, 'site' | 'drain'>
  readonly pki: MachinesPki
  /** Without it machines give nobody a kubeconfig or talosconfig. */
  readonly access?: Access
  /** Default 50000, which is also what clients take where they are told nothing. */
  readonly port?: number
  /** Told when a port that a machine needs cannot be opened after its reboot. Default: the error is thrown out of the event loop. */
  readonly onError?: (error: unknown) => void
}

export type ServedMachines = {
  /** Closes all ports and breaks all connections. The world goes on. */
  readonly close: () => Promise<void>
}

/** The real ones take 32 MiB, both ways. */
const MAX_MESSAGE_BYTES = 32 * 1024 * 1024

type Bound = (ground: Ground, endpoint: Machine) => unknown

const bind = (methods: Readonly<Record<string, Bound>>, ground: Ground, endpoint: Machine): UntypedServiceImplementation =>
  Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, method(ground, endpoint)])) as UntypedServiceImplementation

const serverOf = (ground: Ground, endpoint: Machine): Server => {
  const server = new Server({ 'grpc.max_receive_message_length': MAX_MESSAGE_BYTES, 'grpc.max_send_message_length': MAX_MESSAGE_BYTES })
  const add = (service: ServiceDefinition, methods: object): void =>
    server.addService(service, bind(methods as Record<string, Bound>, ground, endpoint))
  add(grpcService(MachineService), machineMethods)
  // Machines of every version have them here: apid forwards what it does not know itself, and the target's version decides.
  add(grpcService(ImageService), imageMethods)
  add(grpcService(LifecycleService), lifecycleMethods)
  add(grpcService(ClusterService), clusterMethods)
  add(grpcService(TimeService), timeMethods)
  add(grpcService(InspectService), inspectMethods)
  add(grpcService(State), stateMethods)
  add(grpcService(StorageService), storageMethods)
  for (const service of REFUSED_SERVICES) add(grpcService(service), refusedMethods(service))
  return server
}

const machineMethods = {
  ...factMethods,
  ...fileMethods,
  ...systemMethods,
  ...containerMethods,
  ...counterMethods,
  ...netstatMethods,
  ...packetCaptureMethods,
  ...logMethods,
  ...eventMethods,
  ...etcdMethods,
  ...etcdMaintenanceMethods,
  ...serviceMethods,
  ...accessMethods,
  ...actionMethods,
  ...powerMethods,
  ...configurationMethods,
}

/**
 * Serves the Talos API of every machine of a world, each on all of its own addresses, as apid does on port 50000: mutual TLS, roles from the
 * Organizations of the client certificate, forwarding from control planes. A machine that is down refuses connections, one that is cut off does not
 * answer. Advancing the world's time is the caller's; a call is answered at the world's time at which it arrives.
 *
 * Throws when a port cannot be opened.
 */
export const serveMachines = async (options: MachinesOptions): Promise<ServedMachines> => {
  const { site, drain } = options.world
  const port = options.port ?? 50_000
  const resources = createResourceStates(site, options.access?.authorities)
  const ground: Ground = { site, drain, resources, access: options.access }
  const onError =
    options.onError ??
    ((error: unknown): void => {
      throw error
    })

  const entrances = site.machines.map(machine =>
    createEntrance({ site, machine, server: serverOf(ground, machine), port, pki: options.pki, onError }),
  )
  const lookAtAll = (): void => {
    for (const { look } of entrances) look().catch(onError)
  }
  const unlisten = site.listen(lookAtAll)
  const unread = site.journal.onEntry(lookAtAll)
  const close = async (): Promise<void> => {
    unlisten()
    unread()
    resources.close()
    await Promise.all(entrances.map(entrance => entrance.close()))
  }
  try {
    await Promise.all(entrances.map(({ look }) => look()))
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}
