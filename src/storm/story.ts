import { setImmediate } from 'node:timers/promises'
import { API_VERSION, LABEL, leaseName } from '../api/names.ts'
import { talosOperation } from '../api/talos-operation.ts'
import type { OperationSpec, TalosOperation } from '../api/talos-operation.ts'
import type { TalosClusterSpec } from '../api/talos-cluster.ts'
import type { Kind } from '../core/kind.ts'
import type { Controller } from '../engine/controller.ts'
import { startController } from '../engine/controller.ts'
import type { Log } from '../engine/log.ts'
import { kinds as builtKinds } from '../kinds/registry.ts'
import type { Key } from '../ports/home.ts'
import type { World, WorldOptions } from '../world/cluster.ts'
import { createWorld } from '../world/cluster.ts'
import type { Ports } from '../world/ports/open.ts'
import { openPorts } from '../world/ports/open.ts'
import { registerCluster } from '../world/ports/connections.ts'
import { ICHOR } from '../world/ports/home.ts'
import { freezable } from './freeze.ts'

export const NAMESPACE = 'ichor-system'
export const CLUSTER = 'home'
export const LEADER_LEASE = 'ichor-controller'

export type StoryOptions = Omit<Partial<WorldOptions>, 'seed'> & {
  readonly seed?: number
  /** The kinds that the controller knows; the built ones where absent. */
  readonly kinds?: readonly Kind[]
  /** The controller's own pod, where it runs in the cluster. */
  readonly self?: { readonly namespace: string; readonly pod: string; readonly node: string }
  /** Divides the controller's own waits. */
  readonly pace?: number
  /** What the TalosCluster says besides how to reach it. */
  readonly cluster?: Partial<TalosClusterSpec>
  /** What stands between a process and the world, beyond what the world itself does. */
  readonly wrap?: (ports: Ports) => Ports
  /** Writes the controller's log to stderr, to look at a story that goes wrong. */
  readonly loud?: boolean
  /** Hears the log instead. */
  readonly hear?: (level: 'info' | 'warn' | 'error', message: string) => void
}

type Draft = { readonly name: string; readonly spec: Partial<OperationSpec> & { readonly kind: string } }

/** A controller, or several, in the invented cluster: time passes only when a test lets it. */
export type Story = {
  readonly world: World
  /** Creates an operation as a person would. */
  readonly create: (draft: Draft) => Key
  readonly operation: (name: string) => TalosOperation | undefined
  /** Of all operations that exist. */
  readonly names: () => readonly string[]
  /** Lets time pass until it holds; throws with the story so far when it does not within the limit. */
  readonly until: (what: string, holds: () => boolean, limitMs?: number) => Promise<void>
  /** Lets so much time pass. */
  readonly pass: (ms: number) => Promise<void>
  readonly start: (name?: string) => Process
  /** Changes an operation as a person would, with `kubectl patch` or `annotate`. */
  readonly edit: (
    name: string,
    change: { readonly spec?: object; readonly annotations?: Readonly<Record<string, string>>; readonly managedFields?: readonly object[] },
  ) => void
  readonly remove: (name: string) => void
  /** The Events about an operation, oldest first, each `reason: message`. */
  readonly events: (name: string) => readonly string[]
  /** Who the cluster lock names; empty when it is free. */
  readonly holder: () => string
  readonly tell: () => string
}

/** Freezing stops the whole process, timers and answers too, while the world goes on; what it missed reaches it when it thaws. */
export type Process = {
  readonly controller: Controller
  readonly ports: Ports
  readonly kill: () => void
  readonly freeze: () => void
  readonly thaw: () => void
}

const MINUTE = 60_000
const DEFAULT_LIMIT_MS = 4 * 60 * MINUTE

