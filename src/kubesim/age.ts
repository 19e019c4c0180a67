const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY

const two = (whole: number, unit: string, part: number, partUnit: string): string =>
  part === 0 ? `${whole}${unit}` : `${whole}${unit}${part}${partUnit}`

/** A duration as tables show it: two units while the first is small, one after. Seconds. */
export const shortDuration = (seconds: number): string => {
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  const s = Math.floor(seconds)
  const [m, h, d] = [Math.floor(s / MINUTE), Math.floor(s / HOUR), Math.floor(s / DAY)]
  if (s < 2 * MINUTE) return `${s}s`
  if (m < 10) return two(m, 'm', s % MINUTE, 's')
  if (m < 180) return `${m}m`
  if (h < 8) return two(h, 'h', m % 60, 'm')
  if (h < 48) return `${h}h`
  if (h < 192) return two(d, 'd', h % 24, 'h')
  if (h < 24 * 365 * 2) return `${d}d`
  const y = Math.floor(s / YEAR)
  return h < 24 * 365 * 8 ? two(y, 'y', d % 365, 'd') : `${y}y`
}

/** How long ago a timestamp was, or `<unknown>`. */
export const age = (timestamp: string, nowMs: number): string => {
  const then = Date.parse(timestamp)
  return Number.isNaN(then) ? '<unknown>' : shortDuration((nowMs - then) / 1000)
}
