import type { Reason } from '../api/reasons.ts'
import type { EtcdMember, EtcdView } from '../ports/talos.ts'
import { agreedLeader, answered, machineOf, peerHost, type Answered, type ControlPlaneView } from './etcd-members.ts'
import { parseVersion, type Version } from './versions.ts'

/** How far a member's log may lag, in entries. etcd itself refuses requests at a gap of 5000 between committed and applied; a fifth of it leaves room for the restart. */
export const MAX_LAG = 1000n
/** How full the database may be. etcd's own alert (etcdDatabaseQuotaLowSpace) goes off at 95 % of the quota. */
export const MAX_FILL = 0.95
/** etcd's own quota where none is set. */
export const DEFAULT_QUOTA_BYTES = 2 * 1024 ** 3

export type EtcdGateInput = {
  /** Every control plane of the cluster, whether it answered or not. */
  readonly controlPlanes: readonly ControlPlaneView[]
  /** The control plane that is about to go away; needed for all purposes but `settled`. */
  readonly target?: string
  /**
   * restart: may `target` go away for a while? repair: the same, where it is `target` itself that is unwell: only the others are judged. removal: may it
   * leave for good, and when it has left, are the others well? settled: is all well again after it came back?
   */
  readonly purpose: 'restart' | 'repair' | 'removal' | 'settled'
  /** How many control planes discovery saw last: where fewer are known, one was just taken out of sight, and its member is no orphan yet. */
  readonly seenControlPlanes: number
  /** The smallest quota of all control planes. */
  readonly quotaBytes: number
  /** The step makes room: a full database, and the alarm that says so, do not stand against it. */
  readonly makesRoom?: boolean
  /** `spec.acknowledge`. api-outage: one or two control planes may lose quorum for a restart. no-fault-tolerance: so few may stay that none of them may fail. */
  readonly acknowledged: readonly string[]
  /** The operation changes the etcd minor, so members may differ by one meanwhile. */
  readonly etcdStepAllowed: boolean
}

export type EtcdGateKind =
  /** Not now; look again. It never turns into progress by itself, but time may mend it. */
  | 'hold'
  /** NOSPACE or CORRUPT: only a person can mend it. */
  | 'alarm'
  /** Too few members for this step, however healthy. */
  | 'quorum'
  /** A member that runs on no known machine. */
  | 'orphan'
  /** Two machines claim the same member. */
  | 'ambiguous'

export type EtcdGateVerdict =
  | { readonly pass: true }
  | {
      readonly pass: false
      readonly kind: EtcdGateKind
      readonly reason: Reason
      /** 1 to 10, as the conditions are numbered in this file. */
      readonly condition: number
      /** The machine it is about, where it is about one. */
      readonly machine?: string
      /** Names machine, condition, what was found and what is needed. */
      readonly message: string
      readonly remedy?: string
    }

type Objection = Extract<EtcdGateVerdict, { pass: false }>

/** The control planes that have to be well: all, or all but the one that is unwell itself or leaves. */
const judged = ({ controlPlanes, purpose, target }: EtcdGateInput): readonly ControlPlaneView[] =>
  purpose === 'repair' || purpose === 'removal' ? controlPlanes.filter(c => c.name !== target) : controlPlanes

/** The control planes whose lists tell who is a member. Where there is no other, the only one: strangers and learners are not its own illness. */
const listing = (input: EtcdGateInput): readonly ControlPlaneView[] => {
  const all = judged(input)
  return all.length > 0 ? all : input.controlPlanes
}

/**
 * May a control plane be touched? Passes only if all ten conditions hold, each asked at every control plane itself:
 *  1 every control plane answers and its etcd service is running and healthy
 *  2 all member lists are the same
 *  3 members and control planes are the same set
 *  4 no member is a learner, none is unnamed
 *  5 one leader and one term, everywhere
 *  6 no errors, no alarms
 *  7 no member lags
 *  8 the database is within its quota
 *  9 etcd minors differ by no more than the operation brings about
 * 10 quorum remains without the target, and, where it is to leave for good, somebody does
 *
 * What only a person can mend is told first; then the lowest condition that does not hold.
 */
export const etcdGate = (input: EtcdGateInput): EtcdGateVerdict => {
  const objections = [
    ...answering(input),
    ...sameLists(input),
    ...sameSet(input),
    ...voting(input),
    ...led(input),
    ...unalarmed(input),
    ...caughtUp(input),
    ...withinQuota(input),
    ...sameMinor(input),
    ...quorate(input),
  ]
  const first = objections.find(o => o.kind !== 'hold') ?? objections[0]
  return first ?? { pass: true }
}

