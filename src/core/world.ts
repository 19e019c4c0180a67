import type { MachineState, TalosOperation, Target } from '../api/talos-operation.ts'
import type { ObjectRef, TalosCluster } from '../api/talos-cluster.ts'
import type { TalosMachine } from '../api/talos-machine.ts'
import type { ApplyMode, DryRun, MachineConfiguration } from '../ports/configuration.ts'
import type { Lease, Texts, TextSource } from '../ports/home.ts'
import type { Result } from '../ports/fault.ts'
import type { MachineComponents, StaticComponent } from '../ports/components.ts'
import type { ControlPlaneFacts, DeprecatedApi, ManifestChange } from '../ports/control-plane.ts'
import type { BudgetFacts, ClusterAddons, NodeFacts, PodFacts, VolumeFacts } from '../ports/kube.ts'
import type { ServiceFacts } from '../ports/machine-actions.ts'
import type { EtcdView, MachineFacts } from '../ports/talos.ts'
import type { Timing } from './timing.ts'

/**
 * What a question may need to know of the outside. Facts are gathered only when a question needs them, so that the dangerous ones (etcd) are
 * asked late and their answers are fresh.
 */
export type Need =
  | { readonly what: 'machine'; readonly name: string }
  | { readonly what: 'nodes' | 'etcd' | 'budgets' | 'addons' | 'kubernetes' | 'controlPlane' | 'deprecatedApis' | 'policies' }
  | { readonly what: 'pods' | 'volumes'; readonly node: string }
  | { readonly what: 'service'; readonly name: string; readonly service: string }
  /** The programs of Kubernetes on a machine. */
  | { readonly what: 'components'; readonly name: string }
  /** What a static pod of a machine wrote last. */
  | { readonly what: 'lastWords'; readonly name: string; readonly component: StaticComponent }
  /** What applying the bootstrap manifests of a control plane would do. */
  | { readonly what: 'manifests'; readonly name: string }
  /** What answers in maintenance mode at the address of the machine. */
  | { readonly what: 'maintenance'; readonly name: string }
  /** The machine configuration of a machine, whole. */
  | { readonly what: 'configuration'; readonly name: string }
  /** What a machine says of a configuration that it is only shown. */
  | { readonly what: 'dryRun'; readonly name: string; readonly text: string; readonly mode: ApplyMode }
  /** A Secret or a ConfigMap beside the operation, `name` among them. */
  | { readonly what: 'texts'; readonly kind: TextSource; readonly name: string }
  /** Any object of the managed cluster. */
  | { readonly what: 'object'; readonly ref: ObjectRef }

/** A long act that runs beside the queue, and what it said last. Only for messages: nothing is decided on it but not to start it twice. */
export type RunningAct = { readonly target: string; readonly step: string; readonly progress: string }

/** Facts, each with the fault in its place where it could not be read. */
export type Facts = {
  readonly machines: Readonly<Record<string, Result<MachineFacts>>>
  readonly etcd: Readonly<Record<string, Result<EtcdView>>> | undefined
  readonly nodes: Result<readonly NodeFacts[]> | undefined
  readonly pods: Readonly<Record<string, Result<readonly PodFacts[]>>>
  readonly volumes: Readonly<Record<string, Result<readonly VolumeFacts[]>>>
  /** By `MACHINE/SERVICE`; undefined where the machine has no such service. */
  readonly services: Readonly<Record<string, Result<ServiceFacts | undefined>>>
  readonly maintenance: Readonly<Record<string, Result<{ readonly uuid: string }>>>
  readonly components: Readonly<Record<string, Result<MachineComponents>>>
  /** By `MACHINE/COMPONENT`. */
  readonly lastWords: Readonly<Record<string, Result<readonly string[]>>>
  readonly manifests: Readonly<Record<string, Result<readonly ManifestChange[]>>>
  readonly configurations: Readonly<Record<string, Result<MachineConfiguration>>>
  /** By `dryRunKey`. */
  readonly dryRuns: Readonly<Record<string, Result<DryRun>>>
  /** By `KIND/NAME`. */
  readonly texts: Readonly<Record<string, Result<Texts>>>
  /** Any objects, by `objectKey`, as the API server has them. */
  readonly objects: Readonly<Record<string, Result<Readonly<Record<string, unknown>>>>>
  readonly budgets: Result<readonly BudgetFacts[]> | undefined
  readonly addons: Result<ClusterAddons> | undefined
  /** The version of the managed cluster's API server. */
  readonly kubernetes: Result<string> | undefined
  readonly controlPlane: Result<ControlPlaneFacts> | undefined
  readonly deprecatedApis: Result<readonly DeprecatedApi[]> | undefined
  /** What keeps the API server at home from enforcing who may start what; empty: nothing. */
  readonly policies: Result<readonly string[]> | undefined
}

