import { ANNOTATION } from '../../api/names.ts'
import { durationMs } from '../../api/duration.ts'
import type { Answer, LongOutcome, Step, Verdict } from '../../core/kind.ts'
import { YES, no, unknown, wait } from '../../core/kind.ts'
import { ms, receiptOf } from '../../core/ledger.ts'
import { agreedLeader } from '../../core/etcd-members.ts'
import { sameSchematic } from '../../core/talos-image.ts'
import type { Need, View } from '../../core/world.ts'
import { displayName } from '../../core/world.ts'
import type { Fault, Result } from '../../ports/fault.ts'
import { done as nothing, failed, ok } from '../../ports/fault.ts'
import type { RebootMode } from '../../ports/talos.ts'
import { blockedBy, drainDone, evictAll, deleteAll } from './drain.ts'
import { controlPlanesOf, etcdViews, gate, gateGuard, machineOf, nodeOfTarget, specOf } from './view.ts'

/**
 * The steps of one machine, in their order. Install comes before cordon and drain: a missing image then costs no disruption. From the install on any
 * reboot, whoever causes it, boots the new version; so from there the machine is carried to its end.
 */

const MINUTE = 60_000
const PULL_MS = 15 * MINUTE
const INSTALL_MS = 10 * MINUTE
const GATE_HOLD_MS = 30 * MINUTE
const LEGACY_DRAIN_MS = 5 * MINUTE
const READY_MS = 15 * MINUTE
const CALL_MS = 5 * MINUTE

const goal = (view: View, key: string): string => view.target.goal?.[key] ?? ''
const isLegacy = (view: View): boolean => goal(view, 'way') === 'legacy'
const isControlPlane = (view: View): boolean => view.target.role === 'controlplane'
const drains = (view: View): boolean => goal(view, 'drain') !== 'none'
const address = (view: View): string => view.world.machines.find((m) => m.metadata.name === view.target.name)?.spec.address ?? view.target.address ?? ''
const etcdNeed = (view: View): readonly Need[] => (isControlPlane(view) ? [{ what: 'etcd' }] : [])

/** A receipt counts only in the boot in which it was given. */
const hasReceipt = (view: View, step: string): boolean => {
  const receipt = receiptOf(view.target, step)
  const facts = machineOf(view)
  return receipt !== undefined && (!facts.ok || facts.value.bootID === receipt.bootID)
}

/** From the first intention the effect has its full time, whatever was waited for before. */
const since = (view: View, effectMs: number, holdMs = GATE_HOLD_MS): number =>
  view.target.firstActedAt === undefined ? holdMs : ms(view.target.firstActedAt) - ms(view.target.stepStartedAt) + effectMs

/** Right before anything that changes the machine: it is still the machine, in the boot, that was recorded. */
const asRecorded = (view: View): Verdict => {
  const facts = machineOf(view)
  if (!facts.ok) return wait(`it does not answer: ${facts.fault.message}`, 'MachineUnreachable')
  if (facts.value.bootID !== view.target.before?.bootID) return wait('it was rebooted by somebody else meanwhile')
  if (facts.value.stage !== 'running') return wait(`it is ${facts.value.stage}`, 'MachineNotReady')
  return YES
}

const both = (a: Verdict, b: () => Verdict): Verdict => (a.may === 'yes' ? b() : a)

const denied = (fault: Fault, name: string): { reason: 'PermissionDenied' | 'CredentialRejected'; message: string } | undefined =>
  fault.kind === 'forbidden'
    ? { reason: 'PermissionDenied', message: `${name}: ${fault.message}. The talosconfig needs the role os:admin.` }
    : fault.kind === 'unauthenticated'
      ? { reason: 'CredentialRejected', message: `${name}: ${fault.message}.` }
      : undefined

