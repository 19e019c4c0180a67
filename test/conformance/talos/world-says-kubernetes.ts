// The part of `WORLD_SAYS` about what control planes and kubelets are told to run, and about secrets. Of what is long only what matters is said.
import { expect } from 'vitest'
import type { World } from '../../../src/world/cluster.ts'
import type { Machine } from '../../../src/world/machine.ts'

type Said = (world: World, machine: Machine) => Readonly<Record<string, unknown>>

const onControlPlane =
  (said: Said): Said =>
  (world, machine) =>
    machine.role === 'controlplane' ? said(world, machine) : {}

const KUBERNETES = 'v1.35.2'
const ENDPOINT = (world: World): string => `https://${world.machine(0).addresses[0]}:6443`

const program = (name: string) => ({
  image: `registry.k8s.io/${name}:${KUBERNETES}`,
  extraVolumes: [],
  environmentVariables: {},
  extraArgs: {},
  resources: { requests: { cpu: '', memory: '' }, limits: {} },
})
const pod = (name: string, ...flags: readonly string[]) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: expect.objectContaining({ name, namespace: 'kube-system' }) as unknown,
  spec: expect.objectContaining({
    hostNetwork: true,
    containers: [
      expect.objectContaining({
        name,
        image: `registry.k8s.io/${name}:${KUBERNETES}`,
        command: expect.arrayContaining([`/usr/local/bin/${name}`, ...flags]) as unknown,
      }),
    ],
  }) as unknown,
  status: {},
})
const rendered = (version: string) => onControlPlane(() => ({ 'static-pods': { ready: true, version } }))

/** What the kubelet says of one that runs since the boot. */
const podStatus = ({ addresses, bootedAt }: Machine, name: string) => {
  const since = `${new Date(bootedAt).toISOString().slice(0, 19)}Z`
  const conditions = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled']
  return {
    conditions: conditions.map(type => ({ lastProbeTime: null, lastTransitionTime: since, status: 'True', type })),
    containerStatuses: [
      {
        ...{ name, image: `registry.k8s.io/${name}:${KUBERNETES}`, ready: true, restartCount: 0 },
        state: { running: { startedAt: since } },
      },
    ],
    ...{ hostIP: addresses[0], phase: 'Running', podIP: addresses[0] },
  }
}

/** PEM, in base64 as Go prints bytes. */
const PEM = expect.stringMatching(/^LS0tLS1CRUdJTi/) as unknown
const PAIR = { crt: PEM, key: PEM }

const url = (host: string) => expect.objectContaining({ scheme: 'https', host }) as unknown

const object = (kind: string, name: string) =>
  expect.objectContaining({ kind, metadata: expect.objectContaining({ name }) as unknown }) as unknown
const MANIFESTS = {
  '00-kubelet-bootstrapping-token': [object('Secret', expect.stringMatching(/^bootstrap-token-[a-z0-9]{6}$/) as string)],
  '01-csr-approver-role-binding': [object('ClusterRoleBinding', 'system-bootstrap-approve-node-client-csr')],
  '01-csr-node-bootstrap': [object('ClusterRoleBinding', 'system-bootstrap-node-bootstrapper')],
  '01-csr-renewal-role-binding': [object('ClusterRoleBinding', 'system-bootstrap-node-renewal')],
  '05-flannel': [object('DaemonSet', 'kube-flannel')],
  '10-kube-proxy': [object('DaemonSet', 'kube-proxy')],
  '11-kube-config-in-cluster': [object('ConfigMap', 'kubeconfig-in-cluster')],
  '11-talos-node-rbac-template': [object('ClusterRoleBinding', 'system:talos-nodes'), object('ClusterRole', 'system:talos-nodes')],
}