export const NO_FACTS: Facts = {
  machines: {},
  etcd: undefined,
  nodes: undefined,
  pods: {},
  volumes: {},
  services: {},
  maintenance: {},
  components: {},
  lastWords: {},
  manifests: {},
  configurations: {},
  dryRuns: {},
  texts: {},
  objects: {},
  budgets: undefined,
  addons: undefined,
  kubernetes: undefined,
  controlPlane: undefined,
  deprecatedApis: undefined,
  policies: undefined,
}

/** One frozen picture of everything that a decision may depend on, `now` included. */
export type World = {
  readonly now: number
  /**
   * For how long the operation has been in sight, milliseconds of a clock that nobody sets: 0 at the first look of a process, and at the first after one
   * that failed, or whose outcome could not be written.
   */
  readonly watchedMs: number
  readonly timing: Timing
  readonly cluster: TalosCluster
  readonly machines: readonly TalosMachine[]
  /** The cluster lock as the server has it now; undefined where no Lease exists yet. */
  readonly lock: Lease | undefined
  /** The other operations of this cluster. */
  readonly others: readonly TalosOperation[]
  /** The Node that this controller's own pod runs on, and the pod; undefined outside a cluster. */
  readonly self: { readonly namespace: string; readonly pod: string; readonly node: string } | undefined
  readonly running: readonly RunningAct[]
  readonly facts: Facts
}

export const isKnown = (facts: Facts, need: Need): boolean => {
  switch (need.what) {
    case 'machine':
      return need.name in facts.machines
    case 'pods':
      return need.node in facts.pods
    case 'volumes':
      return need.node in facts.volumes
    case 'service':
      return serviceKey(need) in facts.services
    case 'maintenance':
      return need.name in facts.maintenance
    case 'components':
    case 'manifests':
      return need.name in facts[need.what]
    case 'lastWords':
      return lastWordsKey(need) in facts.lastWords
    case 'configuration':
      return need.name in facts.configurations
    case 'dryRun':
      return dryRunKey(need) in facts.dryRuns
    case 'texts':
      return textsKey(need) in facts.texts
    case 'object':
      return objectKey(need.ref) in facts.objects
    case 'etcd':
    case 'nodes':
    case 'budgets':
    case 'addons':
    case 'kubernetes':
    case 'controlPlane':
    case 'deprecatedApis':
    case 'policies':
      return facts[need.what] !== undefined
  }
}

export const serviceKey = ({ name, service }: { readonly name: string; readonly service: string }): string => `${name}/${service}`

type Shown = { readonly name: string; readonly text: string; readonly mode: ApplyMode }
export const dryRunKey = ({ name, text, mode }: Shown): string => `${name}/${mode}/${text}`
export const textsKey = ({ kind, name }: { readonly kind: TextSource; readonly name: string }): string => `${kind}/${name}`

export const lastWordsKey = ({ name, component }: { readonly name: string; readonly component: StaticComponent }): string =>
  `${name}/${component}`
export const objectKey = ({ apiVersion, kind, namespace = '', name }: ObjectRef): string => `${apiVersion}/${kind} ${namespace}/${name}`

/** Throws where a step forgot to declare a need. That is a fault of ours, not of the world. */
const declared = <T>(fact: T | undefined, ...what: readonly string[]): T => {
  if (fact === undefined) throw new Error(`a question asked for ${what.join(' ')} without declaring it in its needs`)
  return fact
}

