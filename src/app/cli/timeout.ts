import { parseDuration } from '../../api/duration.ts'
import { Stop } from './stop.ts'

/** Milliseconds; ends the command where the text is no duration. */
export const timeoutOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  if (ms === undefined || ms === 0)
    throw new Stop('usage', `--timeout ${JSON.stringify(text)}: must be a duration such as 90s, 10m or 1h30m`)
  return ms
}