type Told = { readonly machine?: string; readonly kind?: EtcdGateKind; readonly reason?: Reason; readonly remedy?: string }
const object = (condition: number, message: string, told: Told = {}): Objection => ({
  pass: false,
  kind: told.kind ?? 'hold',
  reason: told.reason ?? 'EtcdUnhealthy',
  condition,
  ...(told.machine === undefined ? {} : { machine: told.machine }),
  message: `etcd condition ${condition}${told.machine === undefined ? '' : ` on ${told.machine}`}: ${message}`,
  ...(told.remedy === undefined ? {} : { remedy: told.remedy }),
})

const answering = (input: EtcdGateInput): readonly Objection[] => {
  if (input.controlPlanes.length === 0) return [object(1, 'no control plane is known; at least one is needed.')]
  return judged(input).flatMap(c => {
    const { name, view } = c
    const [first, ...others] = leavingOut(c, input)
    if (first) return [leftOut(c, first, others)]
    if (!view.ok) {
      const reasons: Partial<Record<typeof view.fault.kind, Reason>> = {
        unauthenticated: 'CredentialRejected',
        forbidden: 'PermissionDenied',
        wrongPeer: 'MachineAmbiguous',
      }
      return [
        object(1, `does not answer for etcd (${view.fault.message}); every control plane has to answer.`, {
          machine: name,
          reason: reasons[view.fault.kind] ?? 'EtcdUnhealthy',
        }),
      ]
    }
    const { state, healthy } = view.value.service
    if (state.toLowerCase() !== 'running' || !healthy) {
      return [
        object(
          1,
          `the etcd service is ${state || 'not there'} and ${healthy ? 'healthy' : 'not healthy'}; it has to be Running and healthy.`,
          { machine: name },
        ),
      ]
    }
    return []
  })
}

const isWell = ({ view }: Answered): boolean => view.value.service.state.toLowerCase() === 'running' && view.value.service.healthy

/** All others, where its own etcd does not run well, and they, which agree, do not list it: each member that they list is another machine's. */
const leavingOut = (one: ControlPlaneView, { controlPlanes }: EtcdGateInput): readonly Answered[] => {
  if (one.view.ok && isWell({ ...one, view: one.view })) return []
  const others = answered(controlPlanes.filter(c => c.name !== one.name)).filter(isWell)
  const isOfAnother = (member: EtcdMember): boolean => ![undefined, one.name].includes(machineOf(member, controlPlanes)?.name)
  return others.every(o => o.view.value.members.every(isOfAnother)) ? others : []
}

const leftOut = ({ name, view }: ControlPlaneView, first: Answered, others: readonly Answered[]): Objection => {
  const own = view.ok
    ? `its etcd service is ${view.value.service.state || 'not there'}`
    : `it does not answer for etcd (${view.fault.message})`
  const members = display(first.view.value.members)
  return object(
    3,
    `${own}, and it is no member of etcd: ${[first, ...others].map(o => o.name).join(', ')} list ${members}. Every control plane has to be one.`,
    {
      machine: name,
      remedy: `Touch no other control plane meanwhile. If it was a member before and its etcd ends again and again, its data are of no use any more: wipe EPHEMERAL of this machine alone (talosctl reset --system-labels-to-wipe EPHEMERAL --reboot), and it joins anew.`,
    },
  )
}

const listKey = (members: readonly EtcdMember[]): string =>
  members
    .map(m => `${m.id} ${m.name} ${[...m.peerURLs].sort().join(',')}`)
    .sort()
    .join(' | ')

const sameLists = (input: EtcdGateInput): readonly Objection[] => {
  const [first, ...others] = answered(judged(input))
  if (first === undefined) return []
  const odd = others.find(o => listKey(o.view.value.members) !== listKey(first.view.value.members))
  if (odd === undefined) return []
  const says = (c: Answered) => `${c.name} lists ${display(c.view.value.members)}`
  return [
    object(2, `the member lists differ: ${says(first)}; ${says(odd)}. All lists have to be the same; a member may be cut off or stale.`, {
      machine: odd.name,
    }),
  ]
}

const display = (members: readonly EtcdMember[]): string => members.map(m => m.name || m.id).join(', ') || 'no member'

