import { durationMs } from '../../api/duration.ts'
import type { LongOutcome, Step } from '../../core/kind.ts'
import { etcdNeed, etcdSampleMs } from '../../core/machine-steps/etcd.ts'
import { both, denied, since } from '../../core/machine-steps/guards.ts'
import { goingNeed } from '../../core/machine-steps/other-control-planes.ts'
import { addressOf, controlPlanesOf, isControlPlane, machineOf } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import type { Result } from '../../ports/fault.ts'
import type { RebootMode } from '../../ports/talos.ts'
import { imageMissing } from './before-restart.ts'
import { cameBackOther, etcdObjection, mayRestart, restarted, wrongBoot } from './evidence.ts'
import { gateGuard, isLegacy, specOf, wish } from './view.ts'

/** The point of no return: from its evidence, a new boot id, a machine only goes forward. */

const MINUTE = 60_000
/** Talos' own drain ends after five minutes, whatever is left. */
const LEGACY_DRAIN_MS = 5 * MINUTE
const LEGACY_INSTALL_MS = 10 * MINUTE

const rebootMs = (view: View): number => durationMs(view.operation.spec.timeouts.reboot)
const mode = (view: View): RebootMode => specOf(view.operation).rebootMode

const STUCK =
  'If it hangs in its shutdown, `talosctl reboot --mode force` or a power cycle may free it; resume the operation when it is back, it is then only looked at.'

/** It came back, but with something else, and never got well enough to leave it there. */
const restartFailure: Step['failure'] = view => {
  const facts = machineOf(view)
  return (
    etcdObjection(view)?.reason ?? (facts.ok && cameBackOther(view) ? wrongBoot(view, facts.value)?.reason : undefined) ?? 'RebootTimeout'
  )
}

const reboot: Step = {
  name: 'reboot',
  summary: 'Reboots the machine into the new version. Done when its boot id has changed.',
  applies: view => !isLegacy(view),
  needs: view => (cameBackOther(view) ? etcdNeed(view) : []),
  guardNeeds: goingNeed,
  done: restarted,
  guard: view => both(mayRestart(view), () => gateGuard(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: false,
    disruptive: true,
    describe: view => `rebooting${mode(view) === 'powercycle' ? ' by power cycle' : ''}`,
    run: ({ talos }, view) => talos.reboot(addressOf(view), mode(view)),
  },
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: view => since(view, rebootMs(view)),
  failure: restartFailure,
  remedy: STUCK,
  milestone: true,
}

const legacyUpgrade: Step = {
  name: 'upgrade',
  summary: 'Below Talos 1.13: one call that drains, installs and reboots. Done when the boot id has changed.',
  applies: isLegacy,
  needs: view => (cameBackOther(view) ? etcdNeed(view) : []),
  guardNeeds: goingNeed,
  done: restarted,
  guard: view => both(mayRestart(view), () => gateGuard(view)),
  guardStableMs: etcdSampleMs,
  act: {
    long: true,
    disruptive: true,
    describe: view => `upgrading to ${specOf(view.operation).version}`,
    run: async ({ talos }, view): Promise<Result<LongOutcome>> => {
      // Data is kept in any case on these versions. From 1.14 on preserve switches Talos' own check of etcd off, which refuses one of two members; before,
      // nothing does but force, which skips more than that, so the checks refuse such a cluster.
      const preserve = isControlPlane(view) && controlPlanesOf(view.world).length < 3
      const accepted = await talos.upgrade(addressOf(view), { image: wish(view, 'image'), preserve, rebootMode: mode(view) })
      return accepted.ok ? { ok: true, value: { receipt: 'accepted' } } : accepted
    },
    fatal: (fault, view) => imageMissing(fault, view) ?? denied(fault, view),
  },
  // Once accepted the machine leaves stage running at once, and the guard waits with it; one that is still there after this has dropped the call.
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: view => since(view, LEGACY_DRAIN_MS + LEGACY_INSTALL_MS + rebootMs(view)),
  failure: restartFailure,
  remedy: STUCK,
  milestone: true,
  commits: true,
}

export const restart: readonly Step[] = [reboot, legacyUpgrade]
