import type { JsonObject } from '@bufbuild/protobuf'
import {
  APIServerConfigSpecSchema,
  ConfigStatusSpecSchema,
  ControllerManagerConfigSpecSchema,
  KubeletConfigSpecSchema,
  KubeletSpecSpecSchema,
  ManifestSpecSchema,
  ManifestStatusSpecSchema,
  SchedulerConfigSpecSchema,
  SecretsStatusSpecSchema,
  StaticPodSpecSchema,
} from '../../../proto/gen/talos/resource/definitions/k8s/k8s_pb.ts'
import type { Component } from '../../world/kubernetes-config.ts'
import { kubernetesConfigOf } from '../../world/kubernetes-config.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { isAtLeast } from '../../world/releases.ts'
import { endpointOf } from '../../world/machine-config.ts'
import { nodeIPsOf } from '../../world/kubelet.ts'
import type { Site } from '../../world/site.ts'
import type { Rendering } from '../../world/static-pods.ts'
import { renderingsOf } from '../../world/static-pods.ts'
import type { Drawn, ResourceKind } from './kind.ts'
import { drawn, inOrder } from './kind.ts'
import { bootstrapManifests } from '../../world/manifests.ts'
import { NETWORK, staticPod } from './static-pods.ts'

type Draw = (site: Site, machine: Machine) => readonly Drawn[]

const onControlPlane =
  (draw: Draw): Draw =>
  (site, machine) =>
    machine.role === 'controlplane' ? draw(site, machine) : []

/** The image of a component, and whether it runs; a component that is switched off has none here. */
const programOf = (site: Site, machine: Machine, component: Component) => {
  const { image = '' } = kubernetesConfigOf(site, machine).components.get(component) ?? {}
  return { enabled: image !== '', image }
}

/** Arguments that the configuration adds: since 1.13 one may have several values. Before, they have another number on the wire, which is not known. */
const extraArgsOf = (site: Site, machine: Machine, component: Component) => {
  const { extraArgs = {} } = kubernetesConfigOf(site, machine).components.get(component) ?? {}
  if (!isAtLeast(versionOf(machine), 1, 13)) return { yaml: inOrder(extraArgs), proto: {} }
  const args = Object.fromEntries(Object.entries(inOrder(extraArgs)).map(([name, value]) => [name, { values: [value] }]))
  return { yaml: args, proto: args }
}

/** Nothing is asked for in the configuration. */
const NO_RESOURCES = { requests: { cpu: '', memory: '' }, limits: {} }
const NOTHING_ELSE = { extraVolumes: [], environmentVariables: {} }

const apiServerConfig: Draw = (site, machine) => {
  const extraArgs = extraArgsOf(site, machine, 'kube-apiserver')
  const own = {
    image: programOf(site, machine, 'kube-apiserver').image,
    cloudProvider: '',
    controlPlaneEndpoint: endpointOf(machine.config),
    etcdServers: ['https://localhost:2379'],
    advertisedAddress: '$(POD_IP)',
  }
  const { image, cloudProvider, controlPlaneEndpoint, etcdServers, advertisedAddress } = own
  const yaml = {
    ...{ image, cloudProvider, controlPlaneEndpoint, etcdServers, localPort: 6443, serviceCIDR: [NETWORK.services] },
    ...{ extraArgs: extraArgs.yaml, ...NOTHING_ELSE },
    ...{ advertisedAddress, resources: NO_RESOURCES },
  }
  const proto = { ...own, localPort: 6443n, serviceCidRs: [NETWORK.services], resources: NO_RESOURCES, extraArgs: extraArgs.proto }
  return [drawn('kube-apiserver', APIServerConfigSpecSchema, proto, yaml)]
}