const sameSet = (input: EtcdGateInput): readonly Objection[] => {
  const { controlPlanes, seenControlPlanes } = input
  const views = answered(listing(input))
  const members = views[0]?.view.value.members ?? []
  // Whether a member is a stranger can be told only when every machine has said which member it is and all lists are the same.
  const certain = views.length === listing(input).length && sameLists(input).length === 0
  const byMember = new Map<string, Answered>()
  const objections: Objection[] = []
  for (const c of views) {
    const id = c.view.value.status.memberID
    const other = byMember.get(id)
    if (other !== undefined) {
      objections.push(
        object(3, `answers as the etcd member ${id}, as ${other.name} does; each control plane has to be a member of its own.`, {
          machine: c.name,
          kind: 'ambiguous',
          reason: 'MachineAmbiguous',
          remedy: `Check the addresses of ${other.name} and ${c.name}: both seem to reach the same machine.`,
        }),
      )
    }
    byMember.set(id, c)
    if (!c.view.value.members.some(m => m.id === id))
      objections.push(
        object(3, `is not a member of etcd by its own list (${display(c.view.value.members)}); every control plane has to be one.`, {
          machine: c.name,
        }),
      )
    else if (!members.some(m => m.id === id))
      objections.push(
        object(3, `is not a member of etcd by the list of ${views[0]?.name}; every control plane has to be one.`, { machine: c.name }),
      )
  }
  if (!certain) return objections
  const strangers = members.filter(m => machineOf(m, controlPlanes) === undefined)
  const [only] = strangers
  if (only === undefined) return objections
  // The one whose repair this is does not say which member it is; if that has another address than the machine, it is this one.
  const isOfTarget = input.purpose === 'repair' && !members.some(m => machineOf(m, controlPlanes)?.name === input.target)
  if (isOfTarget && strangers.length === 1) return objections
  const who = strangers.map(m => `${m.name || '(unnamed)'} (${m.id}, ${m.peerURLs.map(peerHost).join(', ') || 'no address'})`).join(' and ')
  const isOne = strangers.length === 1
  const what = isOne ? `the etcd member ${who}` : `${strangers.length} etcd members, ${who},`
  if (controlPlanes.length < seenControlPlanes) {
    return [
      ...objections,
      object(3, `the TalosMachine of ${what} is gone; whether its machine is too will be known at the next discovery.`),
    ]
  }
  return [
    ...objections,
    object(3, `${what} ${isOne ? 'runs' : 'run'} on no known control plane; members and control planes have to be the same set.`, {
      kind: 'orphan',
      remedy: isOne
        ? `If that machine is gone for good, remove the member: talosctl etcd remove-member ${only.id}. If it is alive, let Ichor see it (a TalosMachine with its address).`
        : `Where a machine is gone for good, remove its member: talosctl etcd remove-member ID. Where it is alive, let Ichor see it (a TalosMachine with its address).`,
    }),
  ]
}

const voting = (input: EtcdGateInput): readonly Objection[] => {
  const { controlPlanes, purpose, target } = input
  const views = answered(listing(input))
  const members = new Map(views.flatMap(c => c.view.value.members).map(m => [m.id, m]))
  // By whoever says so: a list may be older than the others.
  const learners = new Set(
    views.flatMap(({ view: { value } }) => [
      ...value.members.filter(m => m.isLearner).map(m => m.id),
      ...(value.status.isLearner ? [value.status.memberID] : []),
    ]),
  )
  return [...members.values()].flatMap(m => {
    const machine = machineOf(m, controlPlanes)?.name
    if (purpose === 'removal' && machine === target) return []
    if (learners.has(m.id)) return [object(4, `the member ${m.name || m.id} is still a learner; it has to be a voter.`, { machine })]
    if (m.name === '') return [object(4, `the member ${m.id} has no name: it was added and never started.`, { machine })]
    return []
  })
}

const led = (input: EtcdGateInput): readonly Objection[] => {
  const views = answered(judged(input))
  if (views.length === 0) return []
  const leaderless = views.find(c => c.view.value.status.leader === '')
  if (leaderless !== undefined) return [object(5, 'sees no leader; all have to see the same one.', { machine: leaderless.name })]
  const leader = agreedLeader(views)
  if (leader === undefined)
    return [
      object(5, `the leader is not the same everywhere: ${views.map(c => `${c.name} says ${c.view.value.status.leader}`).join(', ')}.`),
    ]
  if (!views.every(c => c.view.value.members.some(m => m.id === leader)))
    return [object(5, `the leader ${leader} is not in every member list.`)]
  const terms = new Set(views.map(c => c.view.value.status.raftTerm))
  if (terms.size > 1)
    return [
      object(
        5,
        `the term is not the same everywhere: ${views.map(c => `${c.name} is in ${c.view.value.status.raftTerm}`).join(', ')}; an election may be on.`,
      ),
    ]
  return []
}

