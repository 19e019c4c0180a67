import { diskStatsOf } from './counters.ts'
import type { Machine } from '../../world/machine.ts'
import type { Site } from '../../world/site.ts'
import { CORES } from './counters.ts'
import { cpuSecondsOf, memoryOf, type Process } from './running.ts'
import { share } from './steady.ts'

const MiB = 1024 ** 2

type Limits = { readonly millicores?: number; readonly reservedMiB?: number; readonly maxMiB?: number }

/** What Talos grants its own groups, from its constants. */
const LIMITS: Readonly<Record<string, Limits>> = {
  init: { millicores: 2000, reservedMiB: 96 },
  system: { millicores: 1500, reservedMiB: 96 },
  'system/runtime': { millicores: 500, reservedMiB: 48 },
  'system/apid': { millicores: 500, reservedMiB: 16, maxMiB: 128 },
  'system/trustd': { millicores: 250, reservedMiB: 8, maxMiB: 128 },
  'system/udevd': { millicores: 250, reservedMiB: 8 },
  'system/dashboard': { millicores: 200, maxMiB: 196 },
  podruntime: { millicores: 4000 },
  'podruntime/runtime': { millicores: 1000, reservedMiB: 196 },
  'podruntime/etcd': { millicores: 2000, reservedMiB: 256 },
  'podruntime/kubelet': { millicores: 1000, reservedMiB: 96 },
}

/** From cgroup v1's shares to v2's weights, as container runtimes do. */
const weightOf = (millicores: number): number => {
  const shares = Math.max(2, (millicores * 1024) / 1000)
  return Math.floor(1 + ((shares - 2) * 9999) / 262_142)
}

/** Numbers of block devices by name, as the kernel gives them out. */
export const deviceNumber = (name: string): string =>
  name.startsWith('sr') ? `11:${Number(name.slice(2))}` : `8:${(name.codePointAt(2)! - 'a'.codePointAt(0)!) * 16}`

const pressure = (seed: string, micros: number): string => {
  const some = Math.round(micros * (0.01 + 0.01 * share(seed)))
  return `some avg10=0.00 avg60=0.00 avg300=0.00 total=${some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=${Math.round(some * 0.7)}\n`
}

/** Contents by name of the file. */
const filesOf = (site: Site, machine: Machine, group: string, inside: readonly Process[]): Readonly<Record<string, string>> => {
  const now = site.schedule.now()
  const own = inside.filter(({ cgroup }) => cgroup === group)
  const sum = (value: (process: Process) => number): number => Math.round(inside.reduce((all, process) => all + value(process), 0))
  const micros = sum(process => cpuSecondsOf(process, now) * 1e6)
  const bytes = sum(process => memoryOf(process, now))
  const threads = sum(process => process.threads)
  const { millicores = 100, reservedMiB = 0, maxMiB } = LIMITS[group] ?? {}
  // What is written is shared out as time on the processors is.
  const all = Math.max(1, machine.bootedAt > 0 ? ((now - machine.bootedAt) / 1000) * CORES * 1e6 : 1)
  const io = [...diskStatsOf(site, machine)]
    .filter(([, { writeSectors }]) => writeSectors > 0n)
    .map(([name, stat]) => {
      const part = Math.min(1, (micros / all) * 4)
      const of = (value: bigint, unit = 1): number => Math.round(Number(value) * part * unit)
      return `${deviceNumber(name)} rbytes=${of(stat.readSectors, 512)} wbytes=${of(stat.writeSectors, 512)} rios=${of(stat.readCompleted)} wios=${of(stat.writeCompleted)} dbytes=0 dios=0\n`
    })
  const cpuSet = `0-${CORES - 1}\n`
  const common = {
    'cgroup.controllers': 'cpuset cpu io memory pids\n',
    'cgroup.procs': own.map(({ pid }) => `${pid}\n`).join(''),
    'cgroup.threads': own.flatMap(({ pid, threads: many }) => Array.from({ length: many }, (_, at) => `${pid + at}\n`)).join(''),
    'cpu.pressure': pressure(`${machine.uuid} cpu`, micros),
    'cpu.stat': `usage_usec ${micros}\nuser_usec ${Math.round(micros * 0.65)}\nsystem_usec ${micros - Math.round(micros * 0.65)}\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n`,
    'cpuset.cpus.effective': cpuSet,
    'cpuset.mems.effective': '0\n',
    'io.pressure': pressure(`${machine.uuid} io`, micros / 4),
    'io.stat': io.join(''),
    'memory.pressure': pressure(`${machine.uuid} memory`, 0),
  }
  // The kernel measures and limits nothing at the root.
  if (group === '') return common
  return {
    ...common,
    'cgroup.events': `populated ${inside.length > 0 ? 1 : 0}\nfrozen 0\n`,
    'cgroup.freeze': '0\n',
    'cpu.idle': '0\n',
    'cpu.max': 'max 100000\n',
    'cpu.weight': `${weightOf(millicores)}\n`,
    'cpu.weight.nice': '0\n',
    'cpuset.cpus': '\n',
    'cpuset.mems': '\n',
    'memory.current': `${bytes}\n`,
    'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n',
    'memory.high': 'max\n',
    'memory.low': `${reservedMiB * 2 * MiB}\n`,
    'memory.max': maxMiB === undefined ? 'max\n' : `${maxMiB * MiB}\n`,
    'memory.min': `${reservedMiB * MiB}\n`,
    'memory.oom.group': '0\n',
    'memory.peak': `${Math.round(bytes * 1.15)}\n`,
    'memory.stat': `anon ${Math.round(bytes * 0.8)}\nfile ${Math.round(bytes * 0.15)}\nkernel ${Math.round(bytes * 0.05)}\n`,
    'memory.swap.current': '0\n',
    'memory.swap.high': 'max\n',
    'memory.swap.max': 'max\n',
    'memory.swap.peak': '0\n',
    'pids.current': `${threads}\n`,
    'pids.max': 'max\n',
    'pids.peak': `${threads + 4}\n`,
  }
}

/** Groups that are there with or without somebody in them. */
const KEPT: readonly string[] = ['', 'init', 'system', 'podruntime', 'kubepods', 'kubepods/besteffort', 'kubepods/burstable']

/** What is below /sys/fs/cgroup: content by path, made of what runs in each group and those below it. */
export const cgroupFiles = (site: Site, machine: Machine, processes: readonly Process[]): ReadonlyMap<string, string> => {
  const groups = new Set(KEPT)
  for (const { cgroup } of processes) {
    const parts = cgroup.split('/')
    for (let depth = 1; depth <= parts.length; depth++) groups.add(parts.slice(0, depth).join('/'))
  }
  const files = new Map<string, string>()
  for (const group of groups) {
    const inside = processes.filter(({ cgroup }) => group === '' || cgroup === group || cgroup.startsWith(`${group}/`))
    for (const [name, content] of Object.entries(filesOf(site, machine, group, inside)))
      files.set(group === '' ? name : `${group}/${name}`, content)
  }
  return files
}
