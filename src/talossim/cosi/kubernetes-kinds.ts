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
import { isAtLeast } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import type { Component } from '../../world/kubernetes-config.ts'
import { containerStatusOf } from '../../world/mirror-pods.ts'
import { RESOURCE, timestamp } from '../../world/objects.ts'
import type { StaticPod } from '../../world/static-pods.ts'
import type { Beside, Drawn, ResourceKind } from './kind.ts'
import { drawn, inOrder, ipBytes } from './kind.ts'

type Node = {
  readonly spec?: { readonly unschedulable?: boolean }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

/** The machine reads its own Node with the kubelet's credentials. */
const nodeStatus = (site: Site, machine: Machine): readonly Drawn[] => {
  const object = machine.kubelet ? site.store.get(RESOURCE.nodes, '', machine.name) : undefined
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

/** In the order in which kubelets tell them. The kubelet says nothing of a process that it has not looked at yet. */
const CONDITIONS = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'] as const
const NEED_THE_PROCESS: readonly string[] = ['Ready', 'ContainersReady']

const podStatusOf = ({ addresses }: Machine, component: Component, pod: StaticPod): JsonObject => {
  const { isRunning, startedAt, waiting } = pod
  if (!isRunning && !waiting) return { phase: 'Pending' }
  const [hostIP = ''] = addresses
  const conditions = CONDITIONS.map(type => ({
    ...{ lastProbeTime: null, lastTransitionTime: isRunning ? timestamp(startedAt) : null },
    ...{ status: isRunning || !NEED_THE_PROCESS.includes(type) ? 'True' : 'False', type },
  }))
  return {
    ...{ conditions, containerStatuses: [inOrder(containerStatusOf(component, pod)) as unknown as JsonObject] },
    ...{ hostIP, phase: isRunning ? 'Running' : 'Pending', podIP: hostIP },
  }
}

/** What the kubelet said last: Talos asks it now and then, so this is late. */
const staticPods = (machine: Machine, beside: Beside): readonly Drawn[] =>
  [...(beside.staticPods.of(machine) ?? [])].map(([component, pod]) => {
    const podStatus = podStatusOf(machine, component, pod)
    return drawn(`kube-system/${component}-${machine.name}`, StaticPodStatusSpecSchema, { podStatus }, podStatus)
  })

const kubeletStatus = (machine: Machine): readonly Drawn[] => {
  const { image } = machine.kubeletRun
  return machine.kubelet ? [drawn('kubelet', KubeletStatusSpecSchema, { image }, { image })] : []
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
    draw: (_, machine, beside) => staticPods(machine, beside),
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