const unalarmed = (input: EtcdGateInput): readonly Objection[] => {
  const views = answered(judged(input))
  const name = (id: string) => views.find(c => c.view.value.status.memberID === id)?.name
  const counts = (alarm: string): boolean => input.makesRoom !== true || alarm !== 'NOSPACE'
  const raised = new Map(
    views
      .flatMap(c => c.view.value.alarms)
      .filter(a => counts(a.alarm))
      .map(a => [`${a.memberID} ${a.alarm}`, a]),
  )
  const alarms = [...raised.values()].map(a =>
    object(6, `etcd has raised the alarm ${a.alarm} for the member ${a.memberID}; there must be none.`, {
      machine: name(a.memberID),
      kind: 'alarm',
      reason: 'EtcdAlarm',
      remedy: remedyFor(a.alarm),
    }),
  )
  const errors = views.flatMap(c =>
    c.view.value.status.errors.flatMap(error => {
      // etcd repeats every alarm among its errors; what is in the list above needs no second word.
      const alarm = (['NOSPACE', 'CORRUPT'] as const).find(a => error.includes(a))
      if (alarm !== undefined && !counts(alarm)) return []
      return alarm === undefined
        ? object(6, `etcd reports ${JSON.stringify(error)}; there must be no error.`, { machine: c.name })
        : object(6, `etcd reports the alarm ${alarm}; there must be none.`, {
            machine: c.name,
            kind: 'alarm',
            reason: 'EtcdAlarm',
            remedy: remedyFor(alarm),
          })
    }),
  )
  return [...alarms, ...errors]
}

const remedyFor = (alarm: 'NOSPACE' | 'CORRUPT'): string =>
  alarm === 'NOSPACE'
    ? 'Free space: talosctl etcd defrag on one control plane after the other, or raise quota-backend-bytes; then talosctl etcd alarm disarm.'
    : 'A member disagrees with the others about its data. Find it, remove it from etcd, let it join anew with empty data; disarm the alarm last. Do not restart members before.'

/** Entries that a member has still to apply: of its own committed ones, and of the furthest member's. */
const lagOf = (view: EtcdView, views: readonly Answered[]): bigint => {
  const furthest = views.reduce(
    (max, c) => (c.view.value.status.raftIndex > max ? c.view.value.status.raftIndex : max),
    view.status.raftIndex,
  )
  return furthest - view.status.raftAppliedIndex
}

const caughtUp = (input: EtcdGateInput): readonly Objection[] => {
  const views = answered(judged(input))
  return views.flatMap(c => {
    const lag = lagOf(c.view.value, views)
    return lag > MAX_LAG ? [object(7, `lags ${lag} entries behind; at most ${MAX_LAG} are allowed.`, { machine: c.name })] : []
  })
}

