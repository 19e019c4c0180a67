// One action on one machine, and what comes between.
import type { Case, Run } from '../field-cases/play.ts'
import { rebootByHand } from './deeds.ts'

const MINUTE = 60_000
const node = (action: string, machine: string, more: object = {}) => ({ node: { action, machine, ...more } })
const holding = { controlPlanes: 3, workers: 2, workloads: [{ name: 'web', replicas: 2, on: [3] }] }

const leadBy = async (run: Run, name: string): Promise<void> => {
  const { world } = run
  while (world.etcd.leader() !== world.member(name).id) {
    world.etcd.elect()
    await run.until('there is a leader', () => world.etcd.leader() !== '')
  }
  await run.pass(2 * MINUTE)
}

const bloat = ({ world }: Run, name: string): void => {
  const member = world.member(name)
  member.dbSize = member.dbSizeInUse * 4
}

const again = async (run: Run, mend: () => void): Promise<void> => {
  await run.settled()
  mend()
  await run.resume()
  await run.settled()
}

export const nodeStories: Readonly<Record<string, Case & { readonly title: string }>> = {
  'node-reboot': { title: 'A worker is drained, rebooted, and given back.', cluster: holding, spec: node('reboot', 'wk-1') },
  'node-reboot-of-the-leader': {
    title: 'cp-3 leads etcd: the leadership moves before it reboots, and etcd is well again before it is done.',
    spec: node('reboot', 'cp-3', { mode: 'powercycle' }),
    arrange: run => leadBy(run, 'cp-3'),
  },
  'node-reboot-stuck': {
    title: 'wk-1 hangs in its shutdown until the time is over. A person forces it and resumes; the new boot id counts, whoever caused it.',
    spec: node('reboot', 'wk-1'),
    arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: Infinity }),
    drive: run => again(run, () => rebootByHand(run, 'wk-1', 'force')),
  },
  'node-reboot-by-force': {
    title: 'wk-1 hangs in a reboot that somebody else asked for: with the mode force it comes back.',
    spec: node('reboot', 'wk-1', { mode: 'force' }),
    allowed: { undrained: true },
    arrange: async run => {
      run.world.fault('wk-1', { stopPodsMs: Infinity })
      rebootByHand(run, 'wk-1')
      await run.pass(5 * MINUTE)
    },
  },
  'node-reboot-while-another-is-away': {
    title: 'wk-2 is off, by nobody whom Ichor knows: one worker may be away, so wk-1 waits, and is given up after half an hour.',
    spec: node('reboot', 'wk-1'),
    allowed: { away: ['wk-2'] },
    arrange: async run => {
      run.byHand(() => run.world.powerOff('wk-2'))
      await run.pass(5 * MINUTE)
    },
  },
  'node-shutdown': {
    title: 'A worker is drained and powered off. Its Node stays cordoned.',
    cluster: holding,
    spec: node('shutdown', 'wk-1'),
    allowed: { keepsCordon: ['wk-1'] },
  },
  'node-shutdown-stuck': {
    title: 'wk-1 does not stop. When its time is over that is said; somebody pulls the plug and resumes.',
    spec: node('shutdown', 'wk-1'),
    allowed: { keepsCordon: ['wk-1'] },
    arrange: ({ world }) => world.fault('wk-1', { stopPodsMs: Infinity }),
    drive: run => again(run, () => run.byHand(() => run.world.powerOff('wk-1'))),
  },
  'node-restart-kubelet': {
    title: 'The kubelet of a control plane is restarted; nothing else happens.',
    spec: node('restart-service', 'cp-2', { service: 'kubelet' }),
  },
  'node-restart-service-refused': {
    title: 'The machine has no such service.',
    spec: node('restart-service', 'wk-1', { service: 'ext-nothing' }),
  },
  'node-etcd-defrag': {
    title: 'The database of the leader is mostly free space: it gives the leadership away, and is defragmented.',
    spec: node('etcd-defrag', 'cp-2'),
    arrange: async run => {
      await leadBy(run, 'cp-2')
      bloat(run, 'cp-2')
    },
  },
  'node-etcd-defrag-nothing-to-gain': { title: 'A database without free space is left alone.', spec: node('etcd-defrag', 'cp-2') },
  'node-etcd-defrag-no-space': {
    title: 'etcd has raised NOSPACE, which stops nothing here: there is room afterwards, and the alarm is disarmed.',
    cluster: { homeOutside: true },
    spec: node('etcd-defrag', 'cp-2'),
    arrange: run => {
      bloat(run, 'cp-2')
      run.world.etcd.raiseAlarm(run.world.member('cp-2').id, 'NOSPACE')
    },
    drive: async run => {
      await run.settled()
      if (run.world.etcd.alarms().length > 0) throw new Error('the alarm is still there')
    },
  },
  'node-forfeit-leadership': {
    title: 'cp-3 gives the leadership away; all agree on another one.',
    spec: node('forfeit-leadership', 'cp-3'),
    arrange: run => leadBy(run, 'cp-3'),
  },
  'node-forfeit-leadership-follower': {
    title: 'A follower has nothing to give.',
    spec: node('forfeit-leadership', 'cp-1'),
    arrange: run => leadBy(run, 'cp-3'),
  },
  'node-reset-worker': {
    title: 'A worker is drained, wiped, seen in maintenance with its own UUID, and its Node is deleted.',
    cluster: holding,
    spec: node('reset', 'wk-1', { rebootAfter: true }),
  },
  'node-reset-without-policies': {
    title: 'Nothing enforces who may reset a machine, so none is; when the policies are there, the same operation goes on.',
    cluster: holding,
    spec: node('reset', 'wk-1', { rebootAfter: true }),
    arrange: ({ world }) => void (world.site.faults.policyGaps = ['ValidatingAdmissionPolicy ichor-operations is not there']),
    drive: run => again(run, () => void (run.world.site.faults.policyGaps = [])),
  },
  'node-reset-worker-off': {
    title: 'The same with the whole disk, and off afterwards: silence is all that can be seen.',
    spec: node('reset', 'wk-1', { wipe: 'disk' }),
  },
  'node-reset-control-plane': {
    title: 'One of four control planes leaves etcd by itself, is seen to have left, and only then is wiped.',
    cluster: { controlPlanes: 4, workers: 1 },
    spec: node('reset', 'cp-4', { rebootAfter: true }),
    allowed: { away: ['cp-4'] },
    arrange: run => leadBy(run, 'cp-4'),
  },
  'node-reset-control-plane-refused': {
    title: 'One of three: two would stay, of which none may fail. That has to be accepted first.',
    spec: node('reset', 'cp-3'),
  },
  'node-reset-leave-unanswered': {
    title: 'The answer of its leave is lost. It has left, so nothing is asked twice.',
    spec: { ...node('reset', 'cp-3', { rebootAfter: true }), acknowledge: ['no-fault-tolerance'] },
    allowed: { away: ['cp-3'] },
    arrange: ({ world }) =>
      world.calls.next({ name: 'leaveEtcd' }, { do: 'fail', when: 'after', fault: { kind: 'unreachable', message: 'connection reset' } }),
  },
  'node-reset-leave-forbidden': {
    title: 'Its credential may not take it out of etcd: nothing was done to it, so it takes pods again.',
    spec: { ...node('reset', 'cp-3', { rebootAfter: true }), acknowledge: ['no-fault-tolerance'] },
    arrange: ({ world }) =>
      world.calls.next({ name: 'leaveEtcd' }, { do: 'fail', when: 'before', fault: { kind: 'forbidden', message: 'not authorized' } }),
  },
}
