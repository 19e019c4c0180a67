import { DEFAULT_QUOTA_BYTES, MAX_FILL } from '../../core/etcd-gate.ts'
import { agreedLeader } from '../../core/etcd-members.ts'
import type { Stage, Step } from '../../core/kind.ts'
import { YES, no, unknown } from '../../core/kind.ts'
import { rejoin } from '../../core/machine-steps/coming-back.ts'
import { asGuard, etcdNeed, etcdSampleMs, etcdViews, gate } from '../../core/machine-steps/etcd.ts'
import { asRecorded, both, denied, hasReceipt, since } from '../../core/machine-steps/guards.ts'
import { transferLeadership } from '../../core/machine-steps/setting-aside.ts'
import { addressOf, controlPlanesOf, machineOf } from '../../core/machine-steps/target.ts'
import type { Need, View } from '../../core/world.ts'
import { machineTitle } from '../../core/world.ts'
import type { EtcdView } from '../../ports/talos.ts'
import { actionStage } from './stage.ts'
import { settled } from './view.ts'

/** What can be done to the etcd of one control plane. */

const MINUTE = 60_000
const DEFRAGMENT_MS = 15 * MINUTE
const CALL_MS = 5 * MINUTE
const MiB = 1_048_576

const ownOf = (view: View): EtcdView | undefined => {
  const own = etcdViews(view.world).find(v => v.name === view.target.name)
  return own?.view.ok ? own.view.value : undefined
}

/** Below this share of the file in use a defragmentation is worth its stall. */
const WORTH_IT = 0.5
export const isFragmented = ({ status }: EtcdView): boolean => status.dbSizeInUse < status.dbSize * WORTH_IT
export const sizes = ({ status }: EtcdView): string =>
  `${Math.round(status.dbSizeInUse / MiB)} of ${Math.round(status.dbSize / MiB)} MiB are in use`

const makingRoom = (view: View, purpose: 'restart' | 'settled') =>
  gate(view.operation, view.world, { purpose, target: view.target.name, etcdStepAllowed: true, makesRoom: true })
const mayStall = (view: View) => asGuard(makingRoom(view, 'restart'))

const defragment: Step = {
  name: 'defragment',
  summary: 'Rewrites the database file without what is free in it. The member answers nobody meanwhile.',
  needs: etcdNeed,
  guardNeeds: etcdNeed,
  done: view => {
    const own = ownOf(view)
    if (hasReceipt(view, 'defragment')) return YES
    if (!own) return unknown('its etcd does not answer')
    return isFragmented(own) ? no(sizes(own)) : YES
  },
  guard: view => both(asRecorded(view), () => mayStall(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: true,
    disruptive: true,
    describe: () => 'defragmenting its etcd',
    run: async ({ talos }, view, call) => {
      const ended = await talos.defragment(addressOf(view), call)
      return ended.ok ? { ok: true, value: { receipt: 'defragmented' } } : ended
    },
    fatal: denied,
  },
  deadlineMs: view => since(view, DEFRAGMENT_MS),
  failure: 'EtcdUnhealthy',
  commits: true,
}

const hasRoom = (view: View): boolean => {
  const facts = machineOf(view)
  const quota = (facts.ok && facts.value.etcdQuotaBytes) || DEFAULT_QUOTA_BYTES
  return etcdViews(view.world).every(v => v.view.ok && v.view.value.status.dbSize < quota * MAX_FILL)
}

const disarm: Step = {
  name: 'disarm',
  summary: 'Takes the alarm NOSPACE away, once every member has room again.',
  needs: etcdNeed,
  done: view => {
    const alarms = ownOf(view)?.alarms
    if (!alarms) return unknown('its etcd does not answer')
    return alarms.some(a => a.alarm === 'NOSPACE') && hasRoom(view) ? no('etcd has the alarm NOSPACE still, and room again') : YES
  },
  act: {
    long: false,
    disruptive: true,
    describe: () => 'disarming the alarm NOSPACE',
    run: ({ talos }, view) => talos.disarmAlarms(addressOf(view)),
    fatal: denied,
  },
  settleMs: ({ world }) => 5 * world.timing.pollMs,
  deadlineMs: () => CALL_MS,
  failure: 'EtcdAlarm',
}

/** A plan asks it of a worker too, which the checks refuse. */
const anyEtcd = (): readonly Need[] => [{ what: 'etcd' }]

export const defragStage: Stage = actionStage('etcd-defrag', {
  summary: 'The database of one member is defragmented; a leader gives its leadership away first.',
  takesAway: false,
  openNeeds: anyEtcd,
  open: view => {
    const own = ownOf(view)
    if (!own) return { wait: 'its etcd does not answer', reason: 'EtcdUnhealthy' }
    return isFragmented(own) ? { open: { goal: { drain: 'none' } } } : { skip: `there is little to gain: ${sizes(own)}` }
  },
  steps: [transferLeadership(mayStall), defragment, rejoin(view => makingRoom(view, 'settled')), disarm],
  becomes: () => 'defragmented',
  loses: () => ['its etcd member and API server, for seconds per GiB'],
  outcome: () => 'defragmented',
})

const mayLose = (view: View) => asGuard(settled(view))

export const forfeitStage: Stage = actionStage('forfeit-leadership', {
  summary: 'Another member becomes the leader; done when all agree on it.',
  takesAway: false,
  openNeeds: anyEtcd,
  open: view => {
    const own = ownOf(view)
    const leader = agreedLeader(etcdViews(view.world))
    if (!own || leader === undefined) return { wait: 'the members do not agree on a leader', reason: 'EtcdUnhealthy' }
    if (own.status.memberID === leader) return { open: { goal: { drain: 'none' } } }
    const name = etcdViews(view.world).find(v => v.view.ok && v.view.value.status.memberID === leader)?.name
    const machine = controlPlanesOf(view.world).find(m => m.metadata.name === name)
    return { skip: `it does not lead etcd${machine ? `: ${machineTitle(machine)} does` : ''}` }
  },
  steps: [transferLeadership(mayLose), rejoin(settled)],
  becomes: () => 'a follower',
  loses: () => [],
  outcome: () => 'gave the leadership away',
})
