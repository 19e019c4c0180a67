// An API server that is a map, and a terminal that is a list: what the tests of the CLI state and read.
import picocolors from 'picocolors'
import { stringify } from 'yaml'
import { z } from 'zod'
import type { ApiResult } from '../../adapters/kube/classify.ts'
import { apiFault } from '../../adapters/kube/classify.ts'
import type { Resource } from '../../adapters/kube/resource.ts'
import type { ResourceDefinition } from '../../api/schema.ts'
import { talosCluster } from '../../api/talos-cluster.ts'
import { talosMachine } from '../../api/talos-machine.ts'
import type { KindBlock } from '../../api/talos-operation.ts'
import { talosOperation } from '../../api/talos-operation.ts'
import type { Plan } from '../../engine/plan.ts'
import type { Certificate, ClusterSight } from '../../core/looks/cluster-sight.ts'
import type { FaultKind } from '../../ports/fault.ts'
import { failed, ok } from '../../ports/fault.ts'
import type { Api, KubeObject, Sight } from './api.ts'
import { startCommands } from './commands/upgrade.ts'
import { installed } from './install-objects.ts'
import { runCli } from './main.ts'
import { Stop } from './stop.ts'
import type { Terminal } from './terminal.ts'

export const bootTime = Date.parse('2026-03-01T14:00:00Z')

/** A kind with all sorts of fields, so that the flags are tested without a real one. */
export const testKind: KindBlock = {
  name: 'talos',
  block: 'talos',
  summary: 'Upgrades Talos, one machine at a time.',
  spec: z.object({
    version: z
      .string()
      .max(32)
      .regex(/^v\d+\.\d+\.\d+$/)
      .meta({ description: 'The Talos version to install, like v1.13.9.' }),
    schematic: z
      .string()
      .max(64)
      .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
      .optional()
      .meta({ description: 'Image Factory schematic id.' }),
    image: z.string().max(512).optional().meta({ description: 'The whole installer image.' }),
    rebootMode: z.enum(['default', 'powercycle']).default('default').meta({ description: 'How machines are rebooted.' }),
  }),
}

export type Bench = {
  /** By `plural/namespace/name`. */
  readonly objects: Map<string, KubeObject>
  /** What a call of a verb on a type (`create talosoperations`, or `*`) is answered instead. */
  readonly faults: Map<string, { kind: FaultKind; message: string; causes?: { reason: string; message: string; field: string }[] }>
  readonly out: string[]
  readonly err: string[]
  /** Everything written to a live terminal, escape sequences too. */
  readonly raw: string[]
  readonly writes: string[]
  readonly files: Map<string, string>
  crds: KubeObject[]
  plan: Plan | undefined
  /** What is seen of a cluster, by its name, registered or not; and by which certificates one gets in. */
  readonly sights: Map<string, ClusterSight>
  certificates: Certificate[]
  /** What access reviews deny: `alice delete nodes`, `self create pods/eviction`. */
  readonly denied: Set<string>
  kubernetes: string
  /** How far the API server's clock is ahead. */
  clockAhead: number
  answers: string[]
  /** Happens while a question is open. */
  meanwhile: () => void
  canAsk: boolean
  isLive: boolean
  user: string | undefined
  readonly run: (...argv: string[]) => Promise<number>
  readonly put: (plural: string, object: { metadata: KubeObject['metadata']; spec?: unknown; status?: unknown }) => void
  readonly change: (plural: string, name: string, change: (object: any) => void) => void
  readonly remove: (plural: string, name: string) => void
  /** Time passes, and what waits for it happens. */
  readonly pass: (ms: number) => void
  readonly interrupt: () => void
  readonly lose: (why: string) => void
}

