import type { ApiResult } from '../../adapters/kube/classify.ts'
import type { Resource } from '../../adapters/kube/resource.ts'
import type { KindBlock, OperationSpec, TalosOperation } from '../../api/talos-operation.ts'
import { nearestFirst } from '../../core/nearest.ts'
import type { Plan } from '../../engine/plan.ts'
import type { Certificate, ClusterSight } from '../../core/looks/cluster-sight.ts'
import type { Result } from '../../ports/fault.ts'
import type { Key } from '../../ports/home.ts'
import type { Stranger } from '../doctor/sights.ts'
import type { Api, Connection, KubeObject } from './api.ts'
import type { Exit } from './exit-codes.ts'
import type { Wanted } from './install-objects.ts'
import { bareName, CLUSTER, MACHINE, OPERATION, SELF_REVIEW } from './resource-types.ts'
import { crdsMissing, faultStop, named, Stop } from './stop.ts'
import type { Terminal } from './terminal.ts'
import { nextCommand } from './typed.ts'

/** What the program needs from outside. Everything that is slow to load comes by a function. */
export type Outside = {
  readonly terminal: Terminal
  /** How this program is called in its own help and hints: `ichor`, or `kubectl ichor`. */
  readonly calledAs: string
  readonly version: string
  /** The kinds of operation, for the commands that start one. */
  readonly kinds: readonly KindBlock[]
  /** Throws Stop where the kubeconfig cannot be used. */
  readonly connect: (choice: ConnectionChoice) => Promise<Connection>
  /** What that operation would do, by the controller's own checks made from here. Writes nothing. */
  readonly plan: (
    operation: { readonly namespace: string; readonly name: string; readonly spec: OperationSpec },
    choice: ConnectionChoice,
  ) => Promise<Result<Plan>>
  /** Those that one gets in with by a kubeconfig, and the one that its API server shows. */
  readonly certificates: (choice: ConnectionChoice) => Promise<readonly Certificate[]>
  /** A cluster that is registered, looked at from here; nothing is changed there. `controllerNodes`: where the pods of the controller are. */
  readonly registeredSight: (key: Key, choice: ConnectionChoice, controllerNodes: readonly string[]) => Promise<Result<ClusterSight>>
  /** One that is not. */
  readonly strangerSight: (stranger: Stranger, choice: ConnectionChoice) => Promise<ClusterSight>
  /** Throws Stop where it cannot be read. */
  readonly readFile: (path: string) => Promise<string>
  readonly crds: () => Promise<readonly KubeObject[]>
  /** All that is installed besides, in its order. */
  readonly installed: (wanted: Wanted) => Promise<readonly KubeObject[]>
  readonly yaml: (value: unknown) => Promise<string>
}

export type ConnectionChoice = { readonly kubeconfig?: string; readonly context?: string }

/** The options that every command knows. */
export type GlobalOptions = ConnectionChoice & { readonly namespace?: string }

/** What a command works with: one API server, one namespace. */
export type Session = {
  readonly outside: Outside
  readonly terminal: Terminal
  readonly api: Api
  readonly server: string
  readonly namespace: string
  readonly user: string
  readonly choice: ConnectionChoice
}

/** A command's end. */
export type Answer = Exit | void

export const defaultNamespace = 'ichor-system'

export const choiceOf = ({ kubeconfig, context }: GlobalOptions): ConnectionChoice => ({
  ...(kubeconfig ? { kubeconfig } : {}),
  ...(context ? { context } : {}),
})

export const openSession = async (outside: Outside, options: GlobalOptions): Promise<Session> => {
  const choice = choiceOf(options)
  const { api, server, namespace, user } = await outside.connect(choice)
  return { outside, terminal: outside.terminal, api, server, user, choice, namespace: options.namespace ?? (namespace || defaultNamespace) }
}

/** The value, or the end of the command with the fault in words. `tried` fits after "cannot". */
export const must = <T>({ server }: Session, result: ApiResult<T>, tried: string): T => {
  if (!result.ok) throw faultStop(result.fault, tried, server)
  return result.value
}

const words: Readonly<Record<string, string>> = {
  [OPERATION.plural]: 'operation',
  [CLUSTER.plural]: 'cluster',
  [MACHINE.plural]: 'machine',
}
export const wordFor = (type: Resource): string => words[type.plural] ?? type.kind

/** The object; where there is none, the end of the command with the names that there are. */
export const mustGet = async (session: Session, type: Resource, name: string): Promise<KubeObject> => {
  const result = await session.api.get(type, session.namespace, name)
  if (result.ok) return result.value
  if (result.fault.kind !== 'notFound') throw faultStop(result.fault, `read ${wordFor(type)} ${name}`, session.server)
  throw await notThere(session, type, name)
}

