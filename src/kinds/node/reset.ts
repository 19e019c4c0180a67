import { machineOf as machineOfMember, peerHost } from '../../core/etcd-members.ts'
import type { Answer, Stage, Step, Verdict } from '../../core/kind.ts'
import { YES, no, unknown, wait } from '../../core/kind.ts'
import { giveBack, rejoin } from '../../core/machine-steps/coming-back.ts'
import { asGuard, etcdNeed, etcdSampleMs, etcdViews, gate } from '../../core/machine-steps/etcd.ts'
import { asRecorded, both, denied, mayNotWriteNodes, since } from '../../core/machine-steps/guards.ts'
import { goingNeed, othersServe } from '../../core/machine-steps/other-control-planes.ts'
import { cordon, drain, transferLeadership } from '../../core/machine-steps/setting-aside.ts'
import { addressOf, chosen, isControlPlane, machineOf, nodeOfTarget } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import { displayName, maintenanceFacts } from '../../core/world.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import type { EtcdMember } from '../../ports/talos.ts'
import { actionStage, losesAll } from './stage.ts'
import { isSilent, rebootMs, specOf, stillThere, wasAsked, whereOrderly } from './view.ts'

/** A machine leaves the cluster for good. A control plane leaves etcd first, by itself and visibly; only then is it wiped. */

const MINUTE = 60_000
const LEAVE_MS = 15 * MINUTE
const CALL_MS = 5 * MINUTE
const SILENT_MS = 2 * MINUTE

const wipeOf = (view: View) => specOf(view.operation).wipe ?? 'state'
const rebootsAfter = (view: View): boolean => specOf(view.operation).rebootAfter ?? false

export const removalGate = (view: Pick<View, 'operation' | 'world' | 'target'>) =>
  gate(view.operation, view.world, { purpose: 'removal', target: view.target.name, etcdStepAllowed: true })
const mayLeave = (view: View): Verdict => (isControlPlane(view) ? both(asGuard(removalGate(view)), () => othersServe(view)) : YES)

/** The member that the machine was when it was opened; empty where it was none. */
const memberOf = (view: View): string => chosen(view.target, 'member')

/** The members by the lists of the others, where all of these have the same; undefined where that cannot be told. */
const membersNow = (view: View): readonly EtcdMember[] | undefined => {
  const others = etcdViews(view.world).filter(v => v.name !== view.target.name)
  const lists = others.flatMap(v => (v.view.ok ? [v.view.value.members] : []))
  const [first] = lists
  const ids = (list: readonly EtcdMember[]): string =>
    list
      .map(m => m.id)
      .toSorted()
      .join()
  return first && lists.length === others.length && lists.every(list => ids(list) === ids(first)) ? first : undefined
}

/** A member at the machine's address which is not the one that was recorded: it has joined anew. */
const newSelf = (view: View, members: readonly EtcdMember[]): EtcdMember | undefined =>
  members.find(m => m.id !== memberOf(view) && m.peerURLs.some(url => peerHost(url) === addressOf(view).toLowerCase()))

const hasLeft = (view: View): Answer => {
  const members = membersNow(view)
  if (!members) return unknown('the other control planes do not tell the same members')
  const again = newSelf(view, members)
  if (again) {
    const message = `${displayName(view.target)} was the etcd member ${memberOf(view) || 'of none'} when it was opened, and is the member ${again.id} now: it has joined anew. Cancel this operation and start another.`
    return { is: 'failed', reason: 'MachineAmbiguous', message }
  }
  return members.some(m => m.id === memberOf(view)) ? no('it is still a member of etcd') : YES
}

