import type { Finding } from './table.ts'

/** A finding for people, with the row that says so and where that has it from. */
export const told = ({ id, reason, fixedIn, sources }: Finding): string =>
  `${reason}${fixedIn ? ` Fixed in ${fixedIn}.` : ''} (${[id, ...(sources.length > 0 ? [sources.join(', ')] : [])].join(': ')})`
