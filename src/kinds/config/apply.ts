import type { Target } from '../../api/talos-operation.ts'
import type { Answer, GivingBack, LongOutcome, Step, Verdict } from '../../core/kind.ts'
import { YES, no, unknown, wait } from '../../core/kind.ts'
import { iso, ms, receiptOf } from '../../core/ledger.ts'
import { CALL_MS } from '../../core/machine-steps/coming-back.ts'
import { asGuard, etcdNeed, gate } from '../../core/machine-steps/etcd.ts'
import { asRecorded, both, denied, since } from '../../core/machine-steps/guards.ts'
import { addressOf, isControlPlane, machineOf } from '../../core/machine-steps/target.ts'
import { sha256 } from '../../core/sha256.ts'
import type { View } from '../../core/world.ts'
import { configurationFacts, displayName, nodeFacts } from '../../core/world.ts'
import { type ApplyMode, pendingText } from '../../ports/configuration.ts'
import type { Result } from '../../ports/fault.ts'
import { saidByMachine } from './patches.ts'
import { configNeeds, heldNow, recorded, runsNow, short, tryMs, wishFor } from './view.ts'

/** A configuration is written; and before and after, that nobody else writes it. */

/** Its network may come anew with it. */
const WRITE_MS = 10 * 60_000

/** Steps before which nothing of ours can be in a configuration. */
export const isBeforeWriting = ({ target }: Pick<View, 'target'>): boolean => target.step === undefined || target.step === 'compare'

/**
 * What is there now may be patched although the patches may be in it already: before anything was written; and where the same patches once more are the
 * same, which those are not that add to lists.
 */
export const mayPatchAnew = (view: View): boolean => {
  if (isBeforeWriting(view)) return true
  const wish = wishFor(view.operation, view.world, view.target.name)
  return FIRST_WRITES.includes(view.target.step) && wish.is === 'made' && wish.isRepeatable()
}
const FIRST_WRITES: readonly Target['step'][] = ['apply', 'stage', 'try']

/** The machine has neither the configuration that was read nor the one that was made of it. */
const changedByOthers = (view: View): Extract<Answer, { is: 'failed' }> => {
  const { read, computed } = recorded(view)
  const what = `${displayName(view.target)}: somebody else has changed its machine configuration since this operation read it (sha256 ${short(read)}, and ${short(computed)} with the patches)`
  return {
    is: 'failed',
    reason: 'ConfigChangedByOthers',
    message: mayPatchAnew(view)
      ? `${what}. Resume the operation to patch what is there now.`
      : `${what}. The patches may be in it, so they are not applied once more. Put back one of the two and resume; or cancel this operation, and look at another one with --plan.`,
  }
}

/** Read at every look, so that a change of somebody else's is seen whenever it happens. */
export const compare: Step = {
  name: 'compare',
  summary:
    'The configuration is the one that was read, or the one that was made of it. Looked at again before and after everything that follows.',
  needs: configNeeds,
  done: view => {
    const held = heldNow(view)
    if (typeof held === 'object') return unknown(`its configuration cannot be read: ${held.message}`)
    return held === 'other' ? changedByOthers(view) : YES
  },
  deadlineMs: () => CALL_MS,
  failure: 'MachineUnreachable',
}

/** What would be written is what was recorded: another Ichor may make another text of the same patches. */
const isAsComputed = (view: View): Verdict => {
  const wish = wishFor(view.operation, view.world, view.target.name)
  const { computed } = recorded(view)
  return wish.is === 'made' && sha256(wish.to) === computed ? YES : wait('its configuration is read once more')
}

/** What follows at once can be judged. */
const isJudged = ({ world }: View): Verdict => {
  const nodes = nodeFacts(world)
  return nodes.ok ? YES : wait(`the Kubernetes API does not answer: ${nodes.fault.message}`, 'NodeNotReady')
}

const etcdIsWell = (view: View): Verdict =>
  isControlPlane(view) ? asGuard(gate(view.operation, view.world, { purpose: 'settled', etcdStepAllowed: true })) : YES

type Writing = {
  readonly name: string
  readonly summary: string
  readonly mode: ApplyMode
  readonly says: string
  readonly done: (view: View) => Answer
  /** Whether the text to write is already there, only not for good. */
  readonly isThere?: boolean
}