/** Says which there are, the nearest first, because most absent names are misspelt, in another namespace or of something else. */
export const notThere = async (session: Session, type: Resource, name: string): Promise<Stop> => {
  const { api, namespace, server } = session
  const word = wordFor(type)
  const others = [OPERATION, CLUSTER, MACHINE].filter(other => other.plural !== type.plural)
  const bare = others.map(other => bareName(other, name)).find(text => text !== name)
  const [here, everywhere, ...asOther] = await Promise.all([
    api.list(type, namespace),
    api.list(type),
    ...others.map(other => (bare === undefined || bareName(other, name) === bare ? api.get(other, namespace, bare ?? name) : undefined)),
  ])
  if (!here.ok && (here.fault.kind === 'notFound' || here.fault.kind === 'unsupported')) return crdsMissing(server)
  const elsewhere = everywhere.ok
    ? everywhere.value.filter(o => o.metadata.name === name && o.metadata.namespace !== namespace).map(o => o.metadata.namespace ?? '')
    : []
  const hints = []
  if (elsewhere.length > 0) hints.push(`There is one in namespace ${named(elsewhere)}: add -n ${elsewhere[0]}`)
  for (const [index, other] of others.entries())
    if (asOther[index]?.ok)
      hints.push(
        `There is ${other === OPERATION ? 'an' : 'a'} ${wordFor(other)} of that name: ${nextCommand(session, `${wordFor(other)} get ${bare ?? name} -n ${namespace}`)}`,
      )
  if (here.ok) hints.push(whichThereAre(here.value, word, name))
  return new Stop('error', `there is no ${word} "${name}" in namespace ${namespace}`, hints)
}

const whichThereAre = (objects: readonly KubeObject[], word: string, name: string): string => {
  if (objects.length === 0) return `There is no ${word} at all in this namespace; -n chooses another.`
  // Machines are known by their host names, which may be what was typed.
  const shown = new Map<string, string>()
  for (const { metadata, status } of objects) {
    const { hostname } = (status ?? {}) as { readonly hostname?: string }
    const key = hostname ?? metadata.name
    const text = hostname === undefined || hostname === metadata.name ? metadata.name : `${metadata.name} (${hostname})`
    shown.set(shown.has(key) ? metadata.name : key, text)
  }
  return `There are: ${named(nearestFirst([...shown.keys()], name).map(key => shown.get(key) ?? key))}`
}

/** An operation as the rest of the code knows it: with the fields that a server leaves out where they are empty. */
export const operationOf = (object: KubeObject): TalosOperation => {
  const { metadata } = object
  return {
    metadata: {
      ...metadata,
      namespace: metadata.namespace ?? '',
      uid: metadata.uid ?? '',
      resourceVersion: metadata.resourceVersion ?? '',
      generation: metadata.generation ?? 0,
      creationTimestamp: metadata.creationTimestamp ?? '',
      labels: metadata.labels ?? {},
      annotations: metadata.annotations ?? {},
      finalizers: metadata.finalizers ?? [],
    },
    spec: object.spec as TalosOperation['spec'],
    status: (object.status ?? {}) as TalosOperation['status'],
  }
}

/** Who the API server takes us for. */
export const whoAmI = async ({ api, user }: Session): Promise<string> => {
  const review = await api.create(SELF_REVIEW, undefined, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'SelfSubjectReview',
    metadata: {},
  })
  const status = review.ok ? (review.value.status as { userInfo?: { username?: unknown } } | undefined) : undefined
  const name = status?.userInfo?.username
  return typeof name === 'string' && name !== '' ? name : user
}

/** Asks for a name to be typed, for what destroys something. `given` is what a flag said; it has to be that very name. */
export const confirmName = async (terminal: Terminal, what: string, name: string, given: string | undefined): Promise<void> => {
  if (given !== undefined) return mustBeNamed(name, given)
  mustBeAskable(terminal, `--confirm ${name}`)
  const answer = (await terminal.ask(`${what} Type ${name} to go on: `)).trim()
  if (answer !== name) throw new Stop('usage', 'not confirmed. Nothing was done.')
}

/** `given`: what was typed as --confirm. */
export const mustBeNamed = (name: string, given: string): void => {
  if (given !== name) throw new Stop('usage', `--confirm ${JSON.stringify(given)} is not ${name}. Nothing was done.`)
}

/** `flag`: what would answer. Asked early, too, where much would be told before the question. */
export const mustBeAskable = ({ canAsk }: Terminal, flag: string): void => {
  if (!canAsk) throw new Stop('usage', `Nobody can be asked here: add ${flag}. Nothing was done.`)
}

/** Asks; only y and yes are a yes. Where nobody can be asked, says which flag answers. */
export const confirm = async (terminal: Terminal, question: string, isAnswered: boolean | undefined): Promise<void> => {
  if (isAnswered) return
  mustBeAskable(terminal, '--yes')
  const answer = (await terminal.ask(`${question} [y/N] `)).trim().toLowerCase()
  if (answer !== 'y' && answer !== 'yes') throw new Stop('usage', 'not confirmed. Nothing was done.')
}
