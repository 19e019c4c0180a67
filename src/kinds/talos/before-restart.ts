import { durationMs } from '../../api/duration.ts'
import type { LongOutcome, Step, Verdict } from '../../core/kind.ts'
import { YES, no, unknown } from '../../core/kind.ts'
import { ms, receiptOf } from '../../core/ledger.ts'
import { agreedLeader } from '../../core/etcd-members.ts'
import type { View } from '../../core/world.ts'
import { displayName } from '../../core/world.ts'
import type { Fault, Result } from '../../ports/fault.ts'
import { asRecorded, isInstalled, isPulled, since } from './evidence.ts'
import { blockedBy, deleteAll, drainDone, evictAll } from './drain.ts'
import {
  addressOf,
  controlPlanesOf,
  etcdNeed,
  etcdSampleMs,
  etcdViews,
  gateGuard,
  isControlPlane,
  isLegacy,
  nodeNameOf,
  nodeOfTarget,
  specOf,
  wish,
} from './view.ts'

/** From the first touch to the moment before the reboot. Install comes before cordon and drain: a missing image then costs no disruption. */

const MINUTE = 60_000
const PULL_MS = 15 * MINUTE
const INSTALL_MS = 10 * MINUTE
const TRANSFER_MS = 2 * MINUTE
const CALL_MS = 5 * MINUTE

export const both = (a: Verdict, b: () => Verdict): Verdict => (a.may === 'yes' ? b() : a)

export const denied = (
  fault: Fault,
  view: Pick<View, 'target'>,
): { reason: 'PermissionDenied' | 'CredentialRejected'; message: string } | undefined => {
  const name = displayName(view.target)
  if (fault.kind === 'forbidden')
    return { reason: 'PermissionDenied', message: `${name}: ${fault.message}. The talosconfig needs the role os:admin.` }
  if (fault.kind === 'unauthenticated') return { reason: 'CredentialRejected', message: `${name}: ${fault.message}.` }
  return undefined
}

export const imageMissing = (fault: Fault, view: Pick<View, 'target'>): { reason: 'ImageNotFound'; message: string } | undefined =>
  fault.kind === 'notFound'
    ? {
        reason: 'ImageNotFound',
        message: `${displayName(view.target)}: the installer image ${view.target.goal?.['image']} does not exist: ${fault.message}. Nothing was changed on the machine. Check version, schematic and the name of the factory.`,
      }
    : undefined

const pull: Step = {
  name: 'pull',
  summary: 'Pulls the installer image, so that a missing image costs nothing.',
  done: view => (isPulled(view) ? YES : no(`the image ${wish(view, 'image')} is not pulled yet`)),
  guard: asRecorded,
  act: {
    long: true,
    disruptive: false,
    describe: view => `pulling ${wish(view, 'image')}`,
    run: async ({ talos }, view, call): Promise<Result<LongOutcome>> => {
      const pulled = await talos.pull(addressOf(view), wish(view, 'image'), call)
      return pulled.ok ? { ok: true, value: { receipt: pulled.value } } : pulled
    },
    fatal: (fault, view) => imageMissing(fault, view) ?? denied(fault, view),
  },
  deadlineMs: () => PULL_MS,
  failure: 'ImageNotFound',
}

/** Exit codes since Talos 1.14; installers before it know 0 and 1 only. 4 to 7 may pass: environment, dependency, I/O, install. */
const mayPass = (exitCode: number, lines: readonly string[]): boolean =>
  exitCode >= 4 && exitCode <= 7 && !(exitCode === 4 && lines.some(l => /pre-?flight|compatib|too old|too new|not supported/i.test(l)))