const withinQuota = (input: EtcdGateInput): readonly Objection[] => {
  const { quotaBytes: quota } = input
  if (input.makesRoom) return []
  return answered(judged(input)).flatMap(c => {
    const { dbSize, dbSizeInUse } = c.view.value.status
    if (dbSize < quota * MAX_FILL) return []
    const remedy =
      dbSizeInUse < dbSize / 2
        ? `Only ${mebibytes(dbSizeInUse)} are in use: talosctl etcd defrag on one control plane after the other.`
        : 'Raise quota-backend-bytes in cluster.etcd.extraArgs, or delete what fills etcd.'
    return [
      object(8, `the database has ${mebibytes(dbSize)} of a quota of ${mebibytes(quota)}; it has to stay below ${MAX_FILL * 100} %.`, {
        machine: c.name,
        remedy,
      }),
    ]
  })
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`

const sameMinor = (input: EtcdGateInput): readonly Objection[] => {
  const { etcdStepAllowed } = input
  const found = answered(judged(input)).flatMap(c => {
    const version = parseVersion(c.view.value.status.protocolVersion)
    return version === undefined ? [] : [{ name: c.name, version }]
  })
  const rank = (v: Version) => v.major * 1000 + v.minor
  const [lowest, highest] = [
    found.toSorted((a, b) => rank(a.version) - rank(b.version))[0],
    found.toSorted((a, b) => rank(b.version) - rank(a.version))[0],
  ]
  if (lowest === undefined || highest === undefined) return []
  const apart = rank(highest.version) - rank(lowest.version)
  if (apart <= (etcdStepAllowed ? 1 : 0)) return []
  const needed = etcdStepAllowed
    ? 'they may differ by one minor during this upgrade'
    : 'this operation does not change the minor, so they have to be the same'
  return [
    object(9, `runs etcd ${lowest.version.text} and ${highest.name} runs ${highest.version.text}; ${needed}.`, { machine: lowest.name }),
  ]
}

/** Members that vote, as the first list tells; as many as control planes where none answered. */
const voters = (controlPlanes: readonly ControlPlaneView[]): number =>
  answered(controlPlanes)[0]?.view.value.members.filter(m => !m.isLearner).length ?? controlPlanes.length

export const quorumOf = (members: number): number => Math.floor(members / 2) + 1

const quorate = (input: EtcdGateInput): readonly Objection[] => {
  const { controlPlanes, target = 'none named', purpose, acknowledged } = input
  if (purpose === 'settled') return []
  const gone = controlPlanes.find(c => c.name === target)
  if (gone === undefined) return [object(10, `the control plane that is to go away (${target}) is not among those that were asked.`)]
  const left = answered(controlPlanes).filter(
    c =>
      c.name !== target &&
      c.view.value.service.healthy &&
      c.view.value.service.state.toLowerCase() === 'running' &&
      !c.view.value.status.isLearner &&
      c.view.value.status.errors.every(e => input.makesRoom === true && e.includes('NOSPACE')),
  ).length
  if (purpose === 'removal') return remaining(input, gone, left)
  const n = Math.max(voters(controlPlanes), 1)
  const needed = quorumOf(n)
  if (left >= needed) return []
  // With one or two control planes no health of the others can help: the Kubernetes API stops while this one is away, and comes back with it.
  // A third one that does not vote yet is another matter: time may mend that.
  const isSmall = controlPlanes.length <= 2
  if (isSmall && acknowledged.includes('api-outage')) return []
  if (isSmall) {
    return [
      object(
        10,
        `is one of ${n} etcd member${n === 1 ? '' : 's'}: while it is away ${left} remain${left === 1 ? 's' : ''} and ${needed} ${needed === 1 ? 'is' : 'are'} needed, so the Kubernetes API stops.`,
        {
          machine: gone.name,
          kind: 'quorum',
          reason: 'QuorumWouldBeLost',
          remedy: 'Accept the outage with spec.acknowledge: [api-outage] (--acknowledge api-outage), or add control planes first.',
        },
      ),
    ]
  }
  return [
    object(10, `without it ${left} healthy voters of ${n} remain; ${needed} are needed.`, {
      machine: gone.name,
      reason: 'QuorumWouldBeLost',
    }),
  ]
}

/** Who stays when `gone` leaves for good: `left` of them are well. */
const remaining = (input: EtcdGateInput, gone: ControlPlaneView, left: number): readonly Objection[] => {
  const others = judged(input)
  const members = answered(others)[0]?.view.value.members ?? []
  const stay = members.filter(m => !m.isLearner && machineOf(m, input.controlPlanes)?.name !== gone.name).length
  const object10 = (message: string, remedy: string): readonly Objection[] => [
    object(10, message, { machine: gone.name, kind: 'quorum', reason: 'QuorumWouldBeLost', remedy }),
  ]
  if (others.length === 0) return object10('is the last control plane: without it there is no cluster.', 'Add another control plane first.')
  // Lists that cannot be read are objected to above.
  if (stay === 0) return []
  if (left < quorumOf(stay))
    return [
      object(10, `without it ${left} healthy voters of ${stay} remain; ${quorumOf(stay)} are needed.`, {
        machine: gone.name,
        reason: 'QuorumWouldBeLost',
      }),
    ]
  if (stay > 2 || input.acknowledged.includes('no-fault-tolerance')) return []
  return object10(
    `leaves ${stay} etcd member${stay === 1 ? '' : 's'}, of which none may fail any more.`,
    'Accept that with spec.acknowledge: [no-fault-tolerance] (--acknowledge no-fault-tolerance), or add a control plane first.',
  )
}