const imageMissing = (fault: Fault, view: Pick<View, 'target'>): { reason: 'ImageNotFound'; message: string } | undefined =>
  fault.kind === 'notFound'
    ? {
        reason: 'ImageNotFound',
        message: `${displayName(view.target)}: the installer image ${view.target.goal?.['image']} does not exist: ${fault.message}. Nothing was changed on the machine. Check version, schematic and the name of the factory.`,
      }
    : undefined

const pull: Step = {
  name: 'pull',
  summary: 'Pulls the installer image, so that a missing image costs nothing.',
  done: (view) => (hasReceipt(view, 'pull') || hasReceipt(view, 'install') ? YES : no(`the image ${goal(view, 'image')} is not pulled yet`)),
  guard: asRecorded,
  act: {
    long: true,
    disruptive: false,
    describe: (view) => `pulling ${goal(view, 'image')}`,
    run: async ({ talos }, view, call): Promise<Result<LongOutcome>> => {
      const pulled = await talos.pull(address(view), goal(view, 'image'), call)
      return pulled.ok ? ok({ receipt: pulled.value }) : pulled
    },
    fatal: (fault, view) => imageMissing(fault, view) ?? denied(fault, displayName(view.target)),
  },
  deadlineMs: () => PULL_MS,
  failure: 'ImageNotFound',
}

/** Exit codes since Talos 1.14; installers before it know 0 and 1 only. 4 to 7 may pass: environment, dependency, I/O, install. */
const mayPass = (exitCode: number, lines: readonly string[]): boolean => exitCode >= 4 && exitCode <= 7 && !(exitCode === 4 && lines.some((l) => /pre-?flight|compatib|too old|too new|not supported/i.test(l)))

const install: Step = {
  name: 'install',
  summary: 'Runs the installer, which writes the other boot slot and nothing else.',
  applies: (view) => !isLegacy(view),
  guardNeeds: etcdNeed,
  done: (view) => (hasReceipt(view, 'install') ? YES : no('the installer has not ended yet')),
  guard: (view) => both(asRecorded(view), () => gateGuard(view)),
  guardStableMs: ({ world }) => world.timing.etcdSampleMs,
  act: {
    long: true,
    disruptive: true,
    describe: (view) => `installing ${specOf(view.operation).version}`,
    run: async ({ talos }, view, call): Promise<Result<LongOutcome>> => {
      const image = receiptOf(view.target, 'pull')?.value ?? goal(view, 'image')
      const outcome = await talos.install(address(view), image, call)
      if (!outcome.ok) return outcome
      const { exitCode, lines } = outcome.value
      if (exitCode === 0) return ok({ receipt: `exit code 0, ${image}`.slice(0, 1024) })
      const said = lines.at(-1) ?? 'it said nothing'
      if (mayPass(exitCode, lines)) return failed('busy', `the installer ended with exit code ${exitCode}: ${said}`)
      const message = `${displayName(view.target)}: the installer ended with exit code ${exitCode}: ${lines.slice(-3).join(' | ') || said}. The machine still runs ${view.target.before?.version}, wanted ${specOf(view.operation).version}.`
      return ok({ failed: { reason: 'InstallFailed', message } })
    },
  },
  deadlineMs: (view) => since(view, INSTALL_MS),
  failure: 'InstallFailed',
  commits: true,
}

const transferLeadership: Step = {
  name: 'transfer-leadership',
  summary: 'Moves the leadership of etcd away from this member, so that its stop causes no election.',
  applies: (view) => isControlPlane(view) && controlPlanesOf(view.world).length > 1,
  needs: etcdNeed,
  done: (view) => {
    const views = etcdViews(view.world)
    const own = views.find((v) => v.name === view.target.name)
    const leader = agreedLeader(views.filter((v) => v.view.ok))
    if (!own?.view.ok) return unknown('its etcd does not answer')
    if (leader === undefined) return no('the members do not agree on a leader')
    return leader === own.view.value.status.memberID ? no('it leads etcd') : YES
  },
  guard: (view) => both(asRecorded(view), () => gateGuard(view)),
  act: { long: false, disruptive: true, describe: () => 'moving the leadership of etcd', run: ({ talos }, view) => talos.forfeitLeadership(address(view)) },
  settleMs: ({ world }) => 5 * world.timing.pollMs,
  deadlineMs: (view) => since(view, 2 * MINUTE),
  failure: 'EtcdUnhealthy',
}