const install: Step = {
  name: 'install',
  summary: 'Runs the installer, which writes the other boot slot and nothing else.',
  applies: view => !isLegacy(view),
  guardNeeds: etcdNeed,
  done: view => (isInstalled(view) ? YES : no('the installer has not ended yet')),
  guard: view => both(asRecorded(view), () => gateGuard(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: true,
    disruptive: true,
    describe: view => `installing ${specOf(view.operation).version}`,
    run: async ({ talos }, view, call): Promise<Result<LongOutcome>> => {
      const image = receiptOf(view.target, 'pull')?.value ?? wish(view, 'image')
      const outcome = await talos.install(addressOf(view), image, call)
      if (!outcome.ok) return outcome
      const { exitCode, lines } = outcome.value
      if (exitCode === 0) return { ok: true, value: { receipt: `exit code 0, ${image}`.slice(0, 1024) } }
      const said = lines.at(-1) ?? 'it said nothing'
      if (mayPass(exitCode, lines))
        return { ok: false, fault: { kind: 'busy', message: `the installer ended with exit code ${exitCode}: ${said}` } }
      const message = `${displayName(view.target)}: the installer ended with exit code ${exitCode}: ${lines.slice(-3).join(' | ') || said}. The machine still runs ${view.target.before?.version}, wanted ${specOf(view.operation).version}.`
      return { ok: true, value: { failed: { reason: 'InstallFailed', message } } }
    },
  },
  deadlineMs: view => since(view, INSTALL_MS),
  failure: 'InstallFailed',
  commits: true,
}

const transferLeadership: Step = {
  name: 'transfer-leadership',
  summary: 'Moves the leadership of etcd away from this member, so that its stop causes no election.',
  applies: view => isControlPlane(view) && controlPlanesOf(view.world).length > 1,
  needs: etcdNeed,
  done: view => {
    const views = etcdViews(view.world)
    const own = views.find(v => v.name === view.target.name)
    const leader = agreedLeader(views.filter(v => v.view.ok))
    if (!own?.view.ok) return unknown('its etcd does not answer')
    if (leader === undefined) return no('the members do not agree on a leader')
    return leader === own.view.value.status.memberID ? no('it leads etcd') : YES
  },
  guard: view => both(asRecorded(view), () => gateGuard(view)),
  act: {
    long: false,
    disruptive: true,
    describe: () => 'moving the leadership of etcd',
    run: ({ talos }, view) => talos.forfeitLeadership(addressOf(view)),
  },
  settleMs: ({ world }) => 5 * world.timing.pollMs,
  deadlineMs: view => since(view, TRANSFER_MS),
  failure: 'EtcdUnhealthy',
}

/** Whether the Node is cordoned and drained at all; chosen when the machine was opened. */
const drains = (view: View): boolean => wish(view, 'drain') !== 'none'

const mayNotWriteNodes = (fault: Fault, view: Pick<View, 'target'>): { reason: 'PermissionDenied'; message: string } | undefined =>
  fault.kind === 'forbidden' ? { reason: 'PermissionDenied', message: `${displayName(view.target)}: ${fault.message}.` } : undefined

const cordon: Step = {
  name: 'cordon',
  summary: 'Makes the Node unschedulable and marks the cordon as its own.',
  applies: drains,
  guardNeeds: etcdNeed,
  done: view => {
    const node = nodeOfTarget(view)
    if (!node.ok) return unknown(`the Kubernetes API does not answer: ${node.fault.message}`)
    return node.value === undefined || node.value.unschedulable ? YES : no('its Node is schedulable')
  },
  guard: view => both(asRecorded(view), () => gateGuard(view)),
  act: {
    long: false,
    disruptive: true,
    describe: () => 'cordoning its Node',
    run: async ({ kube }, view) => {
      const node = nodeOfTarget(view)
      return node.ok && node.value ? kube.cordon(node.value, view.operation.metadata.uid) : { ok: true, value: undefined }
    },
    fatal: mayNotWriteNodes,
  },
  // Where somebody takes it away again and again, this is no race.
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: view => since(view, CALL_MS),
  failure: 'NodeNotReady',
}

const drainTimeout = (view: View): number => durationMs(view.operation.spec.drain.timeout)
const isForced = (view: View): boolean => view.operation.spec.drain.policy === 'force'
const isOverdue = (view: View): boolean => view.world.now - ms(view.target.stepStartedAt) >= drainTimeout(view)

const drain: Step = {
  name: 'drain',
  summary: 'Evicts the pods by the Eviction API and waits until they and their volumes are gone.',
  applies: drains,
  needs: view => {
    const node = nodeNameOf(view)
    return node === undefined ? [] : [{ what: 'pods', node }, { what: 'volumes', node }, { what: 'budgets' }]
  },
  done: drainDone,
  guard: asRecorded,
  act: {
    long: false,
    disruptive: true,
    describe: view => (isForced(view) && isOverdue(view) ? 'deleting the pods that would not be evicted' : 'evicting its pods'),
    run: ({ kube }, view) => (isForced(view) && isOverdue(view) ? deleteAll(kube, view) : evictAll(kube, view)),
    fatal: mayNotWriteNodes,
  },
  settleMs: ({ world }) => world.timing.pollMs,
  deadlineMs: view => drainTimeout(view) + (isForced(view) ? CALL_MS : 0),
  failure: view => (blockedBy(view).length > 0 ? 'DrainBlocked' : 'DrainTimeout'),
}

export const beforeRestart: readonly Step[] = [pull, install, transferLeadership, cordon, drain]
