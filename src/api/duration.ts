/**
 * Durations as Go's `time.ParseDuration` reads them (`90s`, `1h30m`, `1.5h`), because that is how every Talos and Kubernetes user writes
 * them. A bare number is refused, as Go refuses it: "10" could be anything.
 */
const UNIT_MS: Record<string, number> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** The pattern for a CRD's schema: non-negative, at least one unit. */
export const DURATION_PATTERN = '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$'
/** The same for a time that something may take: one of its numbers is not zero. */
export const LIMIT_PATTERN =
  '^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))*[0-9]*[1-9][0-9]*(\\.[0-9]+)?(ns|us|µs|ms|s|m|h)([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$'

/** Milliseconds, or undefined where the text is no duration. */
export const parseDuration = (text: string): number | undefined => {
  if (text === '0') return 0
  if (!new RegExp(DURATION_PATTERN).test(text)) return undefined
  let ms = 0
  for (const [, amount, unit] of text.matchAll(/([0-9.]+)(ns|us|µs|ms|s|m|h)/g)) ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0)
  return ms
}

/** For durations that a schema has already checked. */
export const durationMs = (text: string): number => {
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error(`not a duration: ${text}`)
  return ms
}

/** The two largest units: `1h 5m`, `3m 20s`, `45s`. */
export const formatDuration = (ms: number): string => {
  const s = Math.max(0, Math.round(ms / 1000))
  if (s < 60) return `${s}s`
  const [d, h, m] = [Math.floor(s / 86_400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60]
  if (d > 0) return h > 0 ? `${d}d ${h}h` : `${d}d`
  if (h > 0) return m > 0 ? `${h}h ${m}m` : `${h}h`
  return s % 60 > 0 ? `${m}m ${s % 60}s` : `${m}m`
}