const cordon: Step = {
  name: 'cordon',
  summary: 'Makes the Node unschedulable and marks the cordon as its own.',
  applies: drains,
  guardNeeds: etcdNeed,
  done: (view) => {
    const node = nodeOfTarget(view)
    if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
    return node.value === undefined || node.value.unschedulable ? YES : no('its Node is schedulable')
  },
  guard: (view) => both(asRecorded(view), () => gateGuard(view)),
  act: {
    long: false,
    disruptive: true,
    describe: () => 'cordoning its Node',
    run: async ({ kube }, view) => {
      const node = nodeOfTarget(view)
      return node.ok && node.value ? kube.cordon(node.value, view.operation.metadata.uid) : nothing
    },
    fatal: (fault, view) => (fault.kind === 'forbidden' ? { reason: 'PermissionDenied', message: `${displayName(view.target)}: ${fault.message}.` } : undefined),
  },
  deadlineMs: (view) => since(view, CALL_MS),
  failure: 'NodeNotReady',
}

const drainTimeout = (view: View): number => durationMs(view.operation.spec.drain.timeout)
const isForced = (view: View): boolean => view.operation.spec.drain.policy === 'force'
const isOverdue = (view: View): boolean => view.world.now - ms(view.target.stepStartedAt) >= drainTimeout(view)

