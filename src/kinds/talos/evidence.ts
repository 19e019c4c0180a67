import type { Reason } from '../../api/reasons.ts'
import type { Target } from '../../api/talos-operation.ts'
import type { EtcdGateVerdict } from '../../core/etcd-gate.ts'
import type { Answer, Verdict } from '../../core/kind.ts'
import { YES, no, unknown, wait } from '../../core/kind.ts'
import { failureTriedAnew, receiptOf, targetsOf } from '../../core/ledger.ts'
import { gateText } from '../../core/machine-steps/etcd.ts'
import { asRecorded, hasReceipt } from '../../core/machine-steps/guards.ts'
import { chosen, isBackAsNode, isControlPlane, machineOf, replaced } from '../../core/machine-steps/target.ts'
import { sameSchematic } from '../../core/talos-image.ts'
import type { View } from '../../core/world.ts'
import { displayName } from '../../core/world.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import { gate, isLegacy, specOf, wish } from './view.ts'

/** What a machine's boot id, version and receipts prove about the steps that it went through. */

/** Whether the act may be given that restarts the machine. Once that was asked for, being away is what was asked: the step's own reason tells when it lasts too long. */
export const mayRestart = (view: View): Verdict => {
  const verdict = asRecorded(view)
  if (verdict.may !== 'wait' || view.target.firstActedAt === undefined) return verdict
  const answer = restarted(view)
  return wait(answer.is === 'no' ? answer.why : verdict.why)
}

/** The installer of this try ended well, in whatever boot. */
const wasInstalled = (view: View): boolean => receiptOf(view.target, 'install') !== undefined

/** The installer was started in this try, and nothing is known of its end. */
export const isInstalling = (view: View): boolean => view.target.step === 'install' && view.target.firstActedAt !== undefined

/** What was pulled is in the machine, or is of no interest any more. */
export const isPulled = (view: View): boolean =>
  !isTriedAnew(view) && (hasReceipt(view, 'pull') || wasInstalled(view) || isInstalling(view))

export const isInstalled = (view: View): boolean => !isTriedAnew(view) && wasInstalled(view)

/** Version and schematic are those that were asked for. */
export const runsGoal = (view: View, facts: MachineFacts): boolean =>
  facts.version === specOf(view.operation).version &&
  (wish(view, 'schematic') === 'any' || sameSchematic(facts.schematic, wish(view, 'schematic')))

/**
 * Whether the machine has been rebooted since it was opened. One that came back with something else than was installed is given the time to come up
 * whole before that is told: only then can what was taken from it be given back.
 */
export const restarted = (view: View): Answer => {
  const facts = machineOf(view)
  if (!facts.ok) return replaced(view) ?? unknown(`it is away: ${facts.fault.message}`)
  const { bootID, stage, version, ready } = facts.value
  if (bootID === view.target.before?.bootID) return no(`its boot id has not changed; it is in stage ${stage}`)
  if (runsGoal(view, facts.value)) return YES
  if (isTriedAnew(view)) return no(`it runs ${version} since the try that failed`)
  if (stage !== 'running' || !ready || isBackAsNode(view).is !== 'yes')
    return no(`it came back with ${version}, and is not ready yet${etcdWords(view)}`)
  return YES
}

/** It was rebooted, and runs something else than was asked for. */
export const cameBackOther = (view: View): boolean => {
  const facts = machineOf(view)
  return facts.ok && facts.value.bootID !== view.target.before?.bootID && !runsGoal(view, facts.value)
}

/** What keeps its etcd from being well, on a control plane that came back so. */
export const etcdObjection = (view: View): Extract<EtcdGateVerdict, { pass: false }> | undefined => {
  if (!isControlPlane(view) || !cameBackOther(view)) return undefined
  const verdict = gate(view.operation, view.world, 'settled')
  return !verdict.pass && verdict.machine === view.target.name ? verdict : undefined
}