const controllerManagerConfig: Draw = (site, machine) => {
  const extraArgs = extraArgsOf(site, machine, 'kube-controller-manager')
  const own = { ...programOf(site, machine, 'kube-controller-manager'), cloudProvider: '' }
  const yaml = {
    ...own,
    ...{ podCIDRs: [NETWORK.pods], serviceCIDRs: [NETWORK.services] },
    ...{ extraArgs: extraArgs.yaml, ...NOTHING_ELSE },
    resources: NO_RESOURCES,
  }
  const proto = { ...own, podCidRs: [NETWORK.pods], serviceCidRs: [NETWORK.services], resources: NO_RESOURCES, extraArgs: extraArgs.proto }
  return [drawn('kube-controller-manager', ControllerManagerConfigSpecSchema, proto, yaml)]
}

const schedulerConfig: Draw = (site, machine) => {
  const extraArgs = extraArgsOf(site, machine, 'kube-scheduler')
  const own = programOf(site, machine, 'kube-scheduler')
  const yaml = { ...own, extraArgs: extraArgs.yaml, ...NOTHING_ELSE, resources: NO_RESOURCES, config: {} }
  return [
    drawn('kube-scheduler', SchedulerConfigSpecSchema, { ...own, resources: NO_RESOURCES, config: {}, extraArgs: extraArgs.proto }, yaml),
  ]
}

const KUBELET: JsonObject = {
  address: '0.0.0.0',
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  authorization: { mode: 'Webhook' },
  clusterDNS: [NETWORK.dns],
  clusterDomain: NETWORK.domain,
  kind: 'KubeletConfiguration',
  port: 10_250,
  rotateCertificates: true,
  shutdownGracePeriod: '30s',
  shutdownGracePeriodCriticalPods: '10s',
}

const kubeletSpec: Draw = (site, machine) => {
  const { name } = machine
  const spec = {
    image: kubernetesConfigOf(site, machine).kubelet.image,
    args: [
      '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubeconfig',
      '--cert-dir=/var/lib/kubelet/pki',
      '--config=/etc/kubernetes/kubelet.yaml',
      `--hostname-override=${name}`,
      '--kubeconfig=/etc/kubernetes/kubeconfig-kubelet',
      `--node-ip=${nodeIPsOf(machine).join(',')}`,
    ],
    expectedNodename: name,
    config: KUBELET,
  }
  return [drawn('kubelet', KubeletSpecSpecSchema, spec, spec)]
}

const kubeletConfig: Draw = (site, machine) => {
  const own = { image: kubernetesConfigOf(site, machine).kubelet.image, clusterDomain: NETWORK.domain }
  const rest = {
    ...{ cloudProviderExternal: false, defaultRuntimeSeccompEnabled: true, skipNodeRegistration: false },
    ...{ disableManifestsDirectory: true, allowSchedulingOnControlPlane: false },
  }
  const staticPodListURL = 'http://127.0.0.1:45955'
  const { image, clusterDomain } = own
  const { cloudProviderExternal, defaultRuntimeSeccompEnabled, skipNodeRegistration } = rest
  return [
    drawn(
      'kubelet',
      KubeletConfigSpecSchema,
      { ...own, ...rest, clusterDns: [NETWORK.dns], staticPodListUrl: staticPodListURL },
      {
        ...{ image, clusterDNS: [NETWORK.dns], clusterDomain, cloudProviderExternal, defaultRuntimeSeccompEnabled, skipNodeRegistration },
        ...{ staticPodListURL, disableManifestsDirectory: true, enableFSQuotaMonitoring: false, allowSchedulingOnControlPlane: false },
      },
    ),
  ]
}

/** What lies beside the pods, with the version that they carry in an annotation. */
const rendered = (schema: typeof ConfigStatusSpecSchema | typeof SecretsStatusSpecSchema, versionIn: (pod: Rendering) => string): Draw =>
  onControlPlane((_, machine) => {
    const pod = renderingsOf(machine).get('kube-apiserver')
    if (!pod) return []
    const spec = { ready: true, version: versionIn(pod) }
    return [drawn('static-pods', schema, spec, spec)]
  })