const leave: Step = {
  name: 'leave',
  summary:
    'Takes the recorded member out of etcd: by its own leave, or through another control plane where its own etcd is unwell. Done when the others no longer list it.',
  applies: isControlPlane,
  needs: etcdNeed,
  guardNeeds: goingNeed,
  done: hasLeft,
  guard: view => both(asRecorded(view), () => mayLeave(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: true,
    disruptive: true,
    describe: () => 'taking it out of etcd',
    run: async ({ talos }, view, call) => {
      const views = etcdViews(view.world)
      const own = views.find(v => v.name === view.target.name)
      const isWell = own?.view.ok === true && own.view.value.service.healthy && own.view.value.status.memberID === memberOf(view)
      const peer = views.find(v => v.name !== view.target.name && v.view.ok)
      const { attempts = 0 } = view.target
      // A second try goes through another one, where one answers: its own leave has not been seen to work.
      const left =
        peer && (!isWell || attempts > 0)
          ? await talos.removeMember(peer.address, memberOf(view))
          : await talos.leaveEtcd(addressOf(view), call)
      return left.ok ? { ok: true, value: { receipt: 'left' } } : left
    },
    fatal: denied,
  },
  settleMs: ({ world }) => 5 * world.timing.pollMs,
  deadlineMs: view => since(view, LEAVE_MS),
  failure: 'EtcdUnhealthy',
  milestone: true,
  commits: true,
}

const isAsked = (view: View): boolean => wasAsked(view, 'reset')

/** What ends a reset: the machine is seen in maintenance; or, where it is powered off or has nothing left to boot, it is silent. */
const wiped = (view: View): Answer => {
  const facts = machineOf(view)
  if (facts.ok) {
    const { bootID, stage, hostname } = facts.value
    if (bootID === view.target.before?.bootID) return no(`it still answers, in stage ${stage}`)
    if (!isAsked(view)) return no('it was rebooted by somebody else meanwhile')
    return {
      is: 'failed',
      reason: 'ResetFailed',
      message: `${hostname} was rebooted and is what it was before: its reset did not come to its end. Look at \`talosctl dmesg\` before the next try.`,
    }
  }
  if (!isAsked(view)) return unknown(`it does not answer: ${facts.fault.message}`)
  const seen = maintenanceFacts(view.world, view.target.name)
  const uuid = chosen(view.target, 'uuid')
  if (seen.ok) {
    return uuid === '' || seen.value.uuid === uuid
      ? YES
      : no(`another machine (UUID ${seen.value.uuid}) answers in maintenance at its address`)
  }
  if (facts.fault.runs) return unknown(`it is not wiped: ${facts.fault.message}`)
  const maySilent = !rebootsAfter(view) || wipeOf(view) === 'disk'
  return maySilent && isSilent(facts.fault) ? YES : no('it is away, and does not answer in maintenance yet')
}

const reset: Step = {
  name: 'reset',
  summary:
    'Wipes the machine. Done when it answers in maintenance, with its own UUID; where it is powered off, when it has been silent for two minutes.',
  needs: view => (isAsked(view) && !machineOf(view).ok ? [{ what: 'maintenance', name: view.target.name }] : []),
  guardNeeds: goingNeed,
  done: wiped,
  stableMs: view => {
    const seen = isAsked(view) && !machineOf(view).ok ? view.world.facts.maintenance[view.target.name] : undefined
    return seen && !seen.ok ? SILENT_MS : 0
  },
  guard: view => both(stillThere(view), () => mayLeave(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: false,
    disruptive: true,
    describe: () => 'wiping it',
    run: ({ talos }, view) => talos.reset(addressOf(view), { wipe: wipeOf(view), reboot: rebootsAfter(view) }),
    fatal: denied,
  },
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: view => since(view, rebootMs(view) + SILENT_MS),
  failure: view => (machineOf(view).ok ? 'MachineDidNotStop' : 'RebootTimeout'),
  remedy: view =>
    isAsked(view)
      ? 'Look at its console. What it was in the cluster is gone; resume when it is mended.'
      : `It was not asked to wipe itself yet${isControlPlane(view) ? ', though it has left etcd' : ''}: resume when it answers.`,
  milestone: true,
  commits: true,
}

/** Somebody has given the machine a configuration since, and it has joined anew, or another one under its name: that Node is not the one to delete. */
const isOfLaterBoot = ({ target }: View, { bootID }: NodeFacts): boolean => bootID !== '' && bootID !== target.before?.bootID

const deleteNode: Step = {
  name: 'delete-node',
  summary: 'Deletes its Node: nobody else would.',
  done: view => {
    const node = nodeOfTarget(view)
    if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
    return node.value === undefined || isOfLaterBoot(view, node.value) ? YES : no('its Node is still there')
  },
  act: {
    long: false,
    disruptive: true,
    describe: () => 'deleting its Node',
    run: async ({ kube }, view) => {
      const node = nodeOfTarget(view)
      return node.ok && node.value && !isOfLaterBoot(view, node.value) ? kube.deleteNode(node.value) : { ok: true, value: undefined }
    },
    fatal: mayNotWriteNodes,
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: () => CALL_MS,
  failure: 'NodeNotReady',
}

export const resetStage: Stage = actionStage('reset', {
  summary:
    'The machine is set aside, a control plane leaves etcd, and the machine is wiped. It cannot be undone from its leave, or its wipe, on.',
  takesAway: true,
  open: view => {
    const facts = machineOf(view)
    const own = isControlPlane(view) ? etcdViews(view.world).find(v => v.name === view.target.name) : undefined
    const id = own?.view.ok ? own.view.value.status.memberID : (own && memberAt(view))?.id
    return {
      open: { goal: { uuid: facts.ok && /[1-9a-f]/i.test(facts.value.uuid) ? facts.value.uuid : '', ...(id ? { member: id } : {}) } },
    }
  },
  steps: [whereOrderly(transferLeadership(mayLeave)), cordon(mayLeave), drain, leave, reset, rejoin(removalGate), deleteNode],
  abandon: [
    {
      ...giveBack,
      // One that is half wiped or has left etcd must take no pods.
      guard: view => (view.target.committed === undefined ? giveBack.guard(view) : wait('it is half reset, so its cordon stays')),
    },
  ],
  removes: true,
  becomes: view =>
    `${rebootsAfter(view) ? 'in maintenance' : 'off'}, ${wipeOf(view) === 'disk' ? 'its system disk wiped' : 'its state wiped'}`,
  loses: view => [...losesAll('for good')(view), 'everything on its disk'],
  outcome: () => 'reset, and no more in the cluster',
})

const memberAt = (view: View): EtcdMember | undefined => {
  const views = etcdViews(view.world)
  return membersNow(view)?.find(m => machineOfMember(m, views)?.name === view.target.name)
}
