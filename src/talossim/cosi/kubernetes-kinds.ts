import type { JsonObject } from '@bufbuild/protobuf'
import {
  KubeletStatusSpecSchema,
  NodeIPSpecSchema,
  NodenameSpecSchema,
  NodeStatusSpecSchema,
  StaticPodStatusSpecSchema,
} from '../../../proto/gen/talos/resource/definitions/k8s/k8s_pb.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { readScalar } from '../../world/machine-config.ts'
import { isAtLeast } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import type { Drawn, ResourceKind } from './kind.ts'
import { drawn, inOrder, ipBytes } from './kind.ts'

type Node = {
  readonly spec?: { readonly unschedulable?: boolean }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

/** The machine reads its own Node with the kubelet's credentials. */
const nodeStatus = (site: Site, machine: Machine): readonly Drawn[] => {
  const object = machine.kubelet ? site.store.get('nodes', '', machine.name) : undefined
  if (!object) return []
  const node = object as unknown as Node
  const spec = {
    nodename: machine.name,
    nodeReady: node.status?.conditions?.find(c => c.type === 'Ready')?.status === 'True',
    unschedulable: node.spec?.unschedulable ?? false,
    labels: inOrder({ ...object.metadata.labels }),
    annotations: inOrder({ ...object.metadata.annotations }),
  }
  const yaml = isAtLeast(versionOf(machine), 1, 13) ? { ...spec, podCIDRs: [] } : spec
  return [drawn(machine.name, NodeStatusSpecSchema, spec, yaml)]
}

/** As far as Talos itself looks: phase and readiness of the three pods that the kubelet has reported. */
const staticPods = (machine: Machine): readonly Drawn[] => {
  if (!machine.kubelet || !machine.staticPods) return []
  return ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map(name => {
    const [hostIP = ''] = machine.addresses
    const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(type => ({ status: 'True', type }))
    const podStatus: JsonObject = { conditions, hostIP, phase: 'Running', podIP: hostIP }
    return drawn(`kube-system/${name}-${machine.name}`, StaticPodStatusSpecSchema, { podStatus }, podStatus)
  })
}

const kubeletStatus = (machine: Machine): readonly Drawn[] => {
  const image = readScalar(machine.config, ['machine', 'kubelet', 'image'])
  return machine.kubelet && image !== undefined ? [drawn('kubelet', KubeletStatusSpecSchema, { image }, { image })] : []
}

/** The machine's side of Kubernetes. */
export const kubernetesKinds: readonly ResourceKind[] = [
  {
    type: 'Nodenames.kubernetes.talos.dev',
    display: 'Nodename',
    namespace: 'k8s',
    owner: 'k8s.NodenameController',
    columns: () => [['Nodename', '{.nodename}']],
    since: 0,
    draw: (_, { name: nodename }) => {
      const spec = { nodename, hostnameVersion: '1', skipNodeRegistration: false }
      return [drawn('nodename', NodenameSpecSchema, spec, spec)]
    },
  },
  {
    type: 'NodeStatuses.kubernetes.talos.dev',
    display: 'NodeStatus',
    namespace: 'k8s',
    owner: 'k8s.NodeStatusController',
    columns: () => [
      ['Ready', '{.nodeReady}'],
      ['Unschedulable', '{.unschedulable}'],
    ],
    since: 5,
    draw: nodeStatus,
  },
  {
    type: 'NodeIPs.kubernetes.talos.dev',
    display: 'NodeIP',
    namespace: 'k8s',
    owner: 'k8s.NodeIPController',
    since: 0,
    draw: (_, { addresses }) => [
      drawn('kubelet', NodeIPSpecSchema, { addresses: addresses.map(a => ({ ip: ipBytes(a) })) }, { addresses }),
    ],
  },
  {
    type: 'StaticPodStatuses.kubernetes.talos.dev',
    display: 'StaticPodStatus',
    namespace: 'k8s',
    owner: 'k8s.KubeletStaticPodController',
    aliases: ['podstatus'],
    columns: () => [['Ready', '{.conditions[?(@.type=="Ready")].status}']],
    since: 0,
    draw: (_, machine) => staticPods(machine),
  },
  {
    type: 'KubeletStatuses.kubernetes.talos.dev',
    display: 'KubeletStatus',
    namespace: 'k8s',
    owner: 'k8s.KubeletServiceController',
    columns: () => [['Image', '{.image}']],
    since: 14,
    draw: (_, machine) => kubeletStatus(machine),
  },
]
