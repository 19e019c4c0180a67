import { talosConnection } from '../adapters/talos/connection.ts'
import type { Fault } from '../ports/fault.ts'
import { systemClock } from './system-clock.ts'

/** Longer than a machine in the same network takes; who adds a cluster from elsewhere need not wait for all deadlines. */
const WITHIN_MS = 3_000

/**
 * Whether the machines that a talosconfig names take it: asks all endpoints at once for their members, which changes nothing. Undefined as soon as one answers
 * well; else the fault of the first that says something about the credential, else any. `unreachable` where none answers in time.
 */
export const probe = async (talosconfig: string): Promise<Fault | undefined> => {
  const opened = talosConnection({ talosconfig, clock: systemClock })
  if (!opened.ok) return opened.fault
  const talos = opened.value
  const faults: Fault[] = []
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>(resolve => {
    timer = setTimeout(() => resolve('late'), WITHIN_MS)
  })
  const asked = talos.endpoints.map(async endpoint => {
    const answer = await talos.members(endpoint)
    if (answer.ok) return
    faults.push(answer.fault)
    throw new Error(answer.fault.message)
  })
  const first = await Promise.race([Promise.any(asked).catch(() => 'none' as const), late])
  clearTimeout(timer)
  talos.destroy()
  if (first === undefined) return undefined
  const telling = faults.find(({ kind }) => kind === 'wrongPeer' || kind === 'unauthenticated' || kind === 'forbidden')
  return telling ?? faults[0] ?? { kind: 'unreachable', message: `no answer within ${WITHIN_MS / 1000} s` }
}
