import type { Answer, Stage, Step, Verdict } from '../../core/kind.ts'
import { YES, no, unknown } from '../../core/kind.ts'
import { READY_MS, apiServer, nodeReady, rejoin, uncordon } from '../../core/machine-steps/coming-back.ts'
import { etcdSampleMs } from '../../core/machine-steps/etcd.ts'
import { both, denied, since } from '../../core/machine-steps/guards.ts'
import { goingNeed } from '../../core/machine-steps/other-control-planes.ts'
import { cordon, drain, transferLeadership } from '../../core/machine-steps/setting-aside.ts'
import { addressOf, machineOf, replaced } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import { actionStage, losesAll } from './stage.ts'
import { isSilent, mayGoAway, rebootMs, settled, specOf, stillThere, wasAsked, whereOrderly } from './view.ts'
import { reportsReady, whyNotReady } from '../../core/machine-steps/ready.ts'

/** Reboot and shutdown: a machine goes away, and comes back or not. */

const aside: readonly Step[] = [whereOrderly(transferLeadership(mayGoAway)), cordon(mayGoAway), drain]

const mode = (view: View) => specOf(view.operation).mode ?? 'default'

/** By force also a machine is rebooted that is on its way already, and hangs there; but only the boot that was recorded. */
const mayReboot = (view: View): Verdict => {
  const facts = machineOf(view)
  const isSameBoot = facts.ok && facts.value.bootID === view.target.before?.bootID
  return mode(view) === 'force' && isSameBoot ? YES : stillThere(view)
}

const rebooted = (view: View): Answer => {
  const facts = machineOf(view)
  if (!facts.ok) return replaced(view) ?? unknown(`it is away: ${facts.fault.message}`)
  const { bootID, stage } = facts.value
  return bootID === view.target.before?.bootID ? no(`its boot id has not changed; it is in stage ${stage}`) : YES
}

const reboot: Step = {
  name: 'reboot',
  summary: 'Reboots the machine. Done when its boot id has changed, whoever caused it.',
  guardNeeds: goingNeed,
  done: rebooted,
  guard: view => both(mayReboot(view), () => mayGoAway(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: false,
    disruptive: true,
    describe: view => `rebooting${mode(view) === 'default' ? '' : mode(view) === 'force' ? ' by force' : ' by power cycle'}`,
    run: ({ talos }, view) => talos.reboot(addressOf(view), mode(view)),
    fatal: denied,
  },
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: view => since(view, rebootMs(view)),
  failure: 'RebootTimeout',
  remedy:
    'If it hangs in its shutdown, `talosctl reboot --mode force` or a power cycle may free it; resume the operation when it is back, it is then only looked at.',
  milestone: true,
  commits: true,
}

const running: Step = {
  name: 'verify',
  summary: 'Talos reports the machine running and ready.',
  done: view => {
    const facts = machineOf(view)
    if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
    return reportsReady(facts.value)
  },
  deadlineMs: () => READY_MS,
  failure: whyNotReady,
}

export const rebootStage: Stage = actionStage('reboot', {
  summary: 'The machine is set aside, rebooted and looked at until it is back.',
  takesAway: true,
  steps: [...aside, reboot, running, nodeReady, apiServer, rejoin(settled), uncordon],
  becomes: () => 'rebooted',
  loses: losesAll('until it is back'),
  outcome: ({ before }, after) =>
    before?.version === after?.version ? 'rebooted' : `rebooted, from ${before?.version} into ${after?.version}`,
})

/** How long a machine has to be silent. Nothing tells a machine that is off from one that is cut off from everybody. */
const SILENT_MS = 2 * 60_000

const stopped = (view: View): Answer => {
  const facts = machineOf(view)
  const asked = wasAsked(view, 'shutdown')
  if (!facts.ok) return asked && isSilent(facts.fault) ? YES : (replaced(view) ?? unknown(`it does not answer: ${facts.fault.message}`))
  // Somebody started it again, before or after it was looked at.
  if (asked && facts.value.bootID !== view.target.before?.bootID) return YES
  return no(`it still answers, in stage ${facts.value.stage}`)
}

const shutdown: Step = {
  name: 'shutdown',
  summary: 'Powers the machine off. Done when it has not answered for two minutes; that it is off can only be seen on the spot.',
  guardNeeds: goingNeed,
  done: stopped,
  stableMs: view => (machineOf(view).ok ? 0 : SILENT_MS),
  guard: view => both(stillThere(view), () => mayGoAway(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: false,
    disruptive: true,
    describe: () => 'powering off',
    // It is drained; Talos' own drain would only be another way to fail.
    run: ({ talos }, view) => talos.shutdown(addressOf(view), { force: true }),
    fatal: denied,
  },
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: view => since(view, rebootMs(view) + SILENT_MS),
  failure: 'MachineDidNotStop',
  remedy: 'Look at its console for what does not stop; resume the operation when that is mended, or switch the machine off.',
  milestone: true,
  commits: true,
}

export const shutdownStage: Stage = actionStage('shutdown', {
  summary: 'The machine is set aside and powered off. Its Node stays cordoned until it is back.',
  takesAway: true,
  steps: [...aside, shutdown],
  becomes: () => 'off',
  loses: losesAll('until somebody starts it'),
  outcome: (_, after) => (after ? 'stopped, and was started again' : 'answers no more'),
})
