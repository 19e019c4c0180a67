/** Structured logs. Messages are short and constant; what varies is in the fields. Never a secret. */
export type Log = {
  readonly info: (message: string, fields?: Readonly<Record<string, unknown>>) => void
  readonly warn: (message: string, fields?: Readonly<Record<string, unknown>>) => void
  readonly error: (message: string, fields?: Readonly<Record<string, unknown>>) => void
}
