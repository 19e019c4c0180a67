import type { Result } from '../../ports/fault.ts'
import { done, failed } from '../../ports/fault.ts'
import type { LongCall, Talos } from '../../ports/talos.ts'
import type { Refusal } from '../answer.ts'
import type { Machine } from '../machine.ts'
import type { Site } from '../site.ts'
import { later } from '../site.ts'
import type { Ends } from '../stream.ts'
import type { Cancel } from '../time.ts'

/** How the calls of the Talos port are made: through the client, to whoever answers at the address. */
export type Caller = {
  readonly call: <T>(
    address: string,
    name: keyof Talos,
    needs: 'os:admin' | 'os:operator' | 'os:reader',
    changes: boolean,
    run: (machine: Machine) => Promise<Result<T>> | Result<T>,
  ) => Promise<Result<T>>
  readonly long: <T>(address: string, name: string, call: LongCall, open: (ends: Ends<T>) => Cancel) => Promise<Result<T>>
  readonly fault: (address: string, name: string, refusal: Refusal) => ReturnType<typeof failed>
  /** The same without a credential, to a machine in maintenance. */
  readonly toMaintenance: <T>(address: string, run: (machine: Machine) => Result<T>) => Promise<Result<T>>
  /** Answers when the change was made, or when it is known that it never will be: the machine went down before. */
  readonly applied: (machine: Machine, address: string, name: string, change: () => void) => Promise<Result<void>>
}

/** A change of the configuration takes its time, and the machine may go down before it has answered. */
export const appliedLater =
  (site: Site, deadlineMs: number): Caller['applied'] =>
  (machine, address, name, change) =>
    new Promise(resolve => {
      const { life } = machine
      later(site, machine, site.durations.draw('applyConfig'), () => {
        change()
        resolve(done)
      })
      site.schedule.after(deadlineMs, () => {
        if (machine.life !== life) resolve(failed('unreachable', `${address}: ${name}: connection reset`))
      })
    })
