/**
 * Who may do what: the table of docs/security.md. Each cell is asked of a real API server, by every way in (test/integration/rights.test.ts).
 */

/** What a right is good for. */
export type Ability = 'see' | 'act' | 'start' | 'override' | 'clusters' | 'unlock' | 'leases' | 'secrets' | 'impersonate'

export type Identity = { readonly name: string; readonly has: readonly Ability[] }

const person = (name: string, ...has: readonly Ability[]): Identity => ({ name, has })

export const IDENTITIES = [
  person('nobody'),
  person('ichor-viewer', 'see'),
  person('ichor-operator', 'see', 'act'),
  person('ichor-admin', 'see', 'act', 'start', 'override', 'clusters', 'unlock'),
  person('view', 'see'),
  // Kubernetes' own roles, which Ichor's are aggregated to. They read the Secrets of the namespace, and write and delete its Leases, without Ichor.
  person('edit', 'see', 'act', 'secrets', 'leases'),
  person('admin', 'see', 'act', 'secrets', 'leases'),
  person('GitOps, with ichor-operator', 'see', 'act'),
  person('GitOps, with ichor-admin', 'see', 'act', 'start', 'override', 'clusters', 'unlock'),
  person('cluster-admin', 'see', 'act', 'start', 'override', 'clusters', 'unlock', 'leases', 'secrets', 'impersonate'),
] as const satisfies readonly Identity[]
export type IdentityName = (typeof IDENTITIES)[number]['name']

/** The ways by which the same thing is asked for. */
export type Way = 'create' | 'apply' | 'patch' | 'json patch' | 'update' | 'delete' | 'delete collection' | 'get' | 'list' | 'watch'

/** `harmless`: any kind that needs no verb start. `dangerous`: each that does. */
export type Operation = 'harmless' | 'dangerous'

export type Deed = {
  readonly name: string
  readonly ways: readonly Way[]
  readonly on?: Operation
  /** What is needed for it. `never`: the API server refuses it to everybody but the controller. */
  readonly needs: readonly Ability[] | 'never'
}

const CHANGE = ['patch', 'json patch', 'apply', 'update'] as const

export const DEEDS = [
  { name: 'see operations, clusters, machines, the lock and Events', ways: ['get', 'list', 'watch'], needs: ['see'] },
  { name: 'start an operation', ways: ['create', 'apply'], on: 'harmless', needs: ['act'] },
  { name: 'start one that can take a cluster down', ways: ['create', 'apply'], on: 'dangerous', needs: ['act', 'start'] },
  { name: 'start it paused', ways: ['create', 'apply'], on: 'dangerous', needs: ['act', 'start'] },
  { name: 'start with spec.override, signed', ways: ['create', 'apply'], on: 'harmless', needs: ['act', 'override'] },
  { name: 'start with spec.override, not signed', ways: ['create', 'apply'], on: 'harmless', needs: 'never' },
  { name: "start with spec.override, in another's name", ways: ['create', 'apply'], on: 'harmless', needs: 'never' },
  { name: 'start with spec.ignoreWindows', ways: ['create', 'apply'], on: 'harmless', needs: ['act', 'override'] },
  { name: "start in another's name (requested-by)", ways: ['create', 'apply'], on: 'harmless', needs: 'never' },
  { name: 'start with a patch that lies in a Secret', ways: ['create', 'apply'], on: 'harmless', needs: ['act', 'secrets'] },
  { name: 'pause', ways: CHANGE, on: 'harmless', needs: ['act'] },
  { name: 'pause one that can take a cluster down', ways: CHANGE, on: 'dangerous', needs: ['act'] },
  { name: 'resume', ways: CHANGE, on: 'harmless', needs: ['act'] },
  { name: 'resume one that can take a cluster down', ways: CHANGE, on: 'dangerous', needs: ['act', 'start'] },
  { name: 'retry', ways: CHANGE, on: 'harmless', needs: ['act'] },
  { name: 'retry one that can take a cluster down', ways: CHANGE, on: 'dangerous', needs: ['act', 'start'] },
  { name: 'cancel', ways: CHANGE, on: 'dangerous', needs: ['act'] },
  { name: 'turn spec.override on, signed', ways: CHANGE, on: 'harmless', needs: ['act', 'override'] },
  { name: 'turn spec.override on, not signed', ways: CHANGE, on: 'harmless', needs: 'never' },
  { name: 'change who asked (requested-by)', ways: CHANGE, on: 'harmless', needs: 'never' },
  { name: 'change who overrode (override-by)', ways: CHANGE, on: 'harmless', needs: 'never' },
  { name: 'change a frozen field', ways: CHANGE, on: 'harmless', needs: 'never' },
  { name: 'write the status of an operation', ways: ['patch', 'json patch', 'apply', 'update'], on: 'harmless', needs: 'never' },
  { name: 'write the status of a cluster or a machine', ways: ['patch', 'update'], needs: 'never' },
  { name: 'delete', ways: ['delete', 'delete collection'], on: 'harmless', needs: ['act'] },
  {
    name: 'delete one that can take a cluster down, before it began',
    ways: ['delete', 'delete collection'],
    on: 'dangerous',
    needs: ['act'],
  },
  {
    name: 'delete one that can take a cluster down, while it runs',
    ways: ['delete', 'delete collection'],
    on: 'dangerous',
    needs: ['act', 'start'],
  },
  { name: 'hold a machine back', ways: ['patch'], needs: ['act'] },
  { name: 'add, change or remove a TalosCluster', ways: ['create', 'patch', 'delete'], needs: ['clusters'] },
  { name: 'release the cluster lock by force', ways: ['patch', 'update'], needs: ['unlock'] },
  { name: 'give the cluster lock to an operation', ways: ['patch', 'update'], needs: 'never' },
  { name: 'delete the cluster lock', ways: ['delete', 'delete collection'], needs: ['unlock', 'leases'] },
  { name: "change or delete the leading controller's Lease", ways: ['patch', 'update', 'delete'], needs: 'never' },
  { name: 'delete a Lease that is not of Ichor', ways: ['delete'], needs: ['leases'] },
  { name: 'read Secrets', ways: ['get', 'list'], needs: ['secrets'] },
  { name: 'act in the name of ichor-admin by impersonation', ways: ['create'], on: 'dangerous', needs: ['impersonate'] },
] as const satisfies readonly Deed[]
export type DeedName = (typeof DEEDS)[number]['name']

export const mayDo = ({ has }: Identity, { needs }: Deed): boolean => needs !== 'never' && needs.every(need => has.includes(need))
