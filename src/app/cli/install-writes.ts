// How the objects of an installation come to the API server: looked at, judged by it, and only then written.
import { isDeepStrictEqual } from 'node:util'
import { POLICY_TYPES } from '../../adapters/kube/policies.ts'
import type { Resource } from '../../adapters/kube/resource.ts'
import type { ApiResult } from '../../adapters/kube/classify.ts'
import { talosAccessPatch } from '../../install/talos-access-patch.ts'
import type { Fault } from '../../ports/fault.ts'
import type { KubeObject } from './api.ts'
import { MACHINE, qualifiedName, TALOS_ACCOUNT } from './resource-types.ts'
import type { Session } from './session.ts'
import { must } from './session.ts'
import { Stop } from './stop.ts'
import { nextCommand } from './typed.ts'

export type Writing = { readonly type: Resource; readonly object: KubeObject }

/** What is there under the name of an object that we want to write. */
export type Found = Writing & { readonly now: KubeObject | undefined }

/** The name of an object, and why it is not taken. */
type Refusal = readonly [name: string, why: string]

export const nameOf = (type: Resource, { metadata: { name, namespace } }: KubeObject): string =>
  `${qualifiedName(type, name)}${namespace ? ` in ${namespace}` : ''}`

/** What is there, and what the API server does not let us see. */
export const lookAt = async (
  session: Session,
  all: readonly Writing[],
): Promise<{ readonly found: readonly Found[]; readonly unseen: readonly Refusal[] }> => {
  const unseen: Refusal[] = []
  const found = await Promise.all(
    all.map(async ({ type, object }): Promise<Found> => {
      const { name, namespace } = object.metadata
      const now = await session.api.get(type, namespace, name)
      if (!now.ok && now.fault.kind === 'forbidden') unseen.push([nameOf(type, object), now.fault.sentence ?? now.fault.message])
      else if (!now.ok && now.fault.kind !== 'notFound' && now.fault.kind !== 'unsupported')
        must(session, now, `look whether ${nameOf(type, object)} exists`)
      return { type, object, now: now.ok ? now.value : undefined }
    }),
  )
  return { found, unseen }
}

/** What would be there after the writing; absent where the API server cannot judge it yet. */
export type Judged = Found & { readonly after: KubeObject | undefined }

/** Everything is judged by the API server before anything is written: rights, and the objects themselves. All that it says is told at once. */
export const mustBeTaken = async (session: Session, all: readonly Found[], unseen: readonly Refusal[] = []): Promise<readonly Judged[]> => {
  const refused = new Map(unseen)
  const judged = await Promise.all(
    all.map(async (found): Promise<Judged> => {
      const { type, object } = found
      const said = await send(session, found, { dryRun: true })
      if (said.ok) return { ...found, after: said.value }
      const hasNoTalos = said.fault.kind === 'unsupported' && type.group === TALOS_ACCOUNT.group
      // What lies in a namespace, or is of a type, that is only about to be written cannot be judged yet.
      if (hasNoTalos || (said.fault.kind !== 'notFound' && said.fault.kind !== 'unsupported'))
        refused.set(nameOf(type, object), hasNoTalos ? NO_TALOS_ACCESS : (said.fault.sentence ?? said.fault.message))
      return { ...found, after: undefined }
    }),
  )
  if (refused.size > 0)
    throw new Stop('refused', 'the API server does not take this; nothing was installed', [
      ...[...refused].map(([name, why]) => `${name}: ${why}`),
      ...([...refused.values()].includes(NO_TALOS_ACCESS) ? await howTalosIsTold(session) : []),
    ])
  return judged
}

const NO_TALOS_ACCESS = 'this cluster has no Talos API access: its control planes have to allow it'