export const bench = (kinds: readonly KindBlock[] = [testKind]): Bench => {
  const objects = new Map<string, KubeObject>()
  const faults: Bench['faults'] = new Map()
  const watchers = new Set<{ plural: string; namespace: string; name: string; notify: (sight: Sight) => void }>()
  const tickers = new Set<() => void>()
  const interrupts = new Set<() => void>()
  let now = bootTime
  let uid = 0

  const key = (plural: string, namespace: string | undefined, name: string) => `${plural}/${namespace ?? ''}/${name}`
  const tell = (plural: string, namespace: string, name: string) => {
    const object = objects.get(key(plural, namespace, name))
    for (const w of watchers)
      if (w.plural === plural && w.namespace === namespace && w.name === name) w.notify(object ? { is: 'there', object } : { is: 'gone' })
  }
  const store = (plural: string, namespace: string | undefined, object: KubeObject): KubeObject => {
    const before = objects.get(key(plural, namespace, object.metadata.name))
    const isSame = before && JSON.stringify(before.spec) === JSON.stringify(object.spec)
    const stored = {
      ...object,
      metadata: {
        creationTimestamp: new Date(now).toISOString(),
        uid: before?.metadata.uid ?? `uid-${++uid}`,
        ...object.metadata,
        generation: (before?.metadata.generation ?? 0) + (isSame ? 0 : 1),
        ...(namespace ? { namespace } : {}),
      },
    }
    objects.set(key(plural, namespace, object.metadata.name), stored)
    tell(plural, namespace ?? '', object.metadata.name)
    return stored
  }
  const refused = (
    verb: string,
    type: Resource,
  ): { readonly ok: false; readonly fault: ReturnType<typeof apiFault>['fault'] } | undefined => {
    const fault = faults.get(`${verb} ${type.plural}`) ?? faults.get(`* ${type.plural}`) ?? faults.get('*')
    return fault && apiFault(fault.kind, fault.message, { causes: fault.causes ?? [] })
  }
  const absent = (type: Resource, name: string) => apiFault('notFound', `${type.plural} "${name}" not found`)
  const select = (type: Resource, namespace: string | undefined) =>
    [...objects]
      .filter(([at]) => at.startsWith(`${type.plural}/`) && (namespace === undefined || at.split('/')[1] === namespace))
      .map(([, object]) => object)
  const wrap =
    <A extends unknown[], T>(verb: string, run: (type: Resource, ...rest: A) => ApiResult<T>) =>
    (type: Resource, ...rest: A): Promise<ApiResult<T>> =>
      Promise.resolve(refused(verb, type) ?? run(type, ...rest))
  const find = (type: Resource, namespace: string | undefined, name: string): ApiResult<KubeObject> => {
    const object = objects.get(key(type.plural, namespace, name))
    return object ? { ok: true, value: object } : absent(type, name)
  }

  const isAllowed = (review: object): boolean => {
    const { user = 'self', resourceAttributes: asked } = (review as KubeObject).spec as {
      readonly user?: string
      readonly resourceAttributes?: { readonly verb: string; readonly resource: string; readonly subresource?: string }
    }
    return !self.denied.has(`${user} ${asked?.verb} ${[asked?.resource, asked?.subresource].filter(Boolean).join('/')}`)
  }

  const api: Api = {
    get: wrap('get', find),
    list: wrap('list', (type, namespace?: string) => ({ ok: true, value: select(type, namespace) })),
    table: wrap('list', (type, namespace: string | undefined, name?: string) => {
      const definition = definitions.find(one => one.plural === type.plural)
      const columns = definition?.columns ?? []
      const rows = select(type, namespace).filter(object => name === undefined || object.metadata.name === name)
      return {
        ok: true,
        value: {
          columnDefinitions: [
            { name: 'Name', type: 'string', priority: 0 },
            ...columns.map(column => ({ name: column.name, type: column.type, priority: column.priority ?? 0 })),
          ],
          rows: rows.map(object => ({ cells: [object.metadata.name, ...columns.map(column => valueAt(object, column.jsonPath))], object })),
        },
      }
    }),
    create: wrap('create', (type, namespace: string | undefined, object: object): ApiResult<KubeObject> => {
      if (type.plural === 'selfsubjectreviews') {
        return self.user
          ? { ok: true, value: { metadata: { name: '' }, status: { userInfo: { username: self.user } } } }
          : apiFault('unsupported', 'no such type')
      }
      if (type.group === 'authorization.k8s.io')
        return { ok: true, value: { metadata: { name: '' }, status: { allowed: isAllowed(object) } } }
      const { name } = (object as KubeObject).metadata
      if (objects.has(key(type.plural, namespace, name))) return apiFault('alreadyExists', `${type.plural} "${name}" already exists`)
      self.writes.push(`create ${type.plural} ${name}`)
      return { ok: true, value: store(type.plural, namespace, object as KubeObject) }
    }),
    patch: wrap('patch', (type, namespace: string | undefined, name: string, change: object): ApiResult<KubeObject> => {
      const found = find(type, namespace, name)
      if (!found.ok) return found
      if (isAnother(found.value, (change as Partial<KubeObject>).metadata?.uid)) return apiFault('conflict', 'Precondition failed: UID')
      self.writes.push(`patch ${type.plural} ${name} ${JSON.stringify(change)}`)
      return { ok: true, value: store(type.plural, namespace, merged(found.value, change) as KubeObject) }
    }),
    apply: wrap('patch', (type, namespace: string | undefined, name: string, object: object, options?: { readonly dryRun?: boolean }) => {
      if (options?.dryRun) return { ok: true, value: object as KubeObject }
      self.writes.push(`apply ${type.plural} ${name}`)
      return { ok: true, value: store(type.plural, namespace, object as KubeObject) }
    }),
    replace: wrap(
      'update',
      (type, namespace: string | undefined, name: string, object: object, options?: { readonly dryRun?: boolean }) => {
        if (options?.dryRun) return { ok: true, value: object as KubeObject }
        self.writes.push(`replace ${type.plural} ${name}`)
        return { ok: true, value: store(type.plural, namespace, object as KubeObject) }
      },
    ),
    delete: wrap('delete', (type, namespace: string | undefined, name: string, options?: { readonly uid?: string }): ApiResult<void> => {
      const found = find(type, namespace, name)
      if (!found.ok) return found
      if (isAnother(found.value, options?.uid)) return apiFault('conflict', 'Precondition failed: UID')
      objects.delete(key(type.plural, namespace, name))
      self.writes.push(`delete ${type.plural} ${name}`)
      tell(type.plural, namespace ?? '', name)
      return { ok: true, value: undefined }
    }),
    watch: (type, namespace = '', name, notify) => {
      const watcher = { plural: type.plural, namespace, name, notify }
      watchers.add(watcher)
      const object = objects.get(key(type.plural, namespace, name))
      notify(object ? { is: 'there', object } : { is: 'gone' })
      return () => watchers.delete(watcher)
    },
    storageHash: () => Promise.resolve({ ok: true, value: '' }),
    clockAhead: () =>
      Promise.resolve(refused('get', { group: '', version: 'v1', plural: 'version', kind: '' }) ?? { ok: true, value: self.clockAhead }),
    serverVersion: () =>
      Promise.resolve(refused('get', { group: '', version: 'v1', plural: 'version', kind: '' }) ?? { ok: true, value: self.kubernetes }),
  }

  const self: Bench = {
    objects,
    faults,
    out: [],
    err: [],
    raw: [],
    writes: [],
    files: new Map(),
    crds: [],
    plan: undefined,
    sights: new Map(),
    certificates: [],
    denied: new Set(),
    kubernetes: 'v1.36.2',
    clockAhead: 0,
    answers: [],
    meanwhile: () => {},
    canAsk: false,
    isLive: false,
    user: 'alice@example.org',
    run: (...argv) => {
      const terminal: Terminal = {
        out: line => void self.out.push(...line.split('\n')),
        err: line => void self.err.push(...line.split('\n')),
        raw: text => void self.raw.push(text),
        isLive: self.isLive,
        canAsk: self.canAsk,
        width: () => 100,
        height: () => 30,
        colors: picocolors.createColors(false),
        ask: question => {
          self.err.push(question)
          self.meanwhile()
          return Promise.resolve(self.answers.shift() ?? '')
        },
        onInterrupt: run => {
          interrupts.add(run)
          return () => interrupts.delete(run)
        },
        now: () => now,
        every: (_, run) => {
          tickers.add(run)
          return () => tickers.delete(run)
        },
      }
      return runCli(
        argv,
        {
          terminal,
          calledAs: 'ichor',
          version: '0.1.0',
          kinds,
          connect: () => Promise.resolve({ api, server: 'https://10.0.0.1:6443', namespace: undefined, user: 'admin@home' }),
          plan: () => Promise.resolve(self.plan ? ok(self.plan) : failed('forbidden', 'secrets "home-talosconfig" is forbidden')),
          certificates: () => Promise.resolve(self.certificates),
          registeredSight: ({ name }) => {
            const sight = self.sights.get(name)
            return Promise.resolve(sight ? ok(sight) : failed('forbidden', `talosmachines is forbidden: ${name}`))
          },
          strangerSight: ({ key: { name } }) => {
            const sight = self.sights.get(name)
            return sight ? Promise.resolve(sight) : Promise.reject(new Error(`no sight of ${name}`))
          },
          readFile: path => {
            const text = self.files.get(path)
            return text === undefined ? Promise.reject(new Stop('error', `there is no file ${path}`)) : Promise.resolve(text)
          },
          crds: () => Promise.resolve(self.crds),
          installed: wanted => Promise.resolve(installed(wanted)),
          yaml: value => Promise.resolve(stringify(value)),
        },
        startCommands,
      )
    },
    put: (plural, object) => void store(plural, object.metadata.namespace ?? 'ichor-system', object),
    change: (plural, name, change) => {
      const object = structuredClone(objects.get(key(plural, 'ichor-system', name)))
      change(object)
      objects.set(key(plural, 'ichor-system', name), object!)
      tell(plural, 'ichor-system', name)
    },
    remove: (plural, name) => {
      objects.delete(key(plural, 'ichor-system', name))
      tell(plural, 'ichor-system', name)
    },
    pass: ms => {
      now += ms
      for (const run of tickers) run()
    },
    interrupt: () => {
      for (const run of interrupts) run()
    },
    lose: why => {
      for (const watcher of watchers) watcher.notify({ is: 'unseen', why })
    },
  }
  return self
}

