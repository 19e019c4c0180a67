import type { Fault } from '../ports/fault.ts'

const LOST: Fault = { kind: 'cancelled', message: 'leadership is lost' }

/**
 * The same port for as long as `mayAct` holds; afterwards every call of it answers `cancelled` and reaches nobody. An act may be many calls (one round of
 * evictions), and leadership may go between two of them.
 */
export const fenced = <P extends object>(port: P, mayAct: () => boolean): P =>
  Object.fromEntries(
    Object.entries(port).map(([name, member]) => [
      name,
      typeof member === 'function'
        ? (...args: readonly unknown[]) =>
            mayAct() ? (member as (...args: readonly unknown[]) => unknown)(...args) : Promise.resolve({ ok: false, fault: LOST })
        : member,
    ]),
  ) as P
