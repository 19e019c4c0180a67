import type { GivingBack, Step } from '../../core/kind.ts'
import { giveBack } from '../../core/machine-steps/coming-back.ts'
import { afterRestart } from './after-restart.ts'
import { beforeRestart } from './before-restart.ts'
import { restart } from './restart.ts'

/**
 * The steps of one machine, in their order. From the install on any reboot, whoever causes it, boots the new version; so from there the machine is
 * carried to its end.
 */
export const steps: readonly Step[] = [...beforeRestart, ...restart, ...afterRestart]
export const abandon: readonly GivingBack[] = [giveBack]