/** What a control plane is told to run, and what it brings into Kubernetes. */
export const controlPlaneKinds: readonly ResourceKind[] = [
  {
    type: 'APIServerConfigs.kubernetes.talos.dev',
    display: 'APIServerConfig',
    namespace: 'controlplane',
    owner: 'k8s.ControlPlaneAPIServerController',
    sensitiveSince: 13,
    since: 1,
    draw: onControlPlane(apiServerConfig),
  },
  {
    type: 'ControllerManagerConfigs.kubernetes.talos.dev',
    display: 'ControllerManagerConfig',
    namespace: 'controlplane',
    owner: 'k8s.ControlPlaneControllerManagerController',
    since: 1,
    draw: onControlPlane(controllerManagerConfig),
  },
  {
    type: 'SchedulerConfigs.kubernetes.talos.dev',
    display: 'SchedulerConfig',
    namespace: 'controlplane',
    owner: 'k8s.ControlPlaneSchedulerController',
    since: 1,
    draw: onControlPlane(schedulerConfig),
  },
  {
    type: 'StaticPods.kubernetes.talos.dev',
    display: 'StaticPod',
    namespace: 'k8s',
    owner: 'k8s.ControlPlaneStaticPodController',
    since: 0,
    draw: onControlPlane((site, machine) =>
      [...renderingsOf(machine)].map(([component, rendering]) => {
        const pod = staticPod(site, machine, component, rendering)
        return drawn(component, StaticPodSpecSchema, { pod }, inOrder(pod))
      }),
    ),
  },
  {
    type: 'KubeletConfigs.kubernetes.talos.dev',
    display: 'KubeletConfig',
    namespace: 'k8s',
    owner: 'k8s.KubeletConfigController',
    sensitiveSince: 13,
    since: 0,
    draw: kubeletConfig,
  },
  {
    type: 'KubeletSpecs.kubernetes.talos.dev',
    display: 'KubeletSpec',
    namespace: 'k8s',
    owner: 'k8s.KubeletSpecController',
    sensitiveSince: 13,
    since: 0,
    draw: kubeletSpec,
  },
  {
    type: 'ConfigStatuses.kubernetes.talos.dev',
    display: 'ConfigStatus',
    namespace: 'controlplane',
    owner: 'k8s.RenderConfigsStaticPodController',
    columns: () => [
      ['Ready', '{.ready}'],
      ['Secrets Version', '{.version}'],
    ],
    since: 0,
    draw: rendered(ConfigStatusSpecSchema, ({ fileVersions }) => fileVersions.join('')),
  },
  {
    type: 'SecretStatuses.kubernetes.talos.dev',
    display: 'SecretStatus',
    namespace: 'controlplane',
    owner: 'k8s.RenderSecretsStaticPodController',
    columns: () => [
      ['Ready', '{.ready}'],
      ['Secrets Version', '{.version}'],
    ],
    since: 0,
    draw: rendered(SecretsStatusSpecSchema, ({ secretsVersion }) => String(secretsVersion)),
  },
  {
    type: 'Manifests.kubernetes.talos.dev',
    display: 'Manifest',
    namespace: 'controlplane',
    owner: 'k8s.ManifestController',
    since: 0,
    draw: onControlPlane((site, machine) =>
      bootstrapManifests(site, machine).map(({ id, objects }) =>
        drawn(
          id,
          ManifestSpecSchema,
          { items: objects.map(object => ({ object: object as JsonObject })) },
          inOrder(objects as readonly JsonObject[]),
        ),
      ),
    ),
  },
  {
    type: 'ManifestStatuses.kubernetes.talos.dev',
    display: 'ManifestStatus',
    namespace: 'controlplane',
    owner: 'k8s.ManifestApplyController',
    since: 0,
    draw: onControlPlane((site, machine) => {
      const manifestsApplied = bootstrapManifests(site, machine).map(({ id }) => id)
      return [drawn('manifests', ManifestStatusSpecSchema, { manifestsApplied }, { manifestsApplied })]
    }),
  },
]