/** The patch, and the ways to bring it to the control planes: by an operation where Ichor knows them already. */
const howTalosIsTold = async (session: Session): Promise<readonly string[]> => {
  const { api, namespace } = session
  const machines = await api.list(MACHINE)
  const specs = (machines.ok ? machines.value : []).map(({ metadata, spec }) => ({
    ...metadata,
    ...(spec as { readonly clusterRef: { readonly name: string }; readonly role: string }),
  }))
  const first = specs.find(({ role }) => role === 'controlplane')
  const known = specs.filter(
    one => one.role === 'controlplane' && one.clusterRef.name === first?.clusterRef.name && one.namespace === first.namespace,
  )
  return [
    'This has to be in their machine configuration; it takes no reboot:',
    ...talosAccessPatch(namespace)
      .trimEnd()
      .split('\n')
      .map(line => `  ${line}`),
    `This writes it into a file: ${nextCommand(session, `install --talos-patch -n ${namespace}`)} > talos-access.yaml`,
    'For each of them: talosctl patch mc -n ADDRESS -p @talos-access.yaml',
    ...(first
      ? [
          `Or all of cluster ${first.clusterRef.name}: ${nextCommand(session, `config rollout -f talos-access.yaml --cluster ${first.clusterRef.name} --machines ${known.map(({ name }) => name).join(',')} -n ${first.namespace} --wait`)}`,
        ]
      : []),
  ]
}

/** How often a policy is written anew that somebody else wrote at the same moment; the API server itself writes their status. */
const TRIES = 5

/** Faults of looking for it after which it is written all the same: it is not there, nor may its type be; or one may write it and not read it. */
const MAY_BE_MADE: ReadonlySet<Fault['kind']> = new Set(['notFound', 'unsupported', 'forbidden'])

/** Writes it, and tells what became of it. */
export const write = async (session: Session, { type, object }: Writing): Promise<void> => {
  const { name, namespace } = object.metadata
  for (let tries = 1; ; tries++) {
    const before = await session.api.get(type, namespace, name)
    // What is only out of sight may be there, and is not written as if it were not.
    if (!before.ok && !MAY_BE_MADE.has(before.fault.kind)) must(session, before, `install ${nameOf(type, object)}`)
    const sent = await send(session, { type, object, now: before.ok ? before.value : undefined })
    if (!sent.ok && sent.fault.kind === 'conflict' && tries < TRIES) continue
    const after = must(session, sent, `install ${nameOf(type, object)}`)
    // The API server also gives another version to what it only fills in from the type's defaults.
    const isAsBefore =
      before.ok && (before.value.metadata.resourceVersion === after.metadata.resourceVersion || isSame(before.value, after))
    return session.terminal.out(`${nameOf(type, object)} ${!before.ok ? 'created' : isAsBefore ? 'unchanged' : 'updated'}`)
  }
}

/** What writing it would tell. */
export const tell = ({ terminal }: Session, { type, object, now, after }: Judged): void =>
  terminal.out(`${nameOf(type, object)} ${!now ? 'would be created' : after && isSame(now, after) ? 'unchanged' : 'would be updated'}`)

const isSame = (one: KubeObject, other: KubeObject): boolean => isDeepStrictEqual(lasting(one), lasting(other))

/** Without what each write changes by itself. */
const lasting = ({ metadata, ...rest }: KubeObject): object => {
  const managers = (metadata.managedFields ?? []) as readonly object[]
  return {
    ...rest,
    metadata: { ...metadata, resourceVersion: '', generation: 0, managedFields: managers.map(manager => ({ ...manager, time: '' })) },
  }
}

export const isPolicy = ({ group, plural }: Resource): boolean =>
  Object.values(POLICY_TYPES).some(type => type.group === group && type.plural === plural)

/**
 * Applied; but a policy that is there is replaced by a whole one. An apply leaves the fields of others, and in a policy each of those, a selector or an
 * exception, may let through what it should refuse. It holds all the while.
 */
const send = (
  { api }: Session,
  { type, object, now }: Found,
  options: { readonly dryRun?: boolean } = {},
): Promise<ApiResult<KubeObject>> => {
  const { name, namespace, labels } = object.metadata
  if (!now || !isPolicy(type)) return api.apply(type, namespace, name, object, options)
  const metadata = { ...now.metadata, labels: { ...now.metadata.labels, ...labels } }
  return api.replace(type, namespace, name, { ...object, metadata }, options)
}
