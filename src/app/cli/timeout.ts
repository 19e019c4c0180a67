import { parseDuration } from '../../api/duration.ts'
import { Stop } from './stop.ts'

/** Milliseconds, of a command that waits only where it is told to; ends the command where it is not, or the text is no duration. */
export const timeoutOfWait = ({ wait, timeout }: { readonly wait?: boolean; readonly timeout?: string }): number | undefined => {
  if (timeout !== undefined && !wait) throw new Stop('usage', '--timeout says how long --wait may take: add --wait. Nothing was done.')
  return timeoutOf(timeout)
}

/** Milliseconds; ends the command where the text is no duration. */
export const timeoutOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  if (ms === undefined || ms === 0)
    throw new Stop('usage', `--timeout ${JSON.stringify(text)}: must be a duration such as 90s, 10m or 1h30m`)
  return ms
}