const drain: Step = {
  name: 'drain',
  summary: 'Evicts the pods by the Eviction API and waits until they and their volumes are gone.',
  applies: drains,
  needs: ({ target }) => (target.node ? [{ what: 'pods', node: target.node }, { what: 'volumes', node: target.node }, { what: 'budgets' }] : []),
  done: drainDone,
  act: {
    long: false,
    disruptive: true,
    describe: (view) => (isForced(view) && isOverdue(view) ? 'deleting the pods that would not be evicted' : 'evicting its pods'),
    run: ({ kube }, view) => (isForced(view) && isOverdue(view) ? deleteAll(kube, view) : evictAll(kube, view)),
    fatal: (fault, view) => (fault.kind === 'forbidden' ? { reason: 'PermissionDenied', message: `${displayName(view.target)}: ${fault.message}.` } : undefined),
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: (view) => drainTimeout(view) + (isForced(view) ? CALL_MS : 0),
  failure: (view) => (blockedBy(view).length > 0 ? 'DrainBlocked' : 'DrainTimeout'),
}

/** Whether the machine has been rebooted since it was opened. */
const rebooted = (view: View): Answer => {
  const facts = machineOf(view)
  if (!facts.ok) return unknown('it is away')
  return facts.value.bootID === view.target.before?.bootID ? no(`its boot id has not changed; it is in stage ${facts.value.stage}`) : YES
}

const rebootMs = (view: View): number => durationMs(view.operation.spec.timeouts.reboot)
const mode = (view: View): RebootMode => specOf(view.operation).rebootMode

const STUCK = 'If it hangs in its shutdown, `talosctl reboot --mode force` or a power cycle may free it; the operation goes on by itself when it is back and is resumed.'

const reboot: Step = {
  name: 'reboot',
  summary: 'Reboots the machine into the new version. Done when its boot id has changed.',
  applies: (view) => !isLegacy(view),
  guardNeeds: etcdNeed,
  done: rebooted,
  guard: (view) => both(asRecorded(view), () => gateGuard(view)),
  guardStableMs: ({ world }) => world.timing.etcdSampleMs,
  act: { long: false, disruptive: true, describe: (view) => `rebooting${mode(view) === 'powercycle' ? ' by power cycle' : ''}`, run: ({ talos }, view) => talos.reboot(address(view), mode(view)) },
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: (view) => since(view, rebootMs(view)),
  failure: 'RebootTimeout',
  remedy: STUCK,
  milestone: true,
}

const legacyUpgrade: Step = {
  name: 'upgrade',
  summary: 'Below Talos 1.13: one call that drains, installs and reboots. Done when the boot id has changed.',
  applies: isLegacy,
  guardNeeds: etcdNeed,
  done: rebooted,
  guard: (view) => both(asRecorded(view), () => gateGuard(view)),
  guardStableMs: ({ world }) => world.timing.etcdSampleMs,
  act: {
    long: true,
    disruptive: true,
    describe: (view) => `upgrading to ${specOf(view.operation).version}`,
    run: async ({ talos }, view): Promise<Result<LongOutcome>> => {
      // Data is kept in any case on these versions; preserve only switches Talos' own check of etcd off, which wants three members.
      const preserve = isControlPlane(view) && controlPlanesOf(view.world).length < 3
      const accepted = await talos.upgrade(address(view), { image: goal(view, 'image'), preserve, rebootMode: mode(view) })
      return accepted.ok ? ok({ receipt: 'accepted' }) : accepted
    },
    fatal: imageMissing,
  },
  settleMs: ({ world }) => world.timing.rebootSettleMs + LEGACY_DRAIN_MS + INSTALL_MS,
  deadlineMs: (view) => since(view, LEGACY_DRAIN_MS + INSTALL_MS + rebootMs(view)),
  failure: 'RebootTimeout',
  remedy: STUCK,
  milestone: true,
  commits: true,
}

const verify: Step = {
  name: 'verify',
  summary: 'The machine runs the version and schematic that were installed, and Talos reports it running and ready.',
  done: (view) => {
    const facts = machineOf(view)
    if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
    const { version, schematic, stage, ready, unmet } = facts.value
    const wanted = specOf(view.operation).version
    const name = displayName(view.target)
    if (version !== wanted && version === view.target.before?.version) {
      return { is: 'failed', reason: 'BootedOldVersion', message: `${name} rebooted into ${version} again, wanted ${wanted}: the new version did not start and Talos fell back. Look at \`talosctl dmesg\` before the next try; nothing is reinstalled by itself.` }
    }
    if (version !== wanted) return { is: 'failed', reason: 'VersionMismatch', message: `${name} runs ${version} after the reboot, wanted ${wanted} (it ran ${view.target.before?.version} before).` }
    if (stage !== 'running') return no(`it is ${stage}`)
    if (!sameSchematic(schematic, goal(view, 'schematic')) && goal(view, 'schematic') !== 'any') {
      return { is: 'failed', reason: 'SchematicMismatch', message: `${name} runs ${version} with the schematic ${schematic || 'of no factory'}, wanted ${goal(view, 'schematic') || 'none'}.` }
    }
    return ready ? YES : no(`Talos does not report it ready: ${unmet.join('; ') || 'no reason given'}`)
  },
  deadlineMs: () => READY_MS,
  failure: (view) => (machineOf(view).ok ? 'MachineNotReady' : 'MachineUnreachable'),
}

const nodeReady: Step = {
  name: 'node-ready',
  summary: "The Kubernetes Node is Ready and carries the machine's new boot id.",
  done: (view) => {
    const [facts, node] = [machineOf(view), nodeOfTarget(view)]
    if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
    if (facts.value.nodename === '') return YES
    if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
    if (node.value === undefined) return no(`there is no Node ${facts.value.nodename}`)
    if (node.value.bootID !== facts.value.bootID) return no('its Node still tells of the boot before')
    return node.value.ready ? YES : no('its Node is not Ready')
  },
  deadlineMs: () => READY_MS,
  failure: 'NodeNotReady',
}

const rejoin: Step = {
  name: 'rejoin',
  summary: 'etcd passes its gate with this member back, and again after 20 seconds.',
  applies: isControlPlane,
  needs: etcdNeed,
  done: (view) => {
    const verdict = gate(view.operation, view.world, 'settled')
    if (verdict.pass) return YES
    const message = verdict.remedy ? `${verdict.message} ${verdict.remedy}` : verdict.message
    return verdict.kind === 'hold' ? no(message) : { is: 'failed', reason: verdict.reason, message }
  },
  stableMs: ({ world }) => world.timing.etcdStableMs,
  deadlineMs: () => GATE_HOLD_MS,
  failure: 'EtcdUnhealthy',
}

const isOurs = (view: View): boolean => {
  const node = nodeOfTarget(view)
  return node.ok && node.value?.annotations[ANNOTATION.cordonedBy] === view.operation.metadata.uid
}

const uncordon: Step = {
  name: 'uncordon',
  summary: 'Lifts the cordon if it is its own; a cordon of anybody else stays.',
  done: (view) => {
    const node = nodeOfTarget(view)
    if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
    return isOurs(view) ? no('its Node is still cordoned by this operation') : YES
  },
  act: {
    long: false,
    disruptive: false,
    describe: () => 'uncordoning its Node',
    run: async ({ kube }, view) => {
      const node = nodeOfTarget(view)
      if (!node.ok || !node.value) return nothing
      return view.target.before?.cordoned ? kube.unmark(node.value) : kube.uncordon(node.value)
    },
  },
  deadlineMs: () => CALL_MS,
  failure: 'NodeNotReady',
}

const recordImage: Step = {
  name: 'record-image',
  summary: 'Writes the installed image into the machine configuration, without a reboot, so that a later reset does not go back.',
  done: (view) => {
    const facts = machineOf(view)
    if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
    // A configuration without an install image has none to keep true.
    return facts.value.installImage === '' || facts.value.installImage === goal(view, 'image') ? YES : no(`its configuration names ${facts.value.installImage}`)
  },
  act: {
    long: false,
    disruptive: false,
    describe: () => 'writing the image into its configuration',
    run: ({ talos }, view) => talos.setInstallImage(address(view), goal(view, 'image')),
    fatal: (fault, view) => (fault.kind === 'invalid' ? { reason: 'ConfigRejected', message: `${displayName(view.target)}: ${fault.message}.` } : undefined),
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: () => CALL_MS,
  failure: 'ConfigRejected',
}

const soak: Step = {
  name: 'soak',
  summary: 'The machine stays ready for minReadySeconds before the next one is touched.',
  applies: (view) => view.operation.spec.minReadySeconds > 0,
  done: (view) => {
    const facts = machineOf(view)
    if (!facts.ok) return unknown(`it does not answer: ${facts.fault.message}`)
    if (facts.value.stage !== 'running' || !facts.value.ready) return no('it is not ready')
    return nodeReady.done(view)
  },
  stableMs: (view) => view.operation.spec.minReadySeconds * 1000,
  deadlineMs: (view) => view.operation.spec.minReadySeconds * 1000 + READY_MS,
  failure: 'NodeNotReady',
}

/** Where a machine is closed before its end: the cordon goes if the machine is healthy, and stays with a word if it is not. */
const giveBack: Step = {
  ...uncordon,
  name: 'give-back',
  guard: (view) => {
    const [facts, node] = [machineOf(view), nodeOfTarget(view)]
    return facts.ok && facts.value.stage === 'running' && node.ok && node.value?.ready === true ? YES : wait('it is not healthy, so its cordon stays')
  },
}

export const steps: readonly Step[] = [pull, install, transferLeadership, cordon, drain, reboot, legacyUpgrade, verify, nodeReady, rejoin, uncordon, recordImage, soak]
export const abandon: readonly Step[] = [giveBack]