/** As the API server takes a uid that is given: for a precondition. */
const isAnother = ({ metadata }: KubeObject, uid: string | undefined): boolean => uid !== undefined && uid !== metadata.uid

const definitions: readonly ResourceDefinition[] = [talosOperation([testKind]), talosCluster, talosMachine]

// As far as our print columns go: names, and one condition by its type.
const valueAt = (object: unknown, path: string): unknown => {
  const [, type] = /\[\?\(@\.type=="(\w+)"\)\]/.exec(path) ?? []
  if (type) {
    const conditions = (object as { status?: { conditions?: { type: string; status: string }[] } }).status?.conditions ?? []
    return conditions.find(condition => condition.type === type)?.status
  }
  return path
    .split('.')
    .filter(Boolean)
    .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], object)
}

/** RFC 7386. */
const merged = (target: unknown, patch: unknown): unknown => {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = { ...(typeof target === 'object' && target !== null ? target : {}) }
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = merged(result[name], value)
  }
  return result
}

/** A time so many minutes after the bench's beginning. */
export const minutes = (count: number): string => new Date(bootTime + count * 60_000).toISOString()

/** Puts an operation of the upgrade to v1.13.9 that is ten minutes old. */
export const putOperation = (
  world: Bench,
  name: string,
  more: { spec?: object; status?: object; annotations?: Record<string, string>; namespace?: string } = {},
): void =>
  world.put('talosoperations', {
    metadata: {
      name,
      creationTimestamp: minutes(-10),
      ...(more.annotations ? { annotations: more.annotations } : {}),
      ...(more.namespace ? { namespace: more.namespace } : {}),
    },
    spec: {
      clusterRef: { name: 'home' },
      kind: 'talos',
      talos: { version: 'v1.13.9' },
      paused: false,
      override: false,
      cancelled: false,
      ...more.spec,
    },
    status: more.status,
  })

