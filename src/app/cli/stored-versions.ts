// Objects stay stored as the version that was the storage version when they were last written. A CRD lists those in status.storedVersions, and the API
// server lets no version go from a CRD that is listed there. So whoever installs rewrites every object, and then takes the old names from the list.
// (Kubernetes: "Upgrade existing objects to a new stored version".)
import { createHash } from 'node:crypto'
import type { Resource } from '../../adapters/kube/resource.ts'
import type { KubeObject } from './api.ts'
import { CRD } from './resource-types.ts'
import type { Session } from './session.ts'
import { must } from './session.ts'
import { named, Stop } from './stop.ts'

/** What a CRD says of versions. */
type Versions = {
  /** `talosoperations.ichor.maesh.dev`. */
  readonly name: string
  readonly all: readonly string[]
  readonly storage: string
  /** As which objects may be stored. Empty for one that is only about to be written. */
  readonly stored: readonly string[]
  /** The type in a version that is served, by which its objects can be reached. */
  readonly type: Resource
}

type CrdSpec = {
  readonly group: string
  readonly names: { readonly plural: string; readonly kind: string }
  readonly versions: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean }[]
}

const SETTLED_MS = 60_000
const AT_ONCE = 10

const versionsOf = ({ metadata, spec, status }: KubeObject): Versions => {
  const { group, names, versions } = spec as CrdSpec
  const storage = versions.find(version => version.storage)?.name ?? ''
  const reached = versions.find(({ name, served }) => served && name === storage) ?? versions.find(({ served }) => served)
  return {
    name: metadata.name,
    all: versions.map(version => version.name),
    storage,
    stored: (status as { storedVersions?: readonly string[] } | undefined)?.storedVersions ?? [],
    type: { group, plural: names.plural, kind: names.kind, version: reached?.name ?? storage },
  }
}

/** Names of the list that the CRD which is wanted does not have. */
const lostBy = (wanted: KubeObject, now: Versions): readonly string[] => {
  const { all } = versionsOf(wanted)
  return now.stored.filter(name => !all.includes(name))
}

const present = async (session: Session, name: string): Promise<Versions | undefined> => {
  const found = await session.api.get(CRD, undefined, name)
  if (!found.ok && found.fault.kind === 'notFound') return undefined
  return versionsOf(must(session, found, `read the resource type ${name}`))
}

/** A type on its way from one set of versions to another. */
export type Move = {
  readonly wanted: KubeObject
  /** Old versions go with the CRD that is wanted, so that objects have to be rewritten before it is written. */
  readonly isFirst: boolean
  /** As what objects are stored that have to be rewritten, as far as it is known before. */
  readonly from: readonly string[]
  readonly to: string
}

/**
 * What has to be rewritten for these CRDs. Ends the command where a version that objects are stored as would be lost: an older Ichor over a newer one, or
 * a newer one that left out the version between.
 */
export const plannedMoves = async (session: Session, crds: readonly KubeObject[]): Promise<readonly Move[]> => {
  const moves = await Promise.all(
    crds.map(async (wanted): Promise<Move & { readonly lost: readonly string[] }> => {
      const now = await present(session, wanted.metadata.name)
      const to = versionsOf(wanted).storage
      const gone = now ? lostBy(wanted, now) : []
      const isLost = now !== undefined && gone.length > 0 && !versionsOf(wanted).all.includes(now.storage)
      return { wanted, isFirst: gone.length > 0, lost: isLost ? gone : [], from: (now?.stored ?? []).filter(name => name !== to), to }
    }),
  )
  const lost = moves.filter(move => move.lost.length > 0)
  if (lost.length > 0)
    throw new Stop(
      'refused',
      'objects are stored as a version that this Ichor does not know; it could not read them. Nothing was installed',
      [
        ...lost.map(
          ({ wanted, lost: names, to }) =>
            `${wanted.metadata.name}: stored as ${names.join(', ')}; this Ichor knows ${versionsOf(wanted).all.join(', ')} and stores ${to}`,
        ),
        `This is Ichor ${session.outside.version}. Install one that knows both versions: a newer one, or the releases between in their order.`,
      ],
    )
  return moves.filter(({ from }) => from.length > 0)
}

/** Rewrites all objects of a CRD that may be stored as another version than its storage version, and takes the old names from its list. */
export const bringUpStored = async (session: Session, name: string): Promise<void> => {
  const { api, terminal } = session
  const now = await present(session, name)
  const old = now?.stored.filter(version => version !== now.storage) ?? []
  if (!now || old.length === 0) return
  await storesAs(session, now)
  const objects = must(session, await api.list(now.type), `list ${name}`)
  const failures: string[] = []
  for (let begin = 0; begin < objects.length; begin += AT_ONCE) {
    await Promise.all(
      objects.slice(begin, begin + AT_ONCE).map(async ({ metadata }) => {
        // A change of nothing: the API server writes what it would not write in the same way again.
        const written = await api.patch(now.type, metadata.namespace, metadata.name, {})
        if (!written.ok && written.fault.kind !== 'notFound')
          failures.push(`${metadata.namespace}/${metadata.name}: ${written.fault.sentence ?? written.fault.message}`)
      }),
    )
  }
  if (failures.length > 0)
    throw new Stop(
      'error',
      `${name}: ${failures.length} of ${objects.length} objects could not be rewritten and are stored as ${named(old)}; it still lists that`,
      [...failures.slice(0, 8), 'They can be read all the same. Mend what is in the way, and install again.'],
    )
  must(
    session,
    await api.patch(CRD, undefined, name, { status: { storedVersions: [now.storage] } }, { subresource: 'status' }),
    `change the stored versions of ${name}`,
  )
  terminal.out(
    `${name} stored as ${now.storage}: ${objects.length} object${objects.length === 1 ? '' : 's'} rewritten, ${named(old)} no longer listed`,
  )
}

/** Waits until the API server itself writes in the storage version: a moment after a CRD was changed it still writes as before. */
const storesAs = async ({ api, terminal }: Session, { name, type, storage }: Versions): Promise<void> => {
  const expected = storageHash({ ...type, version: storage })
  const begun = terminal.now()
  for (;;) {
    const hash = await api.storageHash(type)
    // A server that says nothing of it cannot be waited for.
    if (hash.ok && (hash.value === '' || hash.value === expected)) return
    if (terminal.now() - begun > SETTLED_MS)
      throw new Stop('error', `the API server does not store ${name} as ${storage} yet; install again in a while`)
    await new Promise<void>(resolve => {
      const stop = terminal.every(200, () => {
        stop()
        resolve()
      })
    })
  }
}

/** `storageVersionHash`, as the API server makes it (apiserver, endpoints/discovery/storageversionhash.go). */
const storageHash = ({ group, version, kind }: Resource): string =>
  createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
