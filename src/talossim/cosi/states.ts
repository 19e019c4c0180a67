import { create } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import type { Resource } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { ResourceSchema } from '../../../proto/gen/cosi/resource/state_pb.ts'
import type { Machine } from '../../world/machine.ts'
import type { Site } from '../../world/site.ts'
import type { Authorities } from '../call.ts'
import type { Beside, Drawn, ResourceKind } from './kind.ts'
import { createStaticPodReports } from './static-pod-reports.ts'

/** `at` counts the events of one type on one machine since its boot, from 1. */
export type ResourceEvent = { readonly at: number } & (
  | { readonly type: 'CREATED' | 'DESTROYED'; readonly resource: Resource }
  | { readonly type: 'UPDATED'; readonly resource: Resource; readonly old: Resource }
)

/**
 * The resources of all machines, with their versions. They are drawn from the world when somebody looks, so a version grows with each change that
 * was seen, not with each that happened; who watches sees all. A reboot forgets everything, as it does in Talos.
 */
export type ResourceStates = {
  /** In the order of their ids. */
  readonly list: (machine: Machine, kind: ResourceKind) => readonly Resource[]
  /** The last events, oldest first, and how many there were in all. */
  readonly history: (machine: Machine, kind: ResourceKind) => { readonly events: readonly ResourceEvent[]; readonly count: number }
  /** The answer unsubscribes. */
  readonly watch: (machine: Machine, kind: ResourceKind, listener: (event: ResourceEvent) => void) => () => void
  /** To be called after a change of which the world tells nobody. */
  readonly look: () => void
  readonly close: () => void
}

type Held = { readonly drawn: Drawn; readonly resource: Resource; readonly version: number; readonly created: number }
type Watcher = { readonly machine: Machine; readonly kind: ResourceKind; readonly listener: (event: ResourceEvent) => void }
/** What one machine holds of one type in its present life. */
type Shelf = { readonly bootID: string; readonly held: Map<string, Held>; readonly history: ResourceEvent[]; count: number; isNew: boolean }

const EVENTS_KEPT = 100

/** What a machine knows of only by its configuration. */
const needsConfig = ({ type, namespace }: ResourceKind): boolean => NEED_CONFIG.includes(namespace) || type.startsWith('ImageCacheConfigs.')
const NEED_CONFIG: readonly string[] = ['cluster', 'config', 'controlplane', 'etcd', 'k8s', 'secrets']

const same = (a: Drawn, b: Drawn): boolean => a.yaml === b.yaml && JSON.stringify(a.annotations) === JSON.stringify(b.annotations)

const resourceOf = (kind: ResourceKind, drawn: Drawn, version: number, created: number, updated: number): Resource =>
  create(ResourceSchema, {
    metadata: {
      namespace: kind.namespace,
      type: kind.type,
      id: drawn.id,
      version: String(version),
      owner: kind.owner,
      phase: 'running',
      created: timestampFromMs(created),
      updated: timestampFromMs(updated),
      annotations: { ...drawn.annotations },
    },
    spec: { protoSpec: drawn.proto, yamlSpec: drawn.yaml },
  })

export const createResourceStates = (site: Site, authorities?: Authorities): ResourceStates => {
  const shelves = new Map<Machine, Map<string, Shelf>>()
  const watchers = new Set<Watcher>()

  const shelfOf = (machine: Machine, kind: ResourceKind): Shelf => {
    const own = shelves.get(machine) ?? new Map<string, Shelf>()
    shelves.set(machine, own)
    const found = own.get(kind.type)
    if (found && found.bootID === machine.bootID) return found
    const fresh: Shelf = { bootID: machine.bootID, held: new Map(), history: [], count: 0, isNew: true }
    own.set(kind.type, fresh)
    return fresh
  }

  /** Compares what was seen last with what is, and tells the watchers. */
  const refresh = (machine: Machine, kind: ResourceKind): Shelf => {
    const shelf = shelfOf(machine, kind)
    const now = site.schedule.now()
    const events: ResourceEvent[] = []
    const present = new Set<string>()
    for (const drawn of machine.config === '' && needsConfig(kind) ? [] : kind.draw(site, machine, beside)) {
      present.add(drawn.id)
      const held = shelf.held.get(drawn.id)
      if (held && same(held.drawn, drawn)) continue
      // Nobody looked before: it has been there since the boot.
      const created = held?.created ?? (shelf.isNew ? Math.min(machine.bootedAt, now) : now)
      const version = (held?.version ?? 0) + 1
      const resource = resourceOf(kind, drawn, version, created, held ? now : created)
      shelf.held.set(drawn.id, { drawn, resource, version, created })
      const at = ++shelf.count
      events.push(held ? { at, type: 'UPDATED', resource, old: held.resource } : { at, type: 'CREATED', resource })
    }
    for (const [id, { resource }] of shelf.held) {
      if (present.has(id)) continue
      shelf.held.delete(id)
      events.push({ at: ++shelf.count, type: 'DESTROYED', resource })
    }
    shelf.isNew = false
    shelf.history.push(...events)
    shelf.history.splice(0, shelf.history.length - EVENTS_KEPT)
    for (const watcher of watchers)
      if (watcher.machine === machine && watcher.kind.type === kind.type) for (const event of events) watcher.listener(event)
    return shelf
  }

  const look = (): void => {
    const seen = new Map<Machine, Set<string>>()
    for (const { machine, kind } of watchers) {
      const types = seen.get(machine) ?? new Set()
      seen.set(machine, types)
      if (types.has(kind.type) || !machine.apid) continue
      types.add(kind.type)
      refresh(machine, kind)
    }
  }
  const beside: Beside = { authorities, staticPods: createStaticPodReports(site, look) }
  const unlisten = site.listen(look)
  const nodes = site.store.watch('nodes', undefined, look)

  return {
    list: (machine, kind) => {
      const { held } = refresh(machine, kind)
      return [...held.values()].map(({ resource }) => resource).sort((a, b) => ((a.metadata?.id ?? '') < (b.metadata?.id ?? '') ? -1 : 1))
    },
    history: (machine, kind) => {
      const { history, count } = refresh(machine, kind)
      return { events: [...history], count }
    },
    watch: (machine, kind, listener) => {
      refresh(machine, kind)
      const watcher = { machine, kind, listener }
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    look,
    close: () => {
      unlisten()
      beside.staticPods.close()
      if (nodes.ok) nodes.stop()
      watchers.clear()
    },
  }
}
