import type { JsonObject } from '@bufbuild/protobuf'
import type { Machine } from '../../world/machine.ts'
import type { Component } from '../../world/kubernetes-config.ts'
import { imageVersion, kubernetesConfigOf } from '../../world/kubernetes-config.ts'
import { endpointOf } from '../../world/machine-config.ts'
import type { Site } from '../../world/site.ts'
import type { Rendering } from '../../world/static-pods.ts'
import { renderedAnnotationsOf } from '../../world/static-pods.ts'

/** Talos' own defaults; the simulated configurations do not change them. */
export const NETWORK = {
  pods: '10.244.0.0/16',
  services: '10.96.0.0/12',
  apiService: '10.96.0.1',
  dns: '10.96.0.10',
  domain: 'cluster.local',
}

type Flags = Readonly<Record<string, string>>

const secrets = (component: Component, file: string): string => `/system/secrets/kubernetes/${component}/${file}`
const config = (component: Component, file: string): string => `/system/config/kubernetes/${component}/${file}`

const apiServerFlags = (machine: Machine): Flags => {
  const secret = (file: string): string => secrets('kube-apiserver', file)
  const endpoint = endpointOf(machine.config)
  return {
    'admission-control-config-file': config('kube-apiserver', 'admission-control-config.yaml'),
    'advertise-address': '$(POD_IP)',
    'allow-privileged': 'true',
    'anonymous-auth': 'false',
    'api-audiences': endpoint,
    'audit-policy-file': config('kube-apiserver', 'auditpolicy.yaml'),
    'authorization-config': config('kube-apiserver', 'authorization-config.yaml'),
    'bind-address': '0.0.0.0',
    'client-ca-file': secret('ca.crt'),
    'enable-admission-plugins': 'NodeRestriction',
    'enable-bootstrap-token-auth': 'true',
    'encryption-provider-config': secret('encryptionconfig.yaml'),
    'etcd-cafile': secret('etcd-client-ca.crt'),
    'etcd-certfile': secret('etcd-client.crt'),
    'etcd-keyfile': secret('etcd-client.key'),
    'etcd-servers': 'https://localhost:2379',
    'kubelet-client-certificate': secret('apiserver-kubelet-client.crt'),
    'kubelet-client-key': secret('apiserver-kubelet-client.key'),
    'kubelet-preferred-address-types': 'InternalIP,ExternalIP,Hostname',
    profiling: 'false',
    'proxy-client-cert-file': secret('front-proxy-client.crt'),
    'proxy-client-key-file': secret('front-proxy-client.key'),
    'requestheader-allowed-names': 'front-proxy-client',
    'requestheader-client-ca-file': secret('aggregator-ca.crt'),
    'secure-port': '6443',
    'service-account-issuer': endpoint,
    'service-account-key-file': secret('service-account.pub'),
    'service-account-signing-key-file': secret('service-account.key'),
    'service-cluster-ip-range': NETWORK.services,
    'tls-cert-file': secret('apiserver.crt'),
    'tls-min-version': 'VersionTLS12',
    'tls-private-key-file': secret('apiserver.key'),
  }
}

const controllerManagerFlags = (): Flags => {
  const secret = (file: string): string => secrets('kube-controller-manager', file)
  return {
    'allocate-node-cidrs': 'true',
    'authentication-kubeconfig': secret('kubeconfig'),
    'authorization-kubeconfig': secret('kubeconfig'),
    'bind-address': '127.0.0.1',
    'cluster-cidr': NETWORK.pods,
    'cluster-signing-cert-file': secret('ca.crt'),
    'cluster-signing-key-file': secret('ca.key'),
    'configure-cloud-routes': 'false',
    controllers: '*,tokencleaner',
    kubeconfig: secret('kubeconfig'),
    'leader-elect': 'true',
    profiling: 'false',
    'root-ca-file': secret('ca.crt'),
    'service-account-private-key-file': secret('service-account.key'),
    'service-cluster-ip-range': NETWORK.services,
    'tls-min-version': 'VersionTLS13',
  }
}

const schedulerFlags = (): Flags => {
  const secret = (file: string): string => secrets('kube-scheduler', file)
  return {
    'authentication-kubeconfig': secret('kubeconfig'),
    'authentication-tolerate-lookup-failure': 'false',
    'authorization-kubeconfig': secret('kubeconfig'),
    'bind-address': '127.0.0.1',
    config: config('kube-scheduler', 'scheduler-config.yaml'),
    'leader-elect': 'true',
    profiling: 'false',
    'tls-min-version': 'VersionTLS13',
  }
}

const FLAGS: Readonly<Record<Component, (machine: Machine) => Flags>> = {
  'kube-apiserver': apiServerFlags,
  'kube-controller-manager': controllerManagerFlags,
  'kube-scheduler': schedulerFlags,
}
const REQUESTS: Readonly<Record<Component, { readonly cpu: string; readonly memory: string }>> = {
  'kube-apiserver': { cpu: '200m', memory: '512Mi' },
  'kube-controller-manager': { cpu: '50m', memory: '256Mi' },
  'kube-scheduler': { cpu: '10m', memory: '64Mi' },
}

const probe = (path: string, port: number): JsonObject => ({ httpGet: { host: 'localhost', path, port, scheme: 'HTTPS' } })

/** kube-apiserver has none. The paths of the scheduler are those of Kubernetes 1.31 and newer. */
const probesOf = (component: Component): JsonObject => {
  if (component === 'kube-controller-manager') {
    const healthz = probe('/healthz', 10257)
    return { startupProbe: { ...healthz, failureThreshold: 12, periodSeconds: 5 }, livenessProbe: { ...healthz, timeoutSeconds: 15 } }
  }
  if (component !== 'kube-scheduler') return {}
  return { startupProbe: probe('/livez', 10259), livenessProbe: probe('/livez', 10259), readinessProbe: probe('/readyz', 10259) }
}

/** The pod that the kubelet is given: its command is what an upgrade of Kubernetes looks at for flags that are gone. */
export const staticPod = (site: Site, machine: Machine, component: Component, rendering: Rendering): JsonObject => {
  const { image } = rendering
  const folders = [`/system/secrets/kubernetes/${component}`]
  if (component !== 'kube-controller-manager') folders.push(`/system/config/kubernetes/${component}`)
  const volumes = folders.map(path => ({ name: path.split('/')[2]!, path }))
  const switches = component === 'kube-controller-manager' ? ['--use-service-account-credentials'] : []
  const { extraArgs = {} } = kubernetesConfigOf(site, machine).components.get(component) ?? {}
  const flags = Object.entries({ ...FLAGS[component](machine), ...extraArgs })
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `--${name}=${value}`)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      annotations: renderedAnnotationsOf(component, rendering),
      labels: {
        'app.kubernetes.io/component': 'control-plane',
        'app.kubernetes.io/managed-by': 'Talos',
        'app.kubernetes.io/name': component,
        'app.kubernetes.io/version': imageVersion(image).replace(/^v/, ''),
        component,
        'k8s-app': component,
        tier: 'control-plane',
      },
      name: component,
      namespace: 'kube-system',
    },
    spec: {
      containers: [
        {
          command: [`/usr/local/bin/${component}`, ...switches, ...flags],
          env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
          image,
          name: component,
          ...probesOf(component),
          resources: { requests: REQUESTS[component] },
          volumeMounts: volumes.map(({ name, path }) => ({ mountPath: path, name, readOnly: true })),
        },
      ],
      hostNetwork: true,
      priorityClassName: 'system-cluster-critical',
      volumes: volumes.map(({ name, path }) => ({ hostPath: { path }, name })),
    },
    status: {},
  }
}
