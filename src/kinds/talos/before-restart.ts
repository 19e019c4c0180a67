import type { LongOutcome, Step } from '../../core/kind.ts'
import { YES, no } from '../../core/kind.ts'
import { receiptOf } from '../../core/ledger.ts'
import { etcdSampleMs } from '../../core/machine-steps/etcd.ts'
import { asRecorded, both, denied, since } from '../../core/machine-steps/guards.ts'
import { goingNeed } from '../../core/machine-steps/other-control-planes.ts'
import { cordon, drain, transferLeadership } from '../../core/machine-steps/setting-aside.ts'
import { addressOf } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import { displayName } from '../../core/world.ts'
import type { Fault, Result } from '../../ports/fault.ts'
import { isInstalled, isPulled } from './evidence.ts'
import { gateGuard, isLegacy, specOf, wish } from './view.ts'

/** From the first touch to the moment before the reboot. Install comes before cordon and drain: a missing image then costs no disruption. */

const MINUTE = 60_000
const PULL_MS = 15 * MINUTE
const INSTALL_MS = 10 * MINUTE

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

/** Installed years ago its boot partition may be too small for a kernel of today. */
const NO_ROOM =
  'Its boot partition has no room for another version, and nothing can enlarge that: the machine has to be reset and installed anew. That is left to you, nothing was wiped.'
const isBootFull = (lines: readonly string[]): boolean => lines.some(l => /no space left on device/i.test(l) && /\bboot\b|\bEFI\b/i.test(l))

const install: Step = {
  name: 'install',
  summary: 'Runs the installer, which writes the other boot slot and nothing else.',
  applies: view => !isLegacy(view),
  guardNeeds: goingNeed,
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
      if (mayPass(exitCode, lines) && !isBootFull(lines))
        return { ok: false, fault: { kind: 'busy', message: `the installer ended with exit code ${exitCode}: ${said}` } }
      const message = `${displayName(view.target)}: the installer ended with exit code ${exitCode}: ${lines.slice(-3).join(' | ') || said}. The machine still runs ${view.target.before?.version}, wanted ${specOf(view.operation).version}.${isBootFull(lines) ? ` ${NO_ROOM}` : ''}`
      return { ok: true, value: { failed: { reason: 'InstallFailed', message } } }
    },
  },
  deadlineMs: view => since(view, INSTALL_MS),
  failure: 'InstallFailed',
  commits: true,
}

export const beforeRestart: readonly Step[] = [pull, install, transferLeadership(gateGuard), cordon(gateGuard), drain]
