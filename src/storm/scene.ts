import { ANNOTATION, leaseName } from '../api/names.ts'
import type { TalosOperation, Target } from '../api/talos-operation.ts'
import type { PortCall } from '../world/calls.ts'
import type { JournalEntry } from '../world/journal.ts'
import type { Machine } from '../world/machine.ts'
import { RESOURCE } from '../world/objects.ts'
import { ICHOR } from '../world/ports/home.ts'
import type { KubeObject } from '../world/store.ts'
import type { Stage } from './stage.ts'
import { CLUSTER, LEADER_LEASE, NAMESPACE } from './story.ts'

/** An act of Ichor that takes something away from somebody, as the machine saw it. */
export type Act = {
  readonly what: string
  readonly machine: Machine
  readonly call: PortCall
  /**
   * When its client had last asked for something, of any of these targets where some are named, as it made the call, which may take a while to have its
   * effect; -Infinity where it never did.
   */
  readonly askedAt: (name: string, ...targets: readonly string[]) => number
}

/** A write of an operation: as it was, and as it is. Undefined where it did not or does not exist. */
export type Written = {
  readonly before: TalosOperation | undefined
  readonly after: TalosOperation | undefined
  readonly isByHand: boolean
}

/** `deeds`: what is remembered on it, as it stands there. */
export type LockState = { readonly holder: string; readonly uid: string; readonly deeds: string }

/** What checkers look at: the world's own truth, and what has been done to it. Nothing here is what Ichor believes. */
export type Scene = {
  readonly stage: Stage
  readonly world: Stage['story']['world']
  readonly now: () => number
  /** A disruptive call had its effect on a machine. */
  readonly onAct: (listener: (act: Act) => void) => void
  /** A port is called, before anything comes of it. */
  readonly onCall: (listener: (call: PortCall) => void) => void
  readonly onEntry: (listener: (entry: JournalEntry, isByHand: boolean) => void) => void
  readonly onOperation: (listener: (written: Written) => void) => void
  readonly onLock: (listener: (before: LockState, after: LockState, isByHand: boolean) => void) => void
  readonly lock: () => LockState
  /** Who the Lease of the leaders names. */
  readonly leader: () => string
  /** How many terms of leadership have begun: by another, or by the same after a time in which it could not renew its Lease. */
  readonly terms: () => number
  /** When a hand wrote into an operation last; -Infinity where none did. */
  readonly editedAt: () => number
  /** The open target of an operation that a machine is. */
  readonly openOn: (machine: Machine) => { readonly operation: TalosOperation; readonly target: Target } | undefined
  readonly targetOf: (operation: TalosOperation, machine: Machine) => Target | undefined
  readonly machineOf: (target: Target) => Machine | undefined
  /** When a control plane ceased to serve, as the other members see it; undefined while it serves. */
  readonly awaySince: (machine: Machine) => number | undefined
}

/** The calls that take something away, and the word by which the machine tells of each. */
const ACTS: Readonly<Record<string, string>> = {
  install: 'install-began',
  upgrade: 'upgrade-requested',
  reboot: 'reboot-requested',
  forfeitLeadership: 'forfeit',
  shutdown: 'shutdown-requested',
  reset: 'reset-requested',
  restartService: 'service-restart',
  defragment: 'etcd-defragmented',
  applyConfiguration: 'config-applied',
  setComponentImage: 'component-image',
}
const WORDS = new Map(Object.entries(ACTS).map(([call, word]) => [word, call]))

/** In the place of a target. */
const ANY = ''

/** Whoever has not renewed the Lease of the leaders for so long has stood down, and may lead anew. */
const STANDS_DOWN_MS = 10_000

