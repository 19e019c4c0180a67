/** What was thrown, which may be anything, as an Error. */
export const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)))

/** It as a log should have it: with where it came from, as far as that is known. */
export const traceOf = ({ message, stack = message }: Error): string => stack
