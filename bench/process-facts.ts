import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** Kilobytes that a process holds in memory: `VmRSS` now, `VmHWM` at the most so far. */
export const memoryOf = (pid: number, field: 'VmRSS' | 'VmHWM'): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)

/** How much of one core a process takes over a while, 0 to the number of cores. */
export const loadOf = async (pid: number, ms: number): Promise<number> => {
  const [before, began] = [ticksOf(pid), performance.now()]
  await pause(ms)
  return (((ticksOf(pid) - before) / TICKS_PER_SECOND) * 1000) / (performance.now() - began)
}

/** The kernel's unit in /proc is fixed, whatever its own clock does. */
const TICKS_PER_SECOND = 100

const ticksOf = (pid: number): number => {
  // What comes before is the name, which may have spaces and brackets in it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return Number(fields[11]) + Number(fields[12])
}

const ESTABLISHED = '01'

/** TCP connections of a process that are open to a port of others. */
export const connectionsOf = (pid: number, port: number): number => {
  const own = new Set<string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? []
      if (inode !== undefined) own.add(inode)
    } catch {
      // It was closed meanwhile.
    }
  }
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  return ['tcp', 'tcp6']
    .flatMap(table => readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n'))
    .map(line => line.trim().split(/\s+/))
    .filter(([, , remote = '', state, , , , , , inode = '']) => state === ESTABLISHED && remote.endsWith(`:${hex}`) && own.has(inode))
    .length
}