const lockOf = (lease: KubeObject | undefined): LockState => {
  const { annotations = {} } = lease?.metadata ?? {}
  const holder = (lease?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity ?? ''
  // A hand that frees the lock leaves the UID of who had it.
  return { holder, uid: holder === '' ? '' : (annotations[ANNOTATION.holderUid] ?? ''), deeds: annotations[ANNOTATION.deeds] ?? '' }
}

const asOperation = (object: KubeObject | undefined): TalosOperation | undefined =>
  object && {
    metadata: { ...object.metadata, labels: {}, annotations: {}, finalizers: [], ...object.metadata } as TalosOperation['metadata'],
    spec: object['spec'] as TalosOperation['spec'],
    status: (object['status'] ?? {}) as TalosOperation['status'],
  }

/** A member that its peers and its clients can use. */
const serves = (stage: Stage, machine: Machine): boolean => {
  const { world } = stage.story
  const member = world.etcd.memberOf(machine)
  return world.isUp(machine) && (member === undefined || (world.etcd.isConnected(member) && !member.sick))
}

export const watchScene = (stage: Stage): Scene => {
  const { world } = stage.story
  const { schedule, store } = world
  const acts: ((act: Act) => void)[] = []
  const calls: ((call: PortCall) => void)[] = []
  const entries: ((entry: JournalEntry, isByHand: boolean) => void)[] = []
  const writes: ((written: Written) => void)[] = []
  const locks: ((before: LockState, after: LockState, isByHand: boolean) => void)[] = []
  /** When each client asked last: by the client, by the name of the call, and there by its target, or any. */
  const asked = new Map<string, Map<string, Map<string, number>>>()
  const pending = new Map<string, { readonly call: PortCall; readonly askedAt: Act['askedAt'] }>()
  const away = new Map<string, number>()
  /** As it is now, whatever is asked later. */
  const askedBy = (client: string): Act['askedAt'] => {
    const before = new Map([...(asked.get(client) ?? [])].map(([name, targets]) => [name, new Map(targets)]))
    return (name, ...targets) =>
      Math.max(...(targets.length === 0 ? [ANY] : targets).map(target => before.get(name)?.get(target) ?? Number.NEGATIVE_INFINITY))
  }
  let terms = 0
  let editedAt = Number.NEGATIVE_INFINITY
  let renewedAt = schedule.now()
  const controlPlanes = world.machines.filter(m => m.role === 'controlplane')

  const look = (): void => {
    for (const machine of controlPlanes) {
      if (serves(stage, machine)) away.delete(machine.name)
      else if (!away.has(machine.name)) away.set(machine.name, schedule.now())
    }
  }
  world.site.listen(look)
  world.calls.intercept(call => {
    const now = schedule.now()
    const names = asked.get(call.client) ?? new Map<string, Map<string, number>>()
    const targets = names.get(call.name) ?? new Map<string, number>()
    asked.set(call.client, names.set(call.name, targets.set(ANY, now).set(call.target, now)))
    const word = call.port === 'talos' ? ACTS[call.name] : undefined
    const machine = word === undefined ? undefined : world.at(call.target)
    if (word !== undefined && machine) pending.set(`${word} ${machine.name}`, { call, askedAt: askedBy(call.client) })
    for (const tell of calls) tell(call)
    return undefined
  })
  world.journal.onEntry(entry => {
    look()
    const isByHand = stage.isByHand()
    const key = `${entry.what} ${entry.machine}`
    const made = WORDS.has(entry.what) && !isByHand ? pending.get(key) : undefined
    if (made) {
      pending.delete(key)
      const act: Act = { what: entry.what, machine: world.machine(entry.machine), ...made }
      for (const tell of acts) tell(act)
    }
    for (const tell of entries) tell(entry, isByHand)
  })
  store.watch(ICHOR.operations, undefined, event => {
    const written: Written = {
      before: event.type === 'DELETED' ? asOperation(event.object) : asOperation(event.previous),
      after: event.type === 'DELETED' ? undefined : asOperation(event.object),
      isByHand: stage.isByHand(),
    }
    if (written.isByHand) editedAt = schedule.now()
    for (const tell of writes) tell(written)
  })
  store.watch(RESOURCE.leases, undefined, event => {
    const before = lockOf(event.previous)
    const after = event.type === 'DELETED' ? lockOf(undefined) : lockOf(event.object)
    if (event.object.metadata.name === LEADER_LEASE) {
      if (before.holder !== after.holder || schedule.now() - renewedAt >= STANDS_DOWN_MS) terms++
      renewedAt = schedule.now()
    }
    if (event.object.metadata.name !== leaseName(CLUSTER)) return
    for (const tell of locks) tell(before, after, stage.isByHand())
  })

  const machineOf = (target: Target): Machine | undefined =>
    // Two may call themselves the same.
    world.machines.find(m => m.name === target.node) ??
    world.machines.find(m => m.addresses.includes(target.address ?? '-')) ??
    world.machines.find(m => m.hostname === target.hostname)
  const targetOf = (operation: TalosOperation, machine: Machine): Target | undefined =>
    operation.status.machines?.find(t => machineOf(t) === machine)
  const lock = (): LockState => lockOf(store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER)))

  return {
    stage,
    world,
    now: schedule.now,
    onAct: listener => void acts.push(listener),
    onCall: listener => void calls.push(listener),
    onEntry: listener => void entries.push(listener),
    onOperation: listener => void writes.push(listener),
    onLock: listener => void locks.push(listener),
    lock,
    leader: () => lockOf(store.get(RESOURCE.leases, NAMESPACE, LEADER_LEASE)).holder,
    terms: () => terms,
    editedAt: () => editedAt,
    openOn: machine => {
      const { uid } = lock()
      // One that was tried again may wait for the lock with a machine in hand that its holder has taken up meanwhile.
      for (const operation of stage.operations().toSorted((a, b) => Number(b.metadata.uid === uid) - Number(a.metadata.uid === uid))) {
        // Another may have been closed before it, of the machine in whose place this one came.
        const target = operation.status.machines?.find(t => t.phase === 'Running' && machineOf(t) === machine)
        if (target) return { operation, target }
      }
      return undefined
    },
    targetOf,
    machineOf,
    awaySince: machine => away.get(machine.name),
  }
}
