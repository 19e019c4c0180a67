import { Cron } from 'croner'
import { parseDuration } from '../api/duration.ts'
import type { MaintenanceWindow } from '../api/talos-cluster.ts'

export type WindowState =
  | { readonly open: true }
  /** `opensAt` in milliseconds since 1970, absent where no window ever opens again; `problems` has a sentence for each window that cannot be read. */
  | { readonly open: false; readonly opensAt: number | undefined; readonly problems: readonly string[] }

type Schedule = { readonly cron: Cron; readonly durationMs: number }

/** Windows as they were read, and what was worked out last: it stays true from one moment to another. */
type Calendar = {
  readonly schedules: readonly Schedule[]
  readonly problems: readonly string[]
  last?: { readonly from: number; readonly until: number; readonly state: WindowState }
}

/** Each pass of each operation asks, and a calendar with time zones is slow to answer. */
const calendars = new WeakMap<readonly MaintenanceWindow[], Calendar>()

const calendarOf = (windows: readonly MaintenanceWindow[]): Calendar => {
  const known = calendars.get(windows)
  if (known) return known
  const read = windows.map(scheduleOf)
  const calendar = { schedules: read.filter(s => typeof s !== 'string'), problems: read.filter(s => typeof s === 'string') }
  calendars.set(windows, calendar)
  return calendar
}

/**
 * Whether something new may be begun at `nowMs`. No windows at all: always. A window opens when its cron expression says so, on the clocks of its
 * time zone: an opening within the hour that daylight saving skips comes at
 * the end of that hour, one that occurs twice counts once. A window that
 * cannot be read never opens, so that a typing error does not open everything.
 */
export const windowAt = (windows: readonly MaintenanceWindow[], nowMs: number): WindowState => {
  if (windows.length === 0) return { open: true }
  const calendar = calendarOf(windows)
  const { last } = calendar
  if (last && last.from <= nowMs && nowMs < last.until) return last.state
  const { state, until } = lookUp(calendar, nowMs)
  calendar.last = { from: nowMs, until, state }
  return state
}

const lookUp = ({ schedules, problems }: Calendar, nowMs: number): { readonly state: WindowState; readonly until: number } => {
  const end = endOfOpening(schedules, nowMs)
  if (end !== undefined) return { state: { open: true }, until: end }
  const openings = schedules.map(s => s.cron.nextRun(new Date(wholeSecond(nowMs)))?.getTime()).filter(t => t !== undefined)
  const opensAt = openings.length === 0 ? undefined : Math.min(...openings)
  return { state: { open: false, opensAt, problems }, until: opensAt ?? Infinity }
}

/** The latest end of the windows that are open at a moment; undefined where none is. A window is open from its start to just before its end. */
const endOfOpening = (schedules: readonly Schedule[], atMs: number): number | undefined => {
  const ends = schedules.flatMap(({ cron, durationMs }) => {
    // The start before the next second is the last one up to now: openings are on whole seconds.
    const start = cron.previousRuns(1, new Date(wholeSecond(atMs) + 1000))[0]?.getTime()
    return start !== undefined && start <= atMs && atMs < start + durationMs ? [start + durationMs] : []
  })
  return ends.length === 0 ? undefined : Math.max(...ends)
}

const wholeSecond = (ms: number): number => Math.floor(ms / 1000) * 1000

/** The schedule of a window, or what is wrong with it. */
const scheduleOf = (window: MaintenanceWindow, index: number): Schedule | string => {
  const where = `Maintenance window ${index + 1}`
  const durationMs = parseDuration(window.duration)
  if (durationMs === undefined || durationMs <= 0)
    return `${where}: ${JSON.stringify(window.duration)} is no duration that a window can be open for; write it like 4h or 1h30m.`
  if (!isTimeZone(window.timeZone)) return `${where}: ${JSON.stringify(window.timeZone)} is no IANA time zone; write it like Europe/Berlin.`
  const expression = JSON.stringify(window.schedule)
  if (window.schedule.trim().split(/\s+/).length !== 5)
    return `${where}: ${expression} is no cron expression of five fields (minute, hour, day of month, month, day of week), like 0 2 * * SAT.`
  try {
    // Paused, and without anything to run: it only answers questions about the calendar and starts no timer.
    return { cron: new Cron(window.schedule.trim(), { mode: '5-part', timezone: window.timeZone, paused: true }), durationMs }
  } catch (error) {
    const why = (error as Error).message.replace(/^CronPattern: /, '')
    return `${where}: ${expression} is no cron expression: ${why}.`
  }
}

const isTimeZone = (name: string): boolean => {
  try {
    return Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
