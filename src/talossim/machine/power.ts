import { MachineService, ResetRequest_WipeMode } from '../../../proto/gen/machine/machine_pb.ts'
import { answer } from '../../world/answer.ts'
import { deleteMeta, writeMeta } from '../../world/meta.ts'
import type { ResetRequest } from '../../world/reset.ts'
import { requestReset } from '../../world/reset.ts'
import { requestRollback } from '../../world/rollback.ts'
import { requestShutdown } from '../../world/shutdown.ts'
import type { UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'

const methods = MachineService.method

const shutdown: UnaryHandler<typeof methods.shutdown> = ({ site, machine, drain }, { force }) => {
  const queued = requestShutdown(site, machine, force, drain)
  return queued.ok ? answer({ messages: [{ actorId: queued.value.actorID }] }) : queued
}

const WIPE_MODES: Readonly<Record<number, ResetRequest['mode']>> = {
  [ResetRequest_WipeMode.ALL]: 'all',
  [ResetRequest_WipeMode.SYSTEM_DISK]: 'system-disk',
  [ResetRequest_WipeMode.USER_DISKS]: 'user-disks',
}

const reset: UnaryHandler<typeof methods.reset> = ({ site, machine, drain }, request) => {
  const { graceful, reboot, userDisksToWipe: userDisks, systemPartitionsToWipe, mode } = request
  const partitions = systemPartitionsToWipe.filter(({ wipe }) => wipe).map(({ label }) => label)
  const queued = requestReset(site, machine, { graceful, reboot, partitions, userDisks, mode: WIPE_MODES[mode] ?? 'all' }, drain)
  return queued.ok ? answer({ messages: [{ actorId: queued.value.actorID }] }) : queued
}

/** Its answer names no actor. */
const rollback: UnaryHandler<typeof methods.rollback> = ({ site, machine }) => {
  const queued = requestRollback(site, machine)
  return queued.ok ? answer({ messages: [{}] }) : queued
}

const metaWrite: UnaryHandler<typeof methods.metaWrite> = ({ site, machine }, { key, value }) => {
  const written = writeMeta(site, machine, key, new TextDecoder().decode(value))
  return written.ok ? answer({ messages: [{}] }) : written
}

const metaDelete: UnaryHandler<typeof methods.metaDelete> = ({ site, machine }, { key }) => {
  const deleted = deleteMeta(site, machine, key)
  return deleted.ok ? answer({ messages: [{}] }) : deleted
}

/** How a machine ends, and what it remembers over that. OK means queued here too. */
export const powerMethods = {
  shutdown: unary(methods.shutdown, shutdown),
  reset: unary(methods.reset, reset),
  rollback: unary(methods.rollback, rollback),
  metaWrite: unary(methods.metaWrite, metaWrite),
  metaDelete: unary(methods.metaDelete, metaDelete),
}