const writing = ({ name, summary, mode, says, done, isThere = false }: Writing): Step => ({
  name,
  summary,
  needs: configNeeds,
  done,
  guardNeeds: view => (mode === 'staged' ? [] : etcdNeed(view)),
  guard: view =>
    both(asRecorded(view), () => {
      if (isThere) return YES
      const now = configurationFacts(view.world, view.target.name)
      if (mode === 'staged' && now.ok && now.value.pending === 'trial') return wait(pendingText('trial'), 'ConfigChangedByOthers')
      return both(isAsComputed(view), () => (mode === 'staged' ? YES : both(isJudged(view), () => etcdIsWell(view))))
    }),
  act: {
    long: true,
    disruptive: true,
    describe: () => says,
    run: async ({ talos }, view): Promise<Result<LongOutcome>> => {
      const address = addressOf(view)
      const change = changeOf(view, isThere)
      if (!change.ok) return change
      const applied = await talos.applyConfiguration(address, { ...change.value, mode, ...(mode === 'try' ? { tryMs: tryMs(view) } : {}) })
      if (!applied.ok)
        return { ok: false, fault: { ...applied.fault, message: saidByMachine(view.operation, view.world, applied.fault.message) } }
      const back = await talos.configuration(address)
      if (!back.ok) return { ok: true, value: { receipt: 'accepted, not read back' } }
      return { ok: true, value: { receipt: `sha256 ${sha256(mode === 'staged' ? back.value.onDisk : back.value.running)}` } }
    },
    fatal: (fault, view) =>
      fault.kind === 'invalid'
        ? {
            reason: 'ConfigRejected',
            message: `${displayName(view.target)}: ${fault.message}. Its configuration is as it was.`,
          }
        : denied(fault, view),
  },
  settleMs: ({ world }) => 5 * world.timing.pollMs,
  deadlineMs: view => since(view, WRITE_MS),
  failure: view => (machineOf(view).ok ? 'ConfigRejected' : 'MachineUnreachable'),
  // A trial is none of it: it ends by itself, and leaves nothing.
  ...(mode === 'try' ? {} : { commits: true }),
})

const changeOf = (view: View, isThere: boolean): Result<{ readonly from: string; readonly to: string }> => {
  const wish = wishFor(view.operation, view.world, view.target.name)
  const now = configurationFacts(view.world, view.target.name)
  if (!now.ok) return now
  if (isThere) return { ok: true, value: { from: now.value.running, to: now.value.running } }
  if (wish.is !== 'made') return { ok: false, fault: { kind: 'conflict', message: 'its configuration or the patches changed meanwhile' } }
  return { ok: true, value: { from: wish.from, to: wish.to } }
}

const hasIt = (view: View, not: string): Answer => {
  const held = heldNow(view)
  if (typeof held === 'object') return unknown(`its configuration cannot be read: ${held.message}`)
  if (held === 'other') return changedByOthers(view)
  return held === 'computed' ? YES : no(not)
}

export const apply = writing({
  name: 'apply',
  summary: 'Writes the patched configuration, which takes effect at once. Done when the machine reads back that very text.',
  mode: 'no-reboot',
  says: 'applying the patched configuration',
  done: view => hasIt(view, 'the patched configuration is not applied yet'),
})

export const stage = writing({
  name: 'stage',
  summary: 'Writes the patched configuration for the next boot. Done when the machine reads back that very text from its disk.',
  mode: 'staged',
  says: 'staging the patched configuration',
  done: view => hasIt(view, 'the patched configuration is not staged yet'),
})

/** Without a gap since then, so that what came and went again cannot have been missed. */
const isInSightSince = ({ world }: View, at: number): boolean => world.watchedMs >= world.now - at

const NOT_YET = 'the patched configuration is not tried yet'

/** How long a machine has to be well in a trial; after less than that before its end nothing can be proved any more. */
const provingMs = ({ world }: View): number => 3 * world.timing.etcdStableMs

/** Nobody can tell whether the machine is well, and that is not its own fault. */
const cannotBeJudged = (view: View): boolean => {
  const { target, world } = view
  return target.step === 'trial' && !nodeFacts(world).ok && world.now - ms(target.stepStartedAt) >= tryMs(view) - provingMs(view)
}

/**
 * Whether what the machine runs may be there for a trial only, which began at `begun` at the latest. One that does not tell what is on its disk shows no
 * trial: there it may be one for as long as ours takes.
 */
const mayBeOnTrial = ({ target, world }: View, begun: string | undefined): boolean => {
  const configuration = configurationFacts(world, target.name)
  if (!configuration.ok) return false
  const { pending, isDiskUntold = false } = configuration.value
  return pending === 'trial' || (isDiskUntold && world.now - ms(begun) < tryMs({ world }))
}

/** A trial that could not be judged still runs. */
const isLeft = (view: View): boolean => {
  const { target } = view
  return target.step === 'try' && target.firstActedAt === undefined && mayBeOnTrial(view, target.stepStartedAt)
}

/** A trial of which nothing is known is tried again, but not for ever. */
const mayTryAgain = (view: View): boolean => {
  const { operation, target, world } = view
  return world.now - Math.max(ms(target.startedAt), ms(operation.status.lastRetry)) < 4 * tryMs(view)
}

/** It was well with it, and the word that keeps it came too late: for a while it is tried again. */
const keptTooLate = (view: View): Answer => {
  const { target } = view
  if (mayTryAgain(view)) return no('Talos has ended the trial before it was kept; it is tried again')
  return {
    is: 'failed',
    reason: 'MachineUnreachable',
    message: `${displayName(target)} was well with the patched configuration, and could not be told in time to keep it, so that Talos has put the one from before back: ${target.fault ?? 'it did not answer'}. Resume the operation to try it again.`,
  }
}

