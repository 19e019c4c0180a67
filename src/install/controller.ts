import { API_VERSION } from '../api/names.ts'
import type { KubeObject } from './object.ts'
import { LABELS, object } from './object.ts'
import type { Controller } from './roles.ts'

/** What whoever installs may choose. The chart has them as values, of the same names where it can. */
export type Settings = {
  readonly image: string
  readonly imagePullPolicy: string
  readonly imagePullSecrets: readonly { readonly name: string }[]
  /** One leads, the others wait to follow it. */
  readonly replicas: number
  /** Looked after by the controller; empty: all namespaces. */
  readonly namespace: string
  readonly logLevel: string
  readonly priorityClassName: string
  readonly resources: object
  readonly nodeSelector: object
  readonly tolerations: readonly object[]
  /** More environment variables, as of a container: proxies, for example. */
  readonly env: readonly object[]
}

/** What stands where nobody chose. */
export const DEFAULTS = {
  imagePullPolicy: 'IfNotPresent',
  imagePullSecrets: [],
  replicas: 2,
  logLevel: 'info',
  priorityClassName: 'system-cluster-critical',
  // Node's memory grows with the number of machines and operations; no limit on CPU, which would only slow it down.
  resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  // Where there are control planes only, and while workers are drained, it runs on control planes.
  tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' }],
  env: [],
} as const satisfies Omit<Settings, 'image' | 'namespace'>

/** On what is of the controller, beside the labels of all. */
export const COMPONENT = { 'app.kubernetes.io/component': 'controller' } as const

const PORT = 8080
const fromField = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
const probe = (path: string, more: object = {}) => ({ httpGet: { path, port: 'status' }, periodSeconds: 10, ...more })

/** The controller: its Deployment, what keeps one of its pods alive, and who may reach them. */
export const controllerObjects = ({ name, namespace }: Controller, settings: Settings): readonly KubeObject[] => {
  const labels = { ...LABELS, ...COMPONENT }
  const place = { name, namespace, labels }
  return [
    object('apps/v1', 'Deployment', place, {
      spec: {
        replicas: settings.replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations: { 'kubectl.kubernetes.io/default-container': 'controller' } },
          spec: {
            serviceAccountName: name,
            priorityClassName: settings.priorityClassName,
            imagePullSecrets: settings.imagePullSecrets,
            nodeSelector: settings.nodeSelector,
            tolerations: settings.tolerations,
            // Two on one machine would go away together when it is drained.
            affinity: {
              podAntiAffinity: {
                preferredDuringSchedulingIgnoredDuringExecution: [
                  { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } } },
                ],
              },
            },
            securityContext: {
              runAsNonRoot: true,
              runAsUser: 65_532,
              runAsGroup: 65_532,
              fsGroup: 65_532,
              seccompProfile: { type: 'RuntimeDefault' },
            },
            containers: [
              {
                name: 'controller',
                image: settings.image,
                imagePullPolicy: settings.imagePullPolicy,
                args: ['controller', `--namespace=${settings.namespace}`, `--listen=:${PORT}`, `--log-level=${settings.logLevel}`],
                env: [
                  fromField('POD_NAME', 'metadata.name'),
                  fromField('POD_NAMESPACE', 'metadata.namespace'),
                  fromField('NODE_NAME', 'spec.nodeName'),
                ],
                ports: [{ name: 'status', containerPort: PORT }],
                livenessProbe: probe('/healthz', { initialDelaySeconds: 10, timeoutSeconds: 5 }),
                readinessProbe: probe('/readyz'),
                resources: settings.resources,
                securityContext: {
                  allowPrivilegeEscalation: false,
                  readOnlyRootFilesystem: true,
                  capabilities: { drop: ['ALL'] },
                },
              },
            ],
          },
        },
      },
    }),
    object('policy/v1', 'PodDisruptionBudget', place, { spec: { maxUnavailable: 1, selector: { matchLabels: labels } } }),
    object('v1', 'Service', place, {
      spec: { selector: labels, ports: [{ name: 'status', port: PORT, targetPort: 'status' }] },
    }),
    // In: metrics and probes. Out: the Kubernetes API, DNS, and port 50000 of machines that no selector names; so out is open.
    object('networking.k8s.io/v1', 'NetworkPolicy', place, {
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ['Ingress'],
        ingress: [{ ports: [{ port: 'status' }] }],
      },
    }),
  ]
}

/**
 * The way to the Talos API in the Talos cluster that Ichor runs in: Talos writes a talosconfig into a Secret for its own ServiceAccount, and renews it
 * (talos-api 1.8). Talos has to allow the namespace and the role first, in machine.features.kubernetesTalosAPIAccess of the control planes.
 */
export const talosAccess = (cluster: string, namespace: string): readonly KubeObject[] => {
  const secret = `${cluster}-talosconfig`
  return [
    object('talos.dev/v1alpha1', 'ServiceAccount', { name: secret, namespace }, { spec: { roles: ['os:admin'] } }),
    object(API_VERSION, 'TalosCluster', { name: cluster, namespace }, { spec: { talosconfigSecretRef: { name: secret, key: 'config' } } }),
  ]
}
