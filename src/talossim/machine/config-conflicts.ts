import type { Configuration } from './config-documents.ts'
import { mappingOf } from './config-documents.ts'

const setAlready = (path: string): readonly [string, string] => [path, `.${path} is already set in v1alpha1 config`]
const usedInstead = (what: string, path: string, kind: string, where = path): readonly [string, string] => [
  path,
  `${what} config in v1alpha1 config (.${where}) can't be used with ${kind} document, please remove it to avoid conflicts`,
]
const ofComponent = (what: string, path: string): readonly [string, string] => [
  path,
  `${what} is already set in v1alpha1 config (.${path})`,
]

/** Fields of the first kind of document that may not be there beside a document of another kind, and what is said then. The first that is there counts. */
const CONFLICTS: Readonly<Record<string, readonly (readonly [path: string, says: string])[]>> = {
  HostnameConfig: [
    ['machine.network.hostname', 'static hostname is already set in v1alpha1 config'],
    ['machine.features.stableHostname', 'stable hostname is already set in v1alpha1 config'],
  ],
  ResolverConfig: ['searchDomains', 'nameservers', 'disableSearchDomain'].map(name => setAlready(`machine.network.${name}`)),
  TimeSyncConfig: [
    ['machine.time.disabled', 'time sync cannot be disabled in both v1alpha1 and new-style configuration'],
    ['machine.time.servers', 'time servers cannot be specified in both v1alpha1 and new-style configuration'],
    ['machine.time.bootTimeout', 'boot timeout cannot be specified in both v1alpha1 and new-style configuration'],
  ],
  KubeSpanConfig: [['machine.network.kubespan', 'kubespan is already configured in v1alpha1 machine.network.kubespan']],
  UnattendedInstallConfig: [['machine.install', 'UnattendedInstallConfig config is incompatible with v1alpha1 config (.machine.install)']],
  KubeletConfig: [ofComponent('kubelet config', 'machine.kubelet')],
  KubeNodeConfig: [
    ...['kubelet.nodeIP', 'nodeLabels', 'nodeAnnotations', 'nodeTaints'].map(name => setAlready(`machine.${name}`)),
    setAlready('cluster.allowSchedulingOnControlPlanes'),
  ],
  KubeAPIServerConfig: [ofComponent('kube-apiserver config', 'cluster.apiServer')],
  KubeControllerManagerConfig: [ofComponent('kube-controller-manager config', 'cluster.controllerManager')],
  KubeSchedulerConfig: [ofComponent('kube-scheduler config', 'cluster.scheduler')],
  KubeCoreDNSConfig: [ofComponent('CoreDNS config', 'cluster.coreDNS')],
  KubeAPIServerCAConfig: [ofComponent('kube-apiserver CA', 'cluster.ca')],
  KubeAggregatorCAConfig: [
    [
      'cluster.aggregatorCA',
      'kube-apiserver aggregator CA is already set in v1alpha1 config (.cluster.aggregatorCA), please remove it and use the new ' +
        'KubeAggregatorCAConfig document instead',
    ],
  ],
  KubeServiceAccountConfig: [ofComponent('service account', 'cluster.serviceAccount')],
  KubeTalosAPIAccessConfig: [setAlready('machine.features.kubernetesTalosAPIAccess')],
  KubePrismConfig: [usedInstead('KubePrism', 'machine.features.kubePrism', 'KubePrismConfig')],
  KubeProxyConfig: [usedInstead('cluster proxy', 'cluster.proxy', 'KubeProxyConfig', 'machine.cluster.proxy')],
  KubeFlannelCNIConfig: [usedInstead('cluster network', 'cluster.network', 'KubeFlannelCNIConfig', 'machine.cluster.network')],
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false && value !== ''

/** What stands in a configuration twice, in an old and in a new place. */
export const conflictsIn = ({ main, others }: Configuration): readonly string[] =>
  others.flatMap(({ kind }) => {
    const found = (CONFLICTS[kind] ?? []).find(([path]) =>
      isSet(path.split('.').reduce<unknown>((value, key) => mappingOf(value)[key], main)),
    )
    return found ? [found[1]] : []
  })
