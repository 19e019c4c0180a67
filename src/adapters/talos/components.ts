import { ContainerDriver, ContainerdNamespace } from '../../../proto/gen/common/common_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { renderingOf } from '../../api/rendering.ts'
import type { ComponentCalls, MachineComponents, StaticComponent, StaticPodFacts, Waiting } from '../../ports/components.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { Calls } from './calls.ts'
import { getResource, listResources } from './cosi.ts'
import { redacted } from './redact.ts'
import { resourceTypes } from './resource-types.ts'
import { pullImage } from './upgrade.ts'

/** Reads what Talos makes of the configuration for Kubernetes, and what became of it on the machine. */
export function components(calls: Calls): Omit<ComponentCalls, 'setComponentImage'> {
  return {
    components: address => readComponents(calls, address),
    manifests: address => readManifests(calls, address),
    pullForPods: (address, image, call) => pullImage(calls, address, image, call, ContainerdNamespace.NS_CRI),
    lastWords: (address, component) => readLastWords(calls, address, component),
  }
}

type ProgramConfig = { readonly image: string; readonly enabled?: boolean }
type ReadConfig = (id: string) => Promise<Result<{ readonly spec: ProgramConfig } | undefined>>

function configsOf(calls: Calls, address: string): Readonly<Record<StaticComponent, ReadConfig>> {
  return {
    'kube-apiserver': id => getResource(calls, address, resourceTypes.apiServerConfig, id),
    'kube-controller-manager': id => getResource(calls, address, resourceTypes.controllerManagerConfig, id),
    'kube-scheduler': id => getResource(calls, address, resourceTypes.schedulerConfig, id),
  }
}
const staticComponents: readonly StaticComponent[] = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']

async function readComponents(calls: Calls, address: string): Promise<Result<MachineComponents>> {
  const [spec, status, pods, proxy] = await Promise.all([
    getResource(calls, address, resourceTypes.kubeletSpec, 'kubelet'),
    getResource(calls, address, resourceTypes.kubeletStatus, 'kubelet'),
    readStaticPods(calls, address),
    readManifests(calls, address),
  ])
  if (!spec.ok) return spec
  if (!status.ok) return status
  if (!pods.ok) return pods
  if (!proxy.ok) return proxy
  if (!spec.value) return failed('busy', `${address}: Talos has made no specification of the kubelet yet`)
  const running = status.value?.spec.image
  const kubeProxy = proxyImageIn(proxy.value)
  return ok({
    kubelet: { image: spec.value.spec.image, ...(running ? { running } : {}) },
    staticPods: pods.value,
    ...(kubeProxy === undefined ? {} : { kubeProxy }),
  })
}

async function readStaticPods(calls: Calls, address: string): Promise<Result<MachineComponents['staticPods']>> {
  const read = configsOf(calls, address)
  const [rendered, told, ...configs] = await Promise.all([
    listResources(calls, address, resourceTypes.staticPod),
    listResources(calls, address, resourceTypes.staticPodStatus),
    ...staticComponents.map(component => readConfig(read[component], component)),
  ])
  if (!rendered.ok) return rendered
  if (!told.ok) return told
  const found: Partial<Record<StaticComponent, StaticPodFacts>> = {}
  for (const [index, config] of configs.entries()) {
    const component = staticComponents[index]
    if (!config.ok) return config
    if (component === undefined || config.value === undefined) continue
    const pod = rendered.value.find(({ id }) => id === component)?.spec.pod
    const status = told.value.find(({ id }) => id.startsWith(`kube-system/${component}-`))?.spec.podStatus
    found[component] = {
      image: config.value,
      ...(pod ? { rendered: renderedOf(pod) } : {}),
      ...(status ? { told: toldOf(status) } : {}),
    }
  }
  return ok(found)
}

/** Its image; undefined where it is switched off, or the machine is no control plane. Since Talos 1.14 there are two, of which the one called final counts. */
async function readConfig(read: ReadConfig, component: StaticComponent): Promise<Result<string | undefined>> {
  const final = await read(`final-${component}`)
  if (!final.ok) return final
  const config = final.value ? final : await read(component)
  if (!config.ok) return config
  if (!config.value) return ok(undefined)
  const { enabled, image } = config.value.spec
  return ok(enabled === false ? undefined : image)
}

type Json = Readonly<Record<string, unknown>>
const record = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {})
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(record) : [])
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function renderedOf(pod: Json): NonNullable<StaticPodFacts['rendered']> {
  const [container] = list(record(pod['spec'])['containers'])
  const annotations = record(record(pod['metadata'])['annotations'])
  return {
    image: text(container?.['image']),
    configVersion: renderingOf(annotations),
    isProbed: container?.['startupProbe'] !== undefined || container?.['readinessProbe'] !== undefined,
  }
}

function toldOf(status: Json): NonNullable<StaticPodFacts['told']> {
  const [container] = list(status['containerStatuses'])
  const ready = list(status['conditions']).find(({ type }) => type === 'Ready')
  const waiting = waitingOf(container)
  const restarts = container?.['restartCount']
  return { ready: ready?.['status'] === 'True', restarts: typeof restarts === 'number' ? restarts : 0, ...(waiting ? { waiting } : {}) }
}

function waitingOf(container: Json | undefined): Waiting | undefined {
  const waiting = record(record(container?.['state'])['waiting'])
  return text(waiting['reason']) === '' ? undefined : { reason: text(waiting['reason']), message: text(waiting['message']) }
}

/** The ids of manifests begin with a number that orders them. */
async function readManifests(calls: Calls, address: string): Promise<Result<readonly Json[]>> {
  const manifests = await listResources(calls, address, resourceTypes.manifest)
  if (!manifests.ok) return manifests
  const inOrder = manifests.value.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  return ok(inOrder.flatMap(({ spec }) => spec.items.map(({ object }) => record(object))))
}

function proxyImageIn(manifests: readonly Json[]): string | undefined {
  const isProxy = ({ kind, metadata }: Json): boolean => kind === 'DaemonSet' && record(metadata)['name'] === 'kube-proxy'
  const template = record(record(record(manifests.find(isProxy)?.['spec'])['template'])['spec'])
  const [container] = list(template['containers'])
  return container && text(container['image'])
}

const wordsKept = 5
const longestWord = 300

async function readLastWords(calls: Calls, address: string, component: StaticComponent): Promise<Result<readonly string[]>> {
  const nodename = await getResource(calls, address, resourceTypes.nodename, 'nodename')
  if (!nodename.ok) return nodename
  if (!nodename.value) return ok([])
  let said = ''
  const decoder = new TextDecoder()
  const answer = await calls.stream(
    address,
    MachineService.method.logs,
    {
      namespace: 'k8s.io',
      driver: ContainerDriver.CRI,
      id: `kube-system/${component}-${nodename.value.spec.nodename}:${component}`,
      tailLines: wordsKept,
    },
    ({ bytes }) => {
      said = (said + decoder.decode(bytes, { stream: true })).slice(-wordsKept * 4096)
    },
    { subject: component },
  )
  if (!answer.ok) return /not found/.test(answer.fault.message) ? ok([]) : answer
  return ok(
    said
      .split('\n')
      .map(line => redacted(line, longestWord))
      .filter(line => line.trim() !== '')
      .slice(-wordsKept),
  )
}
