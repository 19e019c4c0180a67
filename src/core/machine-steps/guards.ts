import type { Reason } from '../../api/reasons.ts'
import type { Fault } from '../../ports/fault.ts'
import type { Verdict } from '../kind.ts'
import { YES, wait } from '../kind.ts'
import { ms, receiptOf } from '../ledger.ts'
import type { View } from '../world.ts'
import { displayName } from '../world.ts'
import { machineOf } from './target.ts'

/** How long etcd may keep a step from its act. */
export const GATE_HOLD_MS = 30 * 60_000

export const both = (a: Verdict, b: () => Verdict): Verdict => (a.may === 'yes' ? b() : a)

/** A receipt counts only in the boot in which it was given. */
export const hasReceipt = (view: View, step: string): boolean => {
  const receipt = receiptOf(view.target, step)
  const facts = machineOf(view)
  return receipt !== undefined && (!facts.ok || facts.value.bootID === receipt.bootID)
}

/** A deadline: from the first intention the effect has its full time, whatever was waited for before. */
export const since = (view: View, effectMs: number, holdMs = GATE_HOLD_MS): number =>
  view.target.firstActedAt === undefined ? holdMs : ms(view.target.firstActedAt) - ms(view.target.stepStartedAt) + effectMs

/** Right before anything that changes the machine: it is still the machine, in the boot, that was recorded. */
export const asRecorded = (view: View): Verdict => {
  const facts = machineOf(view)
  if (!facts.ok) return wait(`it does not answer: ${facts.fault.message}`, 'MachineUnreachable')
  if (facts.value.bootID !== view.target.before?.bootID) return wait('it was rebooted by somebody else meanwhile')
  if (facts.value.stage !== 'running') return wait(`it is ${facts.value.stage}`, 'MachineNotReady')
  return YES
}

type Ended = { readonly reason: Reason; readonly message: string }

/** Our credential for Talos does not suffice: no try will be better. */
export const denied = (fault: Fault, view: Pick<View, 'target'>): Ended | undefined => {
  const name = displayName(view.target)
  if (fault.kind === 'forbidden')
    return { reason: 'PermissionDenied', message: `${name}: ${fault.message}. The talosconfig needs the role os:admin.` }
  if (fault.kind === 'unauthenticated') return { reason: 'CredentialRejected', message: `${name}: ${fault.message}.` }
  return undefined
}

/** The same for Kubernetes. */
export const mayNotWriteNodes = (fault: Fault, view: Pick<View, 'target'>): Ended | undefined =>
  fault.kind === 'forbidden' ? { reason: 'PermissionDenied', message: `${displayName(view.target)}: ${fault.message}.` } : undefined