export const machineFacts = (world: World, name: string): Result<MachineFacts> => declared(world.facts.machines[name], 'machine', name)
export const nodeFacts = (world: World): Result<readonly NodeFacts[]> => declared(world.facts.nodes, 'nodes')
export const etcdFacts = (world: World, name: string): Result<EtcdView> => declared(world.facts.etcd?.[name], 'etcd on', name)
export const podFacts = (world: World, node: string): Result<readonly PodFacts[]> => declared(world.facts.pods[node], 'pods on', node)
export const volumeFacts = (world: World, node: string): Result<readonly VolumeFacts[]> =>
  declared(world.facts.volumes[node], 'volumes of', node)
export const serviceFacts = (world: World, name: string, service: string): Result<ServiceFacts | undefined> =>
  declared(world.facts.services[serviceKey({ name, service })], 'service', service, 'of', name)
export const maintenanceFacts = (world: World, name: string): Result<{ readonly uuid: string }> =>
  declared(world.facts.maintenance[name], 'maintenance of', name)
export const objectFacts = (world: World, ref: ObjectRef): Result<Readonly<Record<string, unknown>>> =>
  declared(world.facts.objects[objectKey(ref)], ref.kind, ref.name)
export const configurationFacts = (world: World, name: string): Result<MachineConfiguration> =>
  declared(world.facts.configurations[name], 'configuration of', name)
export const dryRunFacts = (world: World, shown: Shown): Result<DryRun> =>
  declared(world.facts.dryRuns[dryRunKey(shown)], 'dry run on', shown.name)
export const textsFacts = (world: World, of: { readonly kind: TextSource; readonly name: string }): Result<Texts> =>
  declared(world.facts.texts[textsKey(of)], of.kind, of.name)
export const componentFacts = (world: World, name: string): Result<MachineComponents> =>
  declared(world.facts.components[name], 'components of', name)
export const lastWordsFacts = (world: World, name: string, component: StaticComponent): Result<readonly string[]> =>
  declared(world.facts.lastWords[lastWordsKey({ name, component })], 'last words of', component, 'on', name)
export const manifestFacts = (world: World, name: string): Result<readonly ManifestChange[]> =>
  declared(world.facts.manifests[name], 'manifests of', name)
export const controlPlaneFacts = (world: World): Result<ControlPlaneFacts> => declared(world.facts.controlPlane, 'the control plane')
export const deprecatedApiFacts = (world: World): Result<readonly DeprecatedApi[]> =>
  declared(world.facts.deprecatedApis, 'deprecated APIs')
export const policyGaps = (world: World): Result<readonly string[]> => declared(world.facts.policies, 'admission policies')
export const budgetFacts = (world: World): Result<readonly BudgetFacts[]> => declared(world.facts.budgets, 'budgets')

/**
 * The Node of a machine: by the name that Talos registers, and only if it is that machine by boot id or system UUID where both are known. Two Nodes
 * may share an address after a rename, and names may differ in case.
 */
export const nodeOf = (nodes: readonly NodeFacts[], nodename: string): NodeFacts | undefined =>
  nodes.find(n => n.name === nodename) ?? nodes.find(n => n.name === nodename.toLowerCase())

/** How people know a machine: its host name where we have seen it. */
export const displayName = (machine: { readonly name: string; readonly hostname?: string | undefined }): string =>
  machine.hostname ?? machine.name
export const machineTitle = ({ metadata, status }: TalosMachine): string => displayName({ name: metadata.name, hostname: status.hostname })

/** What a machine was, for `before` and `after`. A cordon of this operation is not one that was there before. */
export const stateOf = (facts: MachineFacts, node: NodeFacts | undefined, operationUid: string): MachineState => ({
  version: facts.version,
  schematic: facts.schematic,
  bootID: facts.bootID,
  ...(facts.nodeID === '' ? {} : { nodeID: facts.nodeID }),
  ...(node ? { cordoned: node.unschedulable && node.cordonedBy !== operationUid } : {}),
})

/** What a question about one target may look at. */
export type View = { readonly operation: TalosOperation; readonly target: Target; readonly world: World }
