import type { Answer } from './answer.ts'
import { answer, refuse } from './answer.ts'
import { inURL } from './in-url.ts'
import type { Member } from './etcd.ts'
import type { Machine } from './machine.ts'
import { setServiceState, stopService } from './services.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

/** How often a machine without etcd data tries to become a member. */
const JOIN_AGAIN_MS = 5000

/** Where a member can be reached: all addresses of its machine, unless the configuration says less. */
export const peerURLsOf = (machine: Machine): string[] => machine.addresses.map(address => `https://${inURL(address)}:2380`)

/** A member whose machine has other addresses tells the others so, as soon as it may write. */
export const advertise = (site: Site, machine: Machine): void => {
  const member = site.etcd.memberOf(machine)
  if (!member?.running || member.peerURLs.join() === peerURLsOf(machine).join()) return
  if (machine.services.get('etcd')?.health !== 'healthy')
    return void later(site, machine, site.durations.fixed(JOIN_AGAIN_MS), () => advertise(site, machine))
  member.peerURLs = peerURLsOf(machine)
  site.journal.write(machine.name, 'etcd-peer-urls', member.peerURLs.join(' '))
}

/** A learner is made a voter as soon as it has caught up; without a quorum nobody can, and it is tried again. */
const promoteLater = (site: Site, machine: Machine, member: Member): void => {
  later(site, machine, site.durations.draw('etcdPromotion'), () => {
    if (site.etcd.memberOf(machine) !== member || !member.isLearner) return
    if (!site.etcd.hasQuorum() || machine.cut) return promoteLater(site, machine, member)
    site.etcd.promote(member)
  })
}

const run = (site: Site, machine: Machine, member: Member): void => {
  // A member has no name before it has run.
  member.name ||= machine.hostname
  setServiceState(site, machine, 'etcd', 'Running', 'Started task etcd for container etcd')
  site.etcd.start(machine)
  advertise(site, machine)
  if (member.isLearner) promoteLater(site, machine, member)
}

/** etcd's own answer to one that was a member once: the process ends, and Talos starts it again for ever. */
const beRemoved = (site: Site, machine: Machine): void =>
  setServiceState(
    site,
    machine,
    'etcd',
    'Waiting',
    'Error running Containerd(etcd), going to restart forever: task "etcd" failed: exit code 1',
  )

/**
 * What the etcd service of a control plane does when it starts. With an empty data directory it waits in `Preparing` for a cluster to join: as a
 * learner, one at a time, promoted when it has caught up. Nothing comes of it where no cluster has been bootstrapped.
 */
export const startEtcd = (site: Site, machine: Machine): void => {
  const { etcd, journal } = site
  const known = etcd.memberOf(machine)
  if (known) return run(site, machine, known)
  if (etcd.hasData(machine)) return beRemoved(site, machine)
  if (machine.services.get('etcd')?.state !== 'Preparing') return
  const mayJoin = etcd.hasQuorum() && etcd.leader() !== '' && !machine.cut && !etcd.members().some(m => m.isLearner)
  if (!mayJoin) return void later(site, machine, site.durations.fixed(JOIN_AGAIN_MS), () => startEtcd(site, machine))
  // Talos takes members of that name for this machine as it was before it lost its data, even where one is another machine.
  const past = etcd.members().filter(m => m.name === machine.hostname)
  if (!past.toSorted((a, b) => (a.id < b.id ? -1 : 1)).every(({ id }) => removeEtcdMember(site, id).ok))
    return void later(site, machine, site.durations.fixed(JOIN_AGAIN_MS), () => startEtcd(site, machine))
  const member = etcd.addMember('', peerURLsOf(machine), machine, true)
  journal.write(machine.name, 'etcd-learner', member.id)
  setServiceState(site, machine, 'etcd', 'Preparing', 'Creating service runner')
  later(site, machine, site.durations.draw('react'), () => {
    if (etcd.memberOf(machine) === member) run(site, machine, member)
  })
}

/** What was uploaded for a recovery, and what is found wrong with it: in any case, and with its hash. */
export type Upload = { readonly problem?: string | undefined; readonly hashProblem?: string | undefined }

const uploads = new WeakMap<Machine, Upload>()

/** Keeps an uploaded snapshot on the machine's disk until it is recovered from. */
export const keepUpload = (machine: Machine, upload: Upload): void => void uploads.set(machine, upload)

const problemOf = (upload: Upload | undefined, skipsHashCheck: boolean): string | undefined => {
  if (!upload) return 'error verifying snapshot: open /var/lib/etcd.snapshot: no such file or directory'
  return upload.problem ?? (skipsHashCheck ? undefined : upload.hashProblem)
}

/** Some machine has the data of a member. */
const isBootstrapped = ({ etcd }: Site): boolean => etcd.members().some(m => m.machine !== undefined && etcd.hasData(m.machine))