export const putCluster = (world: Bench, name: string): void =>
  world.put('talosclusters', { metadata: { name }, spec: { talosconfigSecretRef: { name: `${name}-talosconfig` } } })

/** The status of an operation whose install failed on its second machine. */
export const failure = {
  phase: 'Paused',
  failureReason: 'InstallFailed',
  message: 'cp-2: the installer ended with exit code 1',
  lastFailure: {
    reason: 'InstallFailed',
    message: 'expected exit code 0, seen 1: no space left on device',
    machine: 'cp-2',
    step: 'install',
    at: minutes(-3),
  },
  machines: [
    {
      name: 'cp-1',
      role: 'controlplane',
      phase: 'Completed',
      before: { version: 'v1.13.5' },
      after: { version: 'v1.13.9' },
      startedAt: minutes(-9),
      finishedAt: minutes(-5),
    },
    {
      name: 'cp-2',
      role: 'controlplane',
      phase: 'Failed',
      step: 'install',
      before: { version: 'v1.13.5' },
      startedAt: minutes(-5),
      message: 'no space left on device',
    },
    { name: 'wk-1', role: 'worker', phase: 'Pending' },
  ],
  progress: { done: 1, skipped: 0, total: 3, summary: '1/3' },
  lock: { lease: 'ichor-home', holder: 'ichor-controller/op/ichor-system/talos-1-13-9', since: minutes(-9) },
}

/** Lets what is under way go on until it holds. */
export const until = async (holds: () => boolean): Promise<void> => {
  for (let turns = 0; !holds(); turns++) {
    if (turns > 1000) throw new Error('it never came to be')
    await new Promise(resolve => setImmediate(resolve))
  }
}
