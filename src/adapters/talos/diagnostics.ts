import { NetworkOperator } from '../../../proto/gen/talos/resource/definitions/enums/enums_pb.ts'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Diagnostics } from '../../ports/diagnostics.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import { textOfIP } from './address.ts'
import { onlyMessage } from './answer.ts'
import type { Calls } from './calls.ts'
import { listResources } from './cosi.ts'
import { readShortFile } from './read-file.ts'
import { resourceTypes } from './resource-types.ts'

const uptimeFile = '/proc/uptime'

export const diagnostics = (calls: Calls, clock: Clock): Diagnostics => ({
  clockAhead: address => readClock(calls, clock, address),
  virtualAddresses: async address => {
    const operators = await listResources(calls, address, resourceTypes.operatorSpec)
    if (!operators.ok) return operators
    return ok(
      operators.value.flatMap(({ spec }) =>
        spec.operator === NetworkOperator.OPERATOR_VIP ? (textOfIP(spec.vip?.ip?.ip ?? new Uint8Array()) ?? []) : [],
      ),
    )
  },
})

/**
 * When it booted by its own clock, and for how long it has run since. TimeService.Time would tell the clock, too, but asks a time server first and fails
 * with it, which is just when the clock is wrong.
 */
async function readClock(calls: Calls, clock: Clock, address: string): Promise<Result<number>> {
  const stat = await calls.unary(address, MachineService.method.systemStat, {})
  if (!stat.ok) return stat
  const system = onlyMessage(address, 'MachineService.SystemStat', stat.value.messages)
  if (!system.ok) return system
  const before = clock.now()
  const read = await readShortFile(calls, address, uptimeFile)
  const after = clock.now()
  if (!read.ok) return read
  const uptime = Number(read.value.split(' ')[0])
  if (!Number.isFinite(uptime) || uptime <= 0 || system.value.bootTime === 0n)
    return failed('unknown', `${address}: MachineService.Read ${uptimeFile}: the content tells no uptime`)
  // The kernel cuts the second off in which it booted.
  return ok((Number(system.value.bootTime) + 0.5 + uptime) * 1000 - (before + after) / 2)
}