/**
 * `MachineService.Bootstrap`: makes this machine the only member of a new cluster, empty or from the uploaded snapshot. OK comes before etcd runs; a
 * snapshot that is none shows in the service only.
 */
export const bootstrapEtcd = (site: Site, machine: Machine, recovery?: { readonly skipsHashCheck: boolean }): Answer<void> => {
  const { etcd, journal, durations } = site
  if (machine.role !== 'controlplane') return refuse('FailedPrecondition', 'bootstrap can only be performed on a control plane node')
  if (machine.services.get('cri')?.state !== 'Running') return refuse('FailedPrecondition', 'bootstrap is not available yet')
  if (machine.waitsForTime) return refuse('FailedPrecondition', 'time is not in sync yet')
  if (etcd.hasData(machine)) return refuse('AlreadyExists', 'etcd data directory is not empty')
  if (isBootstrapped(site)) return refuse('Unimplemented', 'the simulation has one etcd only, and that exists already')
  journal.write(machine.name, 'bootstrap', recovery ? 'from a snapshot' : '')
  setServiceState(site, machine, 'etcd', 'Finished', 'Bootstrap requested')
  setServiceState(site, machine, 'etcd', 'Starting', 'Starting service')
  setServiceState(site, machine, 'etcd', 'Waiting', 'Waiting for service "cri" to be "up"')
  setServiceState(site, machine, 'etcd', 'Preparing', 'Running pre state')
  const problem = recovery && problemOf(uploads.get(machine), recovery.skipsHashCheck)
  if (problem !== undefined) {
    setServiceState(site, machine, 'etcd', 'Failed', `Failed to run pre stage: ${problem}`)
    return answer(undefined)
  }
  later(site, machine, durations.draw('etcdStart'), () => {
    uploads.delete(machine)
    // Another machine was asked, too, and was first.
    if (isBootstrapped(site)) return startEtcd(site, machine)
    // Members of before are gone: a new cluster begins.
    for (const { id } of [...etcd.members()]) etcd.removeMember(id)
    setServiceState(site, machine, 'etcd', 'Preparing', 'Creating service runner')
    run(site, machine, etcd.addMember(machine.hostname, peerURLsOf(machine), machine))
  })
  return answer(undefined)
}

const decimal = (id: string): string => BigInt(`0x${id}`).toString()

const takeOut = (site: Site, id: string): Answer<Member> => {
  const { etcd, journal } = site
  const failed = (why: string, code: 'Unknown' | 'NotFound' = 'Unknown'): Answer<never> =>
    refuse(code, `failed to remove member ${decimal(id)}: etcdserver: ${why}`)
  if (!etcd.hasQuorum()) return failed('request timed out')
  const member = etcd.members().find(m => m.id === id)
  if (!member) return failed('member not found', 'NotFound')
  // etcd's strict check of a reconfiguration: those that run have to be a quorum of what remains.
  const voters = etcd.members().filter(m => !m.isLearner && m !== member)
  if (!member.isLearner && voters.filter(m => etcd.isConnected(m)).length < Math.floor(voters.length / 2) + 1)
    return failed('re-configuration failed due to not enough started members')
  if (member.machine) etcd.stop(member.machine)
  etcd.removeMember(id)
  journal.write(member.machine?.name ?? member.name, 'etcd-removed', member.name)
  return answer(member)
}

/** `etcd remove-member`, asked of a machine whose own etcd answers. The member's machine keeps its data, with which it can be no member again. */
export const removeEtcdMember = (site: Site, id: string): Answer<void> => {
  const removed = takeOut(site, id)
  if (!removed.ok) return removed
  const { machine } = removed.value
  if (machine?.services.get('etcd')?.state === 'Running') beRemoved(site, machine)
  return answer(undefined)
}

/**
 * `etcd leave`: the machine takes itself out, stops its etcd and deletes its data; nothing starts it again before a reboot. Only a healthy voter can,
 * so a learner's call waits for its promotion. Answers undefined while it has to wait.
 */
export const leaveEtcd = (site: Site, machine: Machine): Answer<void> | undefined => {
  const member = site.etcd.memberOf(machine)
  if (!member || member.isLearner || machine.services.get('etcd')?.health !== 'healthy') return undefined
  const removed = takeOut(site, member.id)
  if (!removed.ok) return removed
  site.etcd.forget(machine)
  stopService(site, machine, 'etcd')
  return answer(undefined)
}

/** `etcd defrag`: what is free leaves the file. Blocks that member. */
export const defragmentEtcd = (site: Site, machine: Machine, end: () => void): void => {
  later(site, machine, site.durations.draw('etcdDefrag'), () => {
    const member = site.etcd.memberOf(machine)
    if (member) member.dbSize = member.dbSizeInUse
    site.journal.write(machine.name, 'etcd-defragmented')
    end()
  })
}