const etcdWords = (view: View): string => {
  const objection = etcdObjection(view)
  return objection ? `; ${gateText(objection).replace(/\.$/, '')}` : ''
}

/** Failures that leave the machine running something else than was asked for; only a new try from the begin can change that. */
const LEFT_AS_IT_WAS: readonly Reason[] = ['InstallFailed', 'BootedOldVersion', 'VersionMismatch', 'SchematicMismatch']

/** A person asked for a new try after this machine came back with the wrong version: what the last one left behind proves nothing for it. */
export const isTriedAnew = (view: View): boolean => {
  const failure = failureTriedAnew(view.operation.status, view.target)
  const facts = machineOf(view)
  return (
    failure !== undefined &&
    LEFT_AS_IT_WAS.includes(failure.reason) &&
    facts.ok &&
    facts.value.bootID !== view.target.before?.bootID &&
    !runsGoal(view, facts.value)
  )
}

/** What is wrong with a machine that was rebooted; undefined where it runs what was asked for. Nothing is reinstalled by itself: that could cost the slot that still boots. */
export const wrongBoot = (view: View, facts: MachineFacts): Extract<Answer, { is: 'failed' }> | undefined => {
  if (runsGoal(view, facts)) return undefined
  const { version, schematic } = facts
  const { before: { version: ran = 'something else', schematic: had = '' } = {} } = view.target
  const wanted = specOf(view.operation).version
  const name = displayName(view.target)
  const failed = (reason: Reason, message: string): Extract<Answer, { is: 'failed' }> => ({ is: 'failed', reason, message })
  const isAsBefore = version === ran && sameSchematic(schematic, had)
  const what = (v: string, s: string): string => (version === wanted ? `${v} with ${named(s)}` : v)
  const found = `still runs ${what(version, schematic)}, wanted ${what(wanted, wish(view, 'schematic'))}`
  if (isAsBefore && !isLegacy(view) && !wasInstalled(view)) {
    return failed(
      'InstallFailed',
      `${name} was rebooted by somebody else while the installer ran, which cut it off: it ${found}. Resume the operation to install again.`,
    )
  }
  if (isAsBefore) {
    const why = isLegacy(view)
      ? 'either the installer failed or the new version did not start'
      : 'the new version did not start and Talos fell back'
    return failed(
      'BootedOldVersion',
      `${name} ${found}: ${why}. Look at \`talosctl dmesg\` before the next try; nothing is reinstalled until the operation is resumed.`,
    )
  }
  if (version !== wanted) {
    return failed(
      'VersionMismatch',
      `${name} runs ${version} after the reboot, wanted ${wanted} (it ran ${ran} before). Nothing is reinstalled until the operation is resumed.`,
    )
  }
  return failed(
    'SchematicMismatch',
    `${name} runs ${version} with ${named(schematic)}, wanted ${named(wish(view, 'schematic'))}.${lacking(view, facts)}`,
  )
}

/** A machine that this operation brought to the same goal: its extensions are those that belong to it. */
export const peerOf = ({ operation, target }: View): Target | undefined =>
  targetsOf(operation.status).find(
    ({ phase, after: { schematic } = {} }) =>
      phase === 'Completed' && schematic !== undefined && sameSchematic(schematic, chosen(target, 'schematic')),
  )

const lacking = (view: View, { extensions }: MachineFacts): string => {
  const peer = peerOf(view)
  const seen = peer && view.world.facts.machines[peer.name]
  const missing = seen?.ok ? seen.value.extensions.filter(e => !extensions.includes(e)) : []
  if (peer && missing.length > 0)
    return ` Of the extensions that ${displayName(peer)} has, these are missing: ${missing.join(', ')}. What needs them does not run there.`
  return extensions.length > 0 ? ` It has the extensions ${extensions.join(', ')}.` : ' It has no extensions.'
}

const named = (schematic: string): string => (schematic === '' ? 'no schematic' : `the schematic ${schematic}`)