export const createStory = ({
  seed = 1,
  kinds = builtKinds,
  self,
  wrap = ports => ports,
  loud = false,
  hear,
  pace,
  cluster,
  ...options
}: StoryOptions = {}): Story => {
  const world = createWorld({ seed, controlPlanes: 3, workers: 2, ...options })
  const { schedule, store } = world
  const definition = talosOperation(kinds)
  registerCluster(world, { namespace: NAMESPACE, name: CLUSTER }, cluster)

  const log: Log = hear
    ? {
        info: m => hear('info', m),
        warn: m => hear('warn', m),
        error: (m, fields) => hear('error', [m, fields?.['error']].filter(Boolean).join(': ')),
      }
    : loud
      ? { info: write('info'), warn: write('warn'), error: write('error') }
      : { info: () => {}, warn: () => {}, error: write('error') }

  const start = (name = 'ichor-0'): Process => {
    const ports = openPorts(world, { name, operation: definition })
    const ice = freezable(wrap(ports))
    const controller = startController({
      ...ice.ports,
      ...(pace === undefined ? {} : { pace }),
      random: schedule.random.next,
      kinds,
      log,
      identity: name,
      leaderLease: { namespace: NAMESPACE, name: LEADER_LEASE },
      self,
    })
    return { controller, ports, kill: ports.kill, freeze: ice.freeze, thaw: ice.thaw }
  }

  const until = async (what: string, holds: () => boolean, limitMs = DEFAULT_LIMIT_MS): Promise<void> => {
    const end = schedule.now() + limitMs
    await settle()
    while (!holds()) {
      const next = schedule.next()
      if (next === undefined || next > end) throw new Error(`it did not come to: ${what}\n${tell()}`)
      schedule.advanceTo(next)
      await settle()
    }
  }

  const operation = (name: string): TalosOperation | undefined => {
    const object = store.get(ICHOR.operations, NAMESPACE, name)
    if (!object) return undefined
    const { metadata } = object
    return {
      metadata: { ...metadata, labels: {}, annotations: {}, finalizers: [], ...metadata } as TalosOperation['metadata'],
      spec: object['spec'] as OperationSpec,
      status: (object['status'] ?? {}) as TalosOperation['status'],
    }
  }

  const tell = (): string => {
    const operations = store.list(ICHOR.operations).items.map(o => `${o.metadata.name}: ${JSON.stringify(o['status'], undefined, 1)}`)
    return `${world.journal.text().split('\n').slice(-60).join('\n')}\n${operations.join('\n')}`
  }

  return {
    world,
    start,
    until,
    operation,
    names: () => store.list(ICHOR.operations, NAMESPACE).items.map(o => o.metadata.name),
    tell,
    pass: async ms => {
      const end = schedule.now() + ms
      await settle()
      for (let next = schedule.next(); next !== undefined && next <= end; next = schedule.next()) {
        schedule.advanceTo(next)
        await settle()
      }
      schedule.advanceTo(end)
      await settle()
    },
    create: ({ name, spec }) => {
      const parsed = definition.spec.parse({ clusterRef: { name: CLUSTER }, ...spec })
      const created = store.create(ICHOR.operations, {
        apiVersion: API_VERSION,
        kind: 'TalosOperation',
        metadata: { name, namespace: NAMESPACE, labels: { [LABEL.cluster]: CLUSTER } },
        spec: parsed,
      })
      if (!created.ok) throw new Error(created.fault.message)
      return { namespace: NAMESPACE, name }
    },
    edit: (name, { spec, annotations, managedFields }) => {
      const object = store.get(ICHOR.operations, NAMESPACE, name)
      if (!object) throw new Error(`there is no operation ${name}`)
      const changed = store.update(ICHOR.operations, {
        ...object,
        metadata: {
          ...object.metadata,
          annotations: { ...object.metadata.annotations, ...annotations },
          ...(managedFields ? { managedFields: [...managedFields] } : {}),
        },
        spec: { ...(object['spec'] as object), ...spec },
      })
      if (!changed.ok) throw new Error(changed.fault.message)
    },
    events: name =>
      store
        .list('events')
        .items.filter(e => (e['involvedObject'] as { name?: string }).name === name)
        .toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
        .map(e => `${String(e['reason'])}: ${String(e['message'])}`),
    holder: () =>
      ((store.get('leases.coordination.k8s.io', NAMESPACE, leaseName(CLUSTER))?.['spec'] ?? {}) as { holderIdentity?: string })
        .holderIdentity ?? '',
    remove: name => {
      const removed = store.remove(ICHOR.operations, NAMESPACE, name)
      if (!removed.ok) throw new Error(removed.fault.message)
    },
  }
}

/** Lets everything that was promised for this instant come true. */
const settle = async (): Promise<void> => {
  await setImmediate()
}

const write = (level: string) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
  void process.stderr.write(`${level} ${message} ${JSON.stringify(fields ?? {})}\n`)