/** Nobody saw how it fared, because the controller or the Kubernetes API was away: with a single control plane the patch itself may be why. */
const triedUnseen = (view: View): Answer =>
  mayTryAgain(view)
    ? no(NOT_YET)
    : {
        is: 'failed',
        reason: 'ConfigRejected',
        message: `${displayName(view.target)} was tried with the patched configuration more than once, and each time Talos put the one from before back before it could be seen to be well, because the Kubernetes API did not answer meanwhile. Where that comes with the patch, mend it, cancel this operation, and start another one; where it does not, resume the operation to try once more.`,
      }

/** The configuration from before is back although the new one was tried, or may have been: for a person where it is certain that it was not well with it. */
const putBack = (view: View): Answer => {
  const { target, world } = view
  if (target.step === 'keep') return keptTooLate(view)
  const isPast = target.step !== undefined && target.step !== 'compare' && target.step !== 'try'
  const begun = isPast ? ms(target.stepStartedAt) : target.actedAt === undefined ? undefined : ms(target.actedAt)
  if (begun === undefined) return no(NOT_YET)
  // A person has looked, and wants another try.
  if (isPast && ms(view.operation.status.lastRetry) >= begun) return no(NOT_YET)
  const wasTaken = isPast || receiptOf(target, 'try') !== undefined
  const wasSilent = !isPast && target.fault !== undefined && (world.now - begun >= tryMs(view) || (target.attempts ?? 0) > 1)
  if (!(wasTaken || wasSilent)) return no(NOT_YET)
  if (!isInSightSince(view, begun)) return triedUnseen(view)
  return {
    is: 'failed',
    reason: 'ConfigRejected',
    message: `${displayName(target)} was not well with the patched configuration, and Talos has put the one from before back: ${target.message ?? 'it did not answer'}. No further machine is given it. Mend the patch, cancel this operation, and start another one.`,
  }
}

export const tryOut = {
  ...writing({
    name: 'try',
    summary:
      'Gives the patched configuration to the machine for three minutes. Unless it is kept then, Talos puts the one from before back by itself.',
    mode: 'try',
    says: 'trying the patched configuration',
    done: view => {
      const held = heldNow(view)
      if (held === 'read') return putBack(view)
      if (held === 'computed' && cannotBeJudged(view))
        return no('the Kubernetes API does not answer, so nobody can tell whether the machine is well; it is tried again')
      return held === 'computed' && isLeft(view) ? no('Talos has not ended the trial before yet') : hasIt(view, NOT_YET)
    },
  }),
  // The network may go with it: it is back, one way or the other, when the trial has ended.
  settleMs: (view: View) => tryMs(view) / 6,
  deadlineMs: (view: View) => since(view, 3 * tryMs(view)),
} satisfies Step

/** How long the machine may take to be well, and the trial to end by itself where it never is. */
export const trialMs = (view: View): number => tryMs(view) + provingMs(view)

/** When its trial began, or at the latest. */
const triedAt = ({ target }: View): string | undefined => receiptOf(target, 'try')?.at ?? target.actedAt

/** A machine that is left in its trial is told of: there is nothing to be done, because Talos ends it. */
export const trialOver: GivingBack = {
  name: 'trial-over',
  summary: 'Talos has put the configuration from before back.',
  needs: configNeeds,
  done: view => {
    const configuration = configurationFacts(view.world, view.target.name)
    if (!configuration.ok) return unknown(`its configuration cannot be read: ${configuration.fault.message}`)
    const isOnTrial = runsNow(view) === 'computed' && mayBeOnTrial(view, triedAt(view) ?? view.target.stepStartedAt)
    return isOnTrial ? no('the patched configuration is on trial') : YES
  },
  guard: view => {
    const begun = triedAt(view)
    const latest = begun === undefined ? '' : `, at the latest at ${iso(ms(begun) + tryMs(view))}`
    return wait(`the patched configuration is on trial there, and Talos puts the one from before back by itself${latest}`)
  },
  deadlineMs: trialMs,
  failure: 'ConfigRejected',
}

export const keep = writing({
  name: 'keep',
  summary: 'Writes the same configuration once more, for good.',
  mode: 'no-reboot',
  says: 'keeping the configuration that was tried',
  isThere: true,
  done: view => {
    const configuration = configurationFacts(view.world, view.target.name)
    if (!configuration.ok) return unknown(`its configuration cannot be read: ${configuration.fault.message}`)
    const runs = runsNow(view)
    if (runs !== 'computed') return no('it does not run the patched configuration')
    const { pending, isDiskUntold = false } = configuration.value
    // Where its disk tells nothing, only that it took the word. To say it once more does no harm.
    const isKept = pending === undefined && (!isDiskUntold || receiptOf(view.target, 'keep') !== undefined)
    return isKept ? YES : no('the patched configuration is only on trial')
  },
})
