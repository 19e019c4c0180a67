import type { EtcdMember, EtcdView } from '../ports/talos.ts'
import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import type { Machine } from './machine.ts'
import { versionOf } from './machine.ts'
import { etcdQuotaOf } from './machine-config.ts'
import { releaseOf } from './releases.ts'
import { setServiceHealth } from './services.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

export type Member = {
  /** 16 lower-case hexadecimal digits. */
  readonly id: string
  name: string
  peerURLs: string[]
  isLearner: boolean
  /** The machine that it lives on; undefined for an orphan, whose machine is gone. */
  readonly machine: Machine | undefined
  /** The process runs. */
  running: boolean
  /** Where it stood when it lost touch; it has caught up from `caughtUpAt` on. */
  frozenIndex: bigint
  caughtUpAt: number
  dbSize: number
  dbSizeInUse: number
  /** A scenario's wish: it answers, but no quorum read through it succeeds. */
  sick: boolean
}

export type Alarm = 'NOSPACE' | 'CORRUPT'

/**
 * The etcd cluster as a whole: who is a member, who leads, how far the log is. Members whose machine is off or cut off do not count; the log
 * grows only while there is a quorum.
 */
export type Etcd = {
  readonly members: () => readonly Member[]
  /** Id of the leader; empty when there is none. */
  readonly leader: () => string
  readonly term: () => number
  readonly index: () => bigint
  readonly hasQuorum: () => boolean
  readonly alarms: () => readonly { readonly memberID: string; readonly alarm: Alarm }[]
  readonly memberOf: (machine: Machine) => Member | undefined
  /** Runs, is reachable by the others, and is no learner. */
  readonly isConnected: (member: Member) => boolean
  /** The machine has something in its data directory: it was a member once, whether or not it still is. */
  readonly hasData: (machine: Machine) => boolean
  /** Empties the data directory. Whoever is still a member is then one without a machine. */
  readonly forget: (machine: Machine) => void
  /** Adds a member for a machine, as bootstrap and join do, or an orphan without one. */
  readonly addMember: (name: string, peerURLs: string | readonly string[], machine: Machine | undefined, isLearner?: boolean) => Member
  readonly removeMember: (id: string) => boolean
  /** A learner votes from now on. */
  readonly promote: (member: Member) => void
  readonly start: (machine: Machine) => void
  readonly stop: (machine: Machine) => void
  /** To be called after anything that may change who reaches whom. */
  readonly look: () => void
  /** Answers with the name of the new leader; empty where the machine was not leading. Calls back when it is over. */
  readonly forfeit: (machine: Machine, end: (result: Answer<string>) => void) => void
  /** The view of the machine's own member. */
  readonly view: (machine: Machine) => Answer<EtcdView>
  readonly raiseAlarm: (memberID: string, alarm: Alarm) => void
  readonly disarm: () => void
  /** Lets the databases of all members grow to their quota, most of it free pages: they raise the alarm. */
  readonly fill: () => void
  /** Some member's database is at its quota and the alarm is on: nothing can be written. */
  readonly isFull: () => boolean
  /** The version, `3.5`, that a downgrade under way goes to; undefined where there is none. */
  downgradeTarget: string | undefined
  /** A scenario's way to shake things: an election although the leader is well. */
  readonly elect: () => void
}

/** Entries per second that a quiet cluster writes: leases, mostly. */
const ENTRIES_PER_SECOND = 12
const MiB = 1024 * 1024