export const KUBERNETES_SAYS: Readonly<Record<string, Said>> = {
  'APIServerConfigs.kubernetes.talos.dev': onControlPlane(world => ({
    'kube-apiserver': {
      ...program('kube-apiserver'),
      cloudProvider: '',
      controlPlaneEndpoint: ENDPOINT(world),
      etcdServers: ['https://localhost:2379'],
      localPort: 6443,
      serviceCIDR: ['10.96.0.0/12'],
      advertisedAddress: '$(POD_IP)',
    },
  })),
  'ControllerManagerConfigs.kubernetes.talos.dev': onControlPlane(() => ({
    'kube-controller-manager': {
      ...program('kube-controller-manager'),
      enabled: true,
      cloudProvider: '',
      podCIDRs: ['10.244.0.0/16'],
      serviceCIDRs: ['10.96.0.0/12'],
    },
  })),
  'SchedulerConfigs.kubernetes.talos.dev': onControlPlane(() => ({
    'kube-scheduler': { ...program('kube-scheduler'), enabled: true, config: {} },
  })),
  'StaticPods.kubernetes.talos.dev': onControlPlane(world => ({
    'kube-apiserver': pod('kube-apiserver', `--service-account-issuer=${ENDPOINT(world)}`, '--etcd-servers=https://localhost:2379'),
    'kube-controller-manager': pod('kube-controller-manager', '--leader-elect=true'),
    'kube-scheduler': pod('kube-scheduler', '--leader-elect=true'),
  })),
  'StaticPodStatuses.kubernetes.talos.dev': onControlPlane((_, machine) =>
    Object.fromEntries(
      ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map(name => [
        `kube-system/${name}-${machine.name}`,
        podStatus(machine, name),
      ]),
    ),
  ),
  'KubeletConfigs.kubernetes.talos.dev': () => ({
    kubelet: {
      image: `ghcr.io/siderolabs/kubelet:${KUBERNETES}`,
      clusterDNS: ['10.96.0.10'],
      clusterDomain: 'cluster.local',
      cloudProviderExternal: false,
      defaultRuntimeSeccompEnabled: true,
      skipNodeRegistration: false,
      staticPodListURL: 'http://127.0.0.1:45955',
      disableManifestsDirectory: true,
      enableFSQuotaMonitoring: false,
      allowSchedulingOnControlPlane: false,
    },
  }),
  'KubeletSpecs.kubernetes.talos.dev': (_, { name, addresses }) => ({
    kubelet: {
      image: `ghcr.io/siderolabs/kubelet:${KUBERNETES}`,
      args: expect.arrayContaining([`--hostname-override=${name}`, `--node-ip=${addresses[0]}`]) as unknown,
      expectedNodename: name,
      config: expect.objectContaining({ kind: 'KubeletConfiguration', clusterDNS: ['10.96.0.10'] }) as unknown,
    },
  }),
  'ConfigStatuses.kubernetes.talos.dev': rendered('1111'),
  'SecretStatuses.kubernetes.talos.dev': rendered('1'),
  'Manifests.kubernetes.talos.dev': onControlPlane(() => MANIFESTS),
  'ManifestStatuses.kubernetes.talos.dev': onControlPlane(() => ({ manifests: { manifestsApplied: Object.keys(MANIFESTS) } })),
  'OSRootSecrets.secrets.talos.dev': (_, { role }) => ({
    os: { issuingCA: role === 'controlplane' ? PAIR : null, acceptedCAs: [{ crt: PEM }], certSANIPs: [], certSANDNSNames: [], token: '' },
  }),
  'KubernetesRootSecrets.secrets.talos.dev': onControlPlane(world => ({
    k8s: expect.objectContaining({
      name: 'home',
      endpoint: url(ENDPOINT(world).slice('https://'.length)),
      local_endpoint: url('localhost:6443'),
      apiServerIPs: ['10.96.0.1'],
      dnsDomain: 'cluster.local',
      issuingCA: PAIR,
      acceptedCAs: [{ crt: PEM }],
      aggregatorCA: PAIR,
    }) as unknown,
  })),
  'EtcdRootSecrets.secrets.talos.dev': onControlPlane(() => ({ etcd: { etcdCA: PAIR } })),
}
