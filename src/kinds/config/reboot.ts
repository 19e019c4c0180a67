import { durationMs } from '../../api/duration.ts'
import type { EtcdGateVerdict } from '../../core/etcd-gate.ts'
import type { Answer, Step, Verdict } from '../../core/kind.ts'
import { YES, no, unknown, wait } from '../../core/kind.ts'
import { apiServer, nodeReady, rejoin, soak, uncordon } from '../../core/machine-steps/coming-back.ts'
import { asGuard, etcdSampleMs, gate } from '../../core/machine-steps/etcd.ts'
import { asRecorded, both, denied, since } from '../../core/machine-steps/guards.ts'
import { goingNeed, othersServe } from '../../core/machine-steps/other-control-planes.ts'
import { cordon, drain, transferLeadership } from '../../core/machine-steps/setting-aside.ts'
import { addressOf, isControlPlane, machineOf, replaced } from '../../core/machine-steps/target.ts'
import type { View, World } from '../../core/world.ts'
import { displayName } from '../../core/world.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import { configNeeds, runsNow } from './view.ts'
import { pods, ready } from './well.ts'

/** A machine is set aside and rebooted into the configuration that waits on its disk. */

/** What etcd has to say before a member goes away. */
export const restartGate = (operation: TalosOperation, world: World, target: string): EtcdGateVerdict =>
  gate(operation, world, { purpose: 'restart', target, etcdStepAllowed: true })

const mayGoAway = (view: View): Verdict =>
  isControlPlane(view) ? both(asGuard(restartGate(view.operation, view.world, view.target.name)), () => othersServe(view)) : YES

/** It was rebooted since it was opened, and runs what was staged. */
const rebooted = (view: View): Answer => {
  const facts = machineOf(view)
  if (!facts.ok) return replaced(view) ?? unknown(`it is away: ${facts.fault.message}`)
  const { bootID, stage } = facts.value
  if (bootID === view.target.before?.bootID) return no(`its boot id has not changed; it is in stage ${stage}`)
  const runs = runsNow(view)
  if (typeof runs === 'object') return unknown(`its configuration cannot be read: ${runs.message}`)
  if (runs === 'computed') return YES
  // Rebooted by somebody else before anything was staged: it is opened anew.
  if (view.target.committed === undefined) return no('it was rebooted before its configuration was staged')
  const message = `${displayName(view.target)} was rebooted, and runs ${runs === 'read' ? 'the configuration from before' : 'a configuration of somebody else'}. Look at it with \`talosctl get machineconfig\`; cancel this operation and start another one to patch what is there now.`
  return { is: 'failed', reason: runs === 'read' ? 'ConfigRejected' : 'ConfigChangedByOthers', message }
}

const mayReboot = (view: View): Verdict => {
  const verdict = asRecorded(view)
  return verdict.may === 'wait' && view.target.firstActedAt !== undefined ? wait(verdict.why) : verdict
}

const reboot: Step = {
  name: 'reboot',
  summary: 'Reboots the machine. Done when its boot id has changed, whoever caused that, and it runs the staged configuration.',
  needs: configNeeds,
  guardNeeds: goingNeed,
  done: rebooted,
  guard: view => both(mayReboot(view), () => mayGoAway(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: false,
    disruptive: true,
    describe: () => 'rebooting into the patched configuration',
    run: ({ talos }, view) => talos.reboot(addressOf(view), 'default'),
    fatal: denied,
  },
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: view => since(view, durationMs(view.operation.spec.timeouts.reboot)),
  failure: 'RebootTimeout',
  remedy:
    'If it hangs in its shutdown, `talosctl reboot --mode force` or a power cycle may free it. If its new configuration keeps it away, only its console helps; no further machine is given it.',
  milestone: true,
}

const settled = rejoin(({ operation, world }) => gate(operation, world, { purpose: 'settled', etcdStepAllowed: true }))

export const aside: readonly Step[] = [transferLeadership(mayGoAway), cordon(mayGoAway), drain]
export const back: readonly Step[] = [reboot, ready, nodeReady, apiServer, pods, settled, uncordon, soak]