export const createEtcd = (site: () => Site): Etcd => {
  const members: Member[] = []
  const alarms: { memberID: string; alarm: Alarm }[] = []
  const withData = new Set<Machine>()
  let leader = ''
  let term = 1
  let index = 10_000n
  let grewUntil = 0
  let electing = false
  let hadQuorum = false

  const isConnected = (member: Member): boolean => {
    const { machine } = member
    return machine !== undefined && member.running && machine.powered && !machine.cut && !member.isLearner
  }
  const quorum = (): number => Math.floor(members.filter(m => !m.isLearner).length / 2) + 1
  const hasQuorum = (): boolean => members.length > 0 && members.filter(isConnected).length >= quorum()
  const growing = (): boolean => hadQuorum && leader !== ''
  const grow = (): void => {
    const now = site().schedule.now()
    if (growing() && grewUntil > 0) index += BigInt(Math.floor(((now - grewUntil) / 1000) * ENTRIES_PER_SECOND))
    grewUntil = now
  }
  const current = (): bigint => {
    const { schedule } = site()
    return growing() ? index + BigInt(Math.floor(((schedule.now() - grewUntil) / 1000) * ENTRIES_PER_SECOND)) : index
  }
  const memberOf = (machine: Machine): Member | undefined => members.find(m => m.machine === machine)

  const appoint = (member: Member | undefined): void => {
    grow()
    leader = member?.id ?? ''
    if (!member) return
    term++
    site().journal.write(member.machine?.name ?? member.name, 'leader', `term ${term}`)
  }
  const startElection = (): void => {
    if (electing) return
    electing = true
    const { schedule, durations } = site()
    schedule.after(durations.draw('election'), () => {
      electing = false
      if (leader !== '' || !hasQuorum()) return
      appoint(schedule.random.pick(members.filter(isConnected)))
      look()
    })
  }

  /** Health is a linearizable read, made every 20 s; what it says comes late by that much. */
  const probe = (member: Member, delayMs: number): void => {
    const { machine } = member
    if (!machine) return
    later(site(), machine, delayMs, () => {
      if (!member.running) return
      const well = hasQuorum() && leader !== '' && isConnected(member) && !member.sick
      const told = machine.services.get('etcd')?.health
      if (well) setServiceHealth(site(), machine, 'etcd', true)
      else if (member.isLearner) {
        setServiceHealth(site(), machine, 'etcd', false, 'etcdserver: rpc not supported for learner')
        probe(member, site().durations.fixed(20_000))
      } else if (told !== 'unhealthy') {
        // The failing read takes its time-out; meanwhile the world may have mended.
        later(site(), machine, site().durations.draw('etcdProbeTimeout'), () => {
          if (!member.running) return
          const mended = hasQuorum() && leader !== '' && isConnected(member) && !member.sick
          setServiceHealth(site(), machine, 'etcd', mended, 'context deadline exceeded')
          site().tell(machine, 'etcd')
        })
      }
      site().tell(machine, 'etcd')
    })
  }
  const isAtQuota = ({ machine, dbSize }: Member): boolean => machine !== undefined && dbSize >= etcdQuotaOf(machine.config)
  const raise = (memberID: string, alarm: Alarm): void => {
    alarms.push({ memberID, alarm })
    site().journal.write(members.find(m => m.id === memberID)?.machine?.name ?? '', 'alarm', alarm)
  }
  const raiseWhereFull = (): void => {
    for (const { id } of members.filter(m => m.running && isAtQuota(m)))
      if (!alarms.some(({ memberID, alarm }) => memberID === id && alarm === 'NOSPACE')) raise(id, 'NOSPACE')
  }

  const probeAll = (): void => {
    for (const member of members) if (member.running) probe(member, site().durations.draw('etcdProbe'))
  }

  const look = (): void => {
    grow()
    const lead = members.find(m => m.id === leader)
    if (leader !== '' && (!lead || !isConnected(lead) || !hasQuorum())) {
      appoint(undefined)
      site().journal.write(lead?.machine?.name ?? '', 'leader-lost')
    }
    const has = hasQuorum()
    if (has && leader === '') startElection()
    if (has !== hadQuorum) {
      hadQuorum = has
      site().journal.write('', has ? 'quorum' : 'quorum-lost', `${members.filter(isConnected).length} of ${members.length}`)
    }
    probeAll()
  }

  const start = (machine: Machine): void => {
    const member = memberOf(machine)
    if (!member || member.running) return
    grow()
    member.running = true
    member.caughtUpAt = site().schedule.now() + site().durations.draw('transferLeadership') * 4
    look()
    probe(member, site().durations.fixed(5000))
  }
  const stop = (machine: Machine): void => {
    const member = memberOf(machine)
    if (!member?.running) return
    member.frozenIndex = current()
    member.running = false
    look()
    site().tell(machine, 'etcd')
  }

  const forfeit: Etcd['forfeit'] = (machine, end) => {
    const member = memberOf(machine)
    const { schedule, durations } = site()
    if (!member?.running) return end(refuse('Unknown', 'failed to forfeit leadership: context deadline exceeded'))
    if (members.length === 1) return end(refuse('Unknown', 'failed to forfeit leadership: cannot forfeit leadership, only one member'))
    if (leader !== member.id) return end(answer(''))
    const next = members.find(m => m.id !== member.id)
    if (!next || next.isLearner) return end(refuse('Unknown', 'failed to forfeit leadership: etcdserver: bad leader transferee'))
    schedule.after(durations.draw('transferLeadership'), () => {
      if (leader !== member.id) return end(answer(''))
      if (!isConnected(next))
        return end(refuse('Unknown', 'failed to forfeit leadership: etcdserver: request timed out, leader transfer took too long'))
      appoint(next)
      look()
      end(answer(next.name))
    })
  }

  const view = (machine: Machine): Answer<EtcdView> => {
    if (machine.role !== 'controlplane') return refuse('Unimplemented', 'etcd status is only available on control plane nodes')
    const member = memberOf(machine)
    if (!member?.running) return refuse('DeadlineExceeded', 'failed to get etcd status: context deadline exceeded')
    const service = machine.services.get('etcd')
    const { etcd } = releaseOf(versionOf(machine))
    const now = site().schedule.now()
    const behind = !isConnected(member) || now < member.caughtUpAt
    const at = behind && member.frozenIndex > 0n ? member.frozenIndex : current()
    const seen = hasQuorum() && isConnected(member) ? leader : ''
    const errors = [
      ...(seen === '' && !member.isLearner ? ['etcdserver: no leader'] : []),
      ...alarms.map(a => `memberID:${BigInt(`0x${a.memberID}`)} alarm:${a.alarm} `),
    ]
    return answer({
      service: { state: service?.state ?? 'Initialized', healthy: service?.health === 'healthy' },
      members: members.map((m): EtcdMember => ({ id: m.id, name: m.name, peerURLs: m.peerURLs, isLearner: m.isLearner })),
      status: {
        memberID: member.id,
        leader: seen,
        raftTerm: BigInt(term),
        raftIndex: at,
        raftAppliedIndex: at,
        dbSize: member.dbSize,
        dbSizeInUse: member.dbSizeInUse,
        errors,
        isLearner: member.isLearner,
        protocolVersion: etcd,
        // Before 3.6 etcd did not say; Talos fills in the minor.
        storageVersion: `${etcd.split('.').slice(0, 2).join('.')}.0`,
      },
      alarms: [...alarms],
    })
  }

  return {
    members: () => members,
    leader: () => leader,
    term: () => term,
    index: current,
    hasQuorum,
    alarms: () => alarms,
    memberOf,
    isConnected,
    addMember: (name, peerURLs, machine, isLearner = false) => {
      const { random } = site().schedule
      const member: Member = {
        id: random.hex(16),
        name,
        peerURLs: [peerURLs].flat(),
        isLearner,
        machine,
        running: false,
        frozenIndex: 0n,
        caughtUpAt: 0,
        dbSize: random.between(40, 90) * MiB,
        dbSizeInUse: random.between(20, 40) * MiB,
        sick: false,
      }
      members.push(member)
      if (machine) withData.add(machine)
      if (grewUntil > 0) look()
      return member
    },
    removeMember: id => {
      const at = members.findIndex(m => m.id === id)
      if (at < 0) return false
      members.splice(at, 1)
      look()
      return true
    },
    promote: member => {
      member.isLearner = false
      site().journal.write(member.machine?.name ?? member.name, 'etcd-promoted', member.name)
      look()
    },
    hasData: machine => withData.has(machine),
    forget: machine => {
      withData.delete(machine)
      const at = members.findIndex(m => m.machine === machine)
      const orphan = members[at]
      if (!orphan) return
      members[at] = { ...orphan, machine: undefined, running: false }
      look()
    },
    start,
    stop,
    look,
    forfeit,
    view,
    raiseAlarm: raise,
    disarm: () => {
      alarms.length = 0
      // Who still has no space says so again at the next write.
      if (members.some(isAtQuota)) site().schedule.after(site().durations.draw('react'), raiseWhereFull)
    },
    fill: () => {
      for (const member of members) if (member.machine) member.dbSize = etcdQuotaOf(member.machine.config)
      raiseWhereFull()
    },
    isFull: () => alarms.some(({ alarm }) => alarm === 'NOSPACE') && members.some(isAtQuota),
    downgradeTarget: undefined,
    elect: () => {
      appoint(undefined)
      look()
    },
  }
}
