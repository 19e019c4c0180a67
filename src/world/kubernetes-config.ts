import { CONTROL_PLANE_LABEL } from '../api/names.ts'
import type { Machine } from './machine.ts'
import type { NodeWishes, Taint } from './node-apply.ts'
import type { Site } from './site.ts'
import { runningSlot } from './slots.ts'
import type { Tree } from './yaml-tree.ts'
import { at, readYaml, textAt, textsAt } from './yaml-tree.ts'

/** The static pods of a control plane, in the order in which Talos renders them. */
export const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const
export type Component = (typeof COMPONENTS)[number]

/** One program, as the configuration wants it. */
export type ProgramConfig = {
  readonly image: string
  /** Arguments beyond Talos' own, by their names without dashes. */
  readonly extraArgs: Readonly<Record<string, string>>
  /** All that its process depends on, as text: what differs is another process. */
  readonly rendered: string
  /** An argument that Talos keeps for itself. It is told nowhere but in a log, and nothing is rendered while it is there. */
  readonly denied: string | undefined
}

/** What a machine's configuration says of its part in Kubernetes. */
export type KubernetesConfig = {
  readonly kubelet: ProgramConfig
  /** Of a control plane; a component that is switched off is not in it. */
  readonly components: ReadonlyMap<Component, ProgramConfig>
  /** The image of kube-proxy, which only the bootstrap manifests of a control plane know; undefined where it is switched off. */
  readonly kubeProxy: string | undefined
  /** What the secrets of the static pods are made of, as text. */
  readonly secrets: string
  /** The files beside kube-apiserver, as texts. */
  readonly files: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly registersNode: boolean
}

/** Arguments that Talos sets itself and lets nobody change. */
const DENIED: Readonly<Record<Component | 'kubelet', readonly string[]>> = {
  'kube-apiserver': [
    ...['etcd-servers', 'client-ca-file', 'requestheader-client-ca-file', 'proxy-client-cert-file', 'proxy-client-key-file'],
    ...['encryption-provider-config', 'etcd-cafile', 'etcd-certfile', 'etcd-keyfile', 'kubelet-client-certificate', 'kubelet-client-key'],
    ...['service-account-key-file', 'service-account-signing-key-file', 'tls-cert-file', 'tls-private-key-file', 'authorization-config'],
  ],
  'kube-controller-manager': [
    ...['cluster-signing-cert-file', 'cluster-signing-key-file', 'authentication-kubeconfig', 'authorization-kubeconfig', 'root-ca-file'],
    'service-account-private-key-file',
  ],
  'kube-scheduler': ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig', 'config'],
  kubelet: ['bootstrap-kubeconfig', 'kubeconfig', 'container-runtime', 'container-runtime-endpoint', 'config', 'cert-dir'],
}

/** Where each is configured: in the one document of old, and since 1.14 perhaps in one of its own, which then says it all. */
export const PLACES: Readonly<
  Record<Component | 'kubelet' | 'kube-proxy', { readonly path: readonly string[]; readonly kind: string; readonly image: string }>
> = {
  'kube-apiserver': { path: ['cluster', 'apiServer'], kind: 'KubeAPIServerConfig', image: 'registry.k8s.io/kube-apiserver' },
  'kube-controller-manager': {
    ...{ path: ['cluster', 'controllerManager'], kind: 'KubeControllerManagerConfig', image: 'registry.k8s.io/kube-controller-manager' },
  },
  'kube-scheduler': { path: ['cluster', 'scheduler'], kind: 'KubeSchedulerConfig', image: 'registry.k8s.io/kube-scheduler' },
  'kube-proxy': { path: ['cluster', 'proxy'], kind: 'KubeProxyConfig', image: 'registry.k8s.io/kube-proxy' },
  kubelet: { path: ['machine', 'kubelet'], kind: 'KubeletConfig', image: 'ghcr.io/siderolabs/kubelet' },
}

/** Parts of a component's section that make no difference to its process: they are files or certificates. */
const BESIDE: readonly string[] = ['certSANs', 'certExtraSANs', 'admissionControl', 'auditPolicy', 'authorizationConfig']

const tainted = (taints: Readonly<Record<string, string>>): readonly Taint[] =>
  Object.entries(taints).map(([key, text]) => {
    const colon = text.indexOf(':')
    if (colon < 0) return { key, effect: text }
    return { key, ...(colon > 0 ? { value: text.slice(0, colon) } : {}), effect: text.slice(colon + 1) }
  })

const isOn = (tree: Tree | undefined, ...path: readonly string[]): boolean => textAt(tree, ...path) === 'true'

/**
 * Reads it. `kubernetes` is the version, with `v`, of what the configuration does not name.
 */
