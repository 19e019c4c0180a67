import type { Fault } from '../../ports/fault.ts'

/** Why nothing else was asked of an API server, after that fault. */
export const unaskedText = (fault: Fault): string =>
  isSilent(fault) ? 'the API server does not answer' : 'the API server does not let us ask'

/** It did not answer at all. */
export const isSilent = ({ kind }: Fault): boolean => kind === 'unreachable' || kind === 'busy' || kind === 'cancelled'
