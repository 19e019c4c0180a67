import { InfoSpecSchema, IdentitySpecSchema, MemberSpecSchema } from '../../../proto/gen/talos/resource/definitions/cluster/cluster_pb.ts'
import { MachineConfigSpecSchema, MachineTypeSpecSchema } from '../../../proto/gen/resource/config/config_pb.ts'
import { LayerSchema } from '../../../proto/gen/talos/resource/definitions/extensions/extensions_pb.ts'
import { SystemInformationSpecSchema } from '../../../proto/gen/talos/resource/definitions/hardware/hardware_pb.ts'
import {
  APIServerConfigSpecSchema,
  ControllerManagerConfigSpecSchema,
  KubeletSpecSpecSchema,
  KubeletStatusSpecSchema,
  ManifestSpecSchema,
  NodenameSpecSchema,
  SchedulerConfigSpecSchema,
  StaticPodSpecSchema,
  StaticPodStatusSpecSchema,
} from '../../../proto/gen/talos/resource/definitions/k8s/k8s_pb.ts'
import { HostnameStatusSpecSchema, OperatorSpecSpecSchema } from '../../../proto/gen/talos/resource/definitions/network/network_pb.ts'
import {
  BootIDSpecSchema,
  MachineStatusSpecSchema,
  MetaKeySpecSchema,
  SecurityStateSpecSchema,
} from '../../../proto/gen/talos/resource/definitions/runtime/runtime_pb.ts'

/** Talos's resources as far as this room reads them. */
export const resourceTypes = {
  machineStatus: { namespace: 'runtime', type: 'MachineStatuses.runtime.talos.dev', schema: MachineStatusSpecSchema },
  /** Since Talos 1.14, and not where Talos runs in a container. */
  bootID: { namespace: 'runtime', type: 'BootIDs.runtime.talos.dev', schema: BootIDSpecSchema },
  metaKey: { namespace: 'runtime', type: 'MetaKeys.runtime.talos.dev', schema: MetaKeySpecSchema },
  securityState: { namespace: 'runtime', type: 'SecurityStates.talos.dev', schema: SecurityStateSpecSchema },
  extensionStatus: { namespace: 'runtime', type: 'ExtensionStatuses.runtime.talos.dev', schema: LayerSchema },
  machineConfig: { namespace: 'config', type: 'MachineConfigs.config.talos.dev', schema: MachineConfigSpecSchema },
  machineType: { namespace: 'config', type: 'MachineTypes.config.talos.dev', schema: MachineTypeSpecSchema },
  member: { namespace: 'cluster', type: 'Members.cluster.talos.dev', schema: MemberSpecSchema },
  identity: { namespace: 'cluster', type: 'Identities.cluster.talos.dev', schema: IdentitySpecSchema },
  info: { namespace: 'cluster', type: 'Infos.cluster.talos.dev', schema: InfoSpecSchema },
  nodename: { namespace: 'k8s', type: 'Nodenames.kubernetes.talos.dev', schema: NodenameSpecSchema },
  kubeletSpec: { namespace: 'k8s', type: 'KubeletSpecs.kubernetes.talos.dev', schema: KubeletSpecSpecSchema },
  /** Since Talos 1.14. */
  kubeletStatus: { namespace: 'k8s', type: 'KubeletStatuses.kubernetes.talos.dev', schema: KubeletStatusSpecSchema },
  apiServerConfig: { namespace: 'controlplane', type: 'APIServerConfigs.kubernetes.talos.dev', schema: APIServerConfigSpecSchema },
  controllerManagerConfig: {
    namespace: 'controlplane',
    type: 'ControllerManagerConfigs.kubernetes.talos.dev',
    schema: ControllerManagerConfigSpecSchema,
  },
  schedulerConfig: { namespace: 'controlplane', type: 'SchedulerConfigs.kubernetes.talos.dev', schema: SchedulerConfigSpecSchema },
  staticPod: { namespace: 'k8s', type: 'StaticPods.kubernetes.talos.dev', schema: StaticPodSpecSchema },
  staticPodStatus: { namespace: 'k8s', type: 'StaticPodStatuses.kubernetes.talos.dev', schema: StaticPodStatusSpecSchema },
  manifest: { namespace: 'controlplane', type: 'Manifests.kubernetes.talos.dev', schema: ManifestSpecSchema },
  hostnameStatus: { namespace: 'network', type: 'HostnameStatuses.net.talos.dev', schema: HostnameStatusSpecSchema },
  /** Only os:admin may read them: with some a token of a cloud comes. */
  operatorSpec: { namespace: 'network', type: 'OperatorSpecs.net.talos.dev', schema: OperatorSpecSpecSchema },
  systemInformation: { namespace: 'hardware', type: 'SystemInformations.hardware.talos.dev', schema: SystemInformationSpecSchema },
} as const