export const readKubernetesConfig = (text: string, kubernetes: string): KubernetesConfig => {
  const documents = readYaml(text)
  const old = documents.find(document => textAt(document, 'kind') === undefined)
  const own = (kind: string): Tree | undefined => documents.find(document => textAt(document, 'kind') === kind)
  const isControlPlane = textAt(old, 'machine', 'type') === 'controlplane'

  const program = (name: Component | 'kubelet'): ProgramConfig => {
    const { path, kind, image } = PLACES[name]
    const section = own(kind) ?? at(old, ...path) ?? {}
    const entries = typeof section === 'object' ? Object.entries(section).filter(([key]) => !BESIDE.includes(key)) : []
    const named = textAt(section, 'image') ?? `${image}:${kubernetes}`
    const extraArgs = textsAt(section, 'extraArgs')
    return {
      image: named,
      extraArgs,
      rendered: JSON.stringify({ ...Object.fromEntries(entries), image: named }),
      denied: Object.keys(extraArgs).find(key => DENIED[name].includes(key)),
    }
  }
  const isOff = (name: Component): boolean => {
    const { kind } = PLACES[name]
    const legacy = { 'kube-apiserver': '', 'kube-controller-manager': 'controllerManager', 'kube-scheduler': 'scheduler' }[name]
    return textAt(own(kind), 'enabled') === 'false' || isOn(old, 'machine', 'controlPlane', legacy, 'disabled')
  }
  const proxy = own('KubeProxyConfig')
  const hasProxy = isControlPlane && (proxy ? textAt(proxy, 'enabled') !== 'false' : !isOn(old, 'cluster', 'proxy', 'disabled'))
  const apiServer = own('KubeAPIServerConfig') ?? at(old, 'cluster', 'apiServer')
  const node = own('KubeNodeConfig')
  const allows = isOn(old, 'cluster', 'allowSchedulingOnControlPlanes') || isOn(old, 'cluster', 'allowSchedulingOnMasters')
  return {
    kubelet: program('kubelet'),
    components: new Map(isControlPlane ? COMPONENTS.filter(name => !isOff(name)).map(name => [name, program(name)]) : []),
    kubeProxy: hasProxy
      ? (textAt(proxy ?? at(old, ...PLACES['kube-proxy'].path), 'image') ?? `${PLACES['kube-proxy'].image}:${kubernetes}`)
      : undefined,
    secrets: JSON.stringify([
      ...['ca', 'acceptedCAs', 'aggregatorCA', 'serviceAccount', 'secretboxEncryptionSecret', 'aescbcEncryptionSecret'].map(
        key => at(old, 'cluster', key) ?? '',
      ),
      ...['KubeAPIServerCAConfig', 'KubeAggregatorCAConfig', 'KubeServiceAccountConfig', 'KubeEtcdEncryptionConfig'].map(
        kind => own(kind) ?? '',
      ),
      at(apiServer, 'certSANs') ?? at(apiServer, 'certExtraSANs') ?? '',
    ]),
    files: [
      at(apiServer, 'admissionControl') ?? own('KubeAdmissionControlConfig'),
      at(apiServer, 'auditPolicy') ?? own('KubeAuditPolicyConfig'),
      at(apiServer, 'authorizationConfig') ?? own('KubeAuthorizerConfig'),
      // Its file is written anew with every change of the section, also of the image.
      own('KubeSchedulerConfig') ?? at(old, 'cluster', 'scheduler'),
    ].map(tree => JSON.stringify(tree ?? '')),
    labels: {
      ...(node ? textsAt(node, 'labels') : textsAt(old, 'machine', 'nodeLabels')),
      ...(isControlPlane ? { [CONTROL_PLANE_LABEL]: '' } : {}),
    },
    annotations: node ? textsAt(node, 'annotations') : textsAt(old, 'machine', 'nodeAnnotations'),
    taints: node
      ? tainted(textsAt(node, 'taints'))
      : [
          ...(isControlPlane && !allows ? [{ key: CONTROL_PLANE_LABEL, effect: 'NoSchedule' }] : []),
          ...tainted(textsAt(old, 'machine', 'nodeTaints')),
        ],
    registersNode: !isOn(node, 'skipNodeRegistration') && !isOn(old, 'machine', 'kubelet', 'skipNodeRegistration'),
  }
}

const read = new WeakMap<Machine, { readonly text: string; readonly config: KubernetesConfig }>()

/** What the configuration that runs says. */
export const kubernetesConfigOf = (site: Site, machine: Machine): KubernetesConfig => {
  const known = read.get(machine)
  if (known?.text === machine.config) return known.config
  const config = readKubernetesConfig(machine.config, site.kubernetes())
  read.set(machine, { text: machine.config, config })
  return config
}

/** The version in an image's tag, with `v`. */
export const imageVersion = (image: string): string => /^[^@]*:([^:@/]+)(?:@|$)/.exec(image)?.[1] ?? ''

/** What Talos wants of the machine's Node. The schematic is too long for a label. */
export const nodeWishesOf = (site: Site, machine: Machine): NodeWishes => {
  const { schematic } = runningSlot(machine.disk)
  const { labels, annotations, taints } = kubernetesConfigOf(site, machine)
  return { labels, annotations: schematic === '' ? annotations : { ...annotations, 'extensions.talos.dev/schematic': schematic }, taints }
}
