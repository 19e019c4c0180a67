import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer } from '../../world/answer.ts'
import { clockOf } from '../../world/certificates.ts'
import type { Machine } from '../../world/machine.ts'
import type { Site } from '../../world/site.ts'
import { unary } from '../dispatch.ts'
import { cpuSecondsOf, memoryOf, runningOn } from './running.ts'
import { share, swing } from './steady.ts'

const methods = MachineService.method

/** What every machine of the world is made of. */
export const CORES = 4
const MEMORY_KIB = 8 * 1024 * 1024
/** Taken by the kernel before anything runs. */
const KERNEL_KIB = 160 * 1024

const uptimeSeconds = (site: Site, machine: Machine): number => Math.max(0, (site.schedule.now() - machine.bootedAt) / 1000)

const whole = (value: number): bigint => BigInt(Math.round(value))

/** In KiB, as the kernel tells it; what processes hold is the sum of what each says of itself. */
export const memoryOn = (site: Site, machine: Machine) => {
  const now = site.schedule.now()
  const held = runningOn(site, machine).processes.reduce((sum, process) => sum + memoryOf(process, now) / 1024, 0)
  // What was read from disks stays in memory, more and more of it.
  const cached = Math.min(MEMORY_KIB / 3, (300 + uptimeSeconds(site, machine) / 20) * 1024)
  const buffers = 4 * 1024
  const free = MEMORY_KIB - KERNEL_KIB - held - cached - buffers
  const slab = 90 * 1024
  return {
    ...{ total: MEMORY_KIB, free, available: free + cached * 0.9, buffers, cached, held },
    ...{ active: held * 0.8 + cached * 0.4, inactive: held * 0.2 + cached * 0.6, slab, reclaimable: slab / 2, mapped: held / 3 },
  }
}

const memory = (site: Site, machine: Machine) => {
  const m = memoryOn(site, machine)
  return {
    ...{
      memtotal: whole(m.total),
      memfree: whole(m.free),
      memavailable: whole(m.available),
      buffers: whole(m.buffers),
      cached: whole(m.cached),
    },
    ...{ active: whole(m.active), inactive: whole(m.inactive), anonpages: whole(m.held), mapped: whole(m.mapped) },
    ...{ slab: whole(m.slab), sreclaimable: whole(m.reclaimable), sunreclaim: whole(m.slab - m.reclaimable), shmem: 6144n },
    ...{ kernelstack: 9600n, pagetables: whole(m.held / 80), committedas: whole(m.held * 2), commitlimit: whole(m.total / 2) },
    ...{
      vmalloctotal: 34_359_738_367n,
      vmallocused: 21_000n,
      hugepagesize: 2048n,
      directmap4k: 180_000n,
      directmap2m: whole(m.total - 180_000),
    },
  }
}

/** Cores that are busy, on average of the moment. */
export const loadOf = (site: Site, machine: Machine): number => {
  const busy = runningOn(site, machine).processes.reduce((sum, { cores }) => sum + cores, 0)
  return busy * swing(site.schedule.now(), machine.uuid, 'load')
}

/** Seconds since the boot that a core has spent, by what on. */
const coreTimes = (site: Site, machine: Machine, core: number) => {
  const now = site.schedule.now()
  const busy = runningOn(site, machine).processes.reduce((sum, process) => sum + cpuSecondsOf(process, now), 0) / CORES
  const own = busy * (0.9 + 0.2 * share(machine.uuid, 'core', core))
  const [user, system, iowait, softIrq] = [own * 0.6, own * 0.3, own * 0.05, own * 0.05]
  return {
    user,
    nice: 0,
    system,
    iowait,
    irq: 0,
    softIrq,
    steal: 0,
    guest: 0,
    guestNice: 0,
    idle: Math.max(0, uptimeSeconds(site, machine) - own),
  }
}

type Times = ReturnType<typeof coreTimes>

const sum = (times: readonly Times[]): Times =>
  times.reduce((a, b) => Object.fromEntries(Object.entries(a).map(([key, value]) => [key, value + b[key as keyof Times]])) as Times)

const systemStat = (site: Site, machine: Machine) => {
  const cpu = Array.from({ length: CORES }, (_, core) => coreTimes(site, machine, core))
  const uptime = uptimeSeconds(site, machine)
  const { processes } = runningOn(site, machine)
  const interrupts = whole(uptime * 900)
  return {
    ...{ bootTime: BigInt(Math.floor(clockOf(site, machine) / 1000 - uptime)), cpuTotal: sum(cpu), cpu },
    ...{ irqTotal: interrupts, irq: [], contextSwitches: whole(uptime * 2600), processCreated: whole(processes.length * 3 + uptime * 0.7) },
    ...{
      processRunning: 1n,
      processBlocked: 0n,
      softIrqTotal: interrupts / 2n,
      softIrq: { timer: interrupts / 4n, sched: interrupts / 8n, rcu: interrupts / 8n },
    },
  }
}

const MODEL = 'Simulated processor'
const MHZ = 2400

const cpuInfo = Array.from({ length: CORES }, (_, core) => ({
  ...{
    processor: core,
    vendorId: 'Simulated',
    cpuFamily: '6',
    model: '1',
    modelName: MODEL,
    stepping: '1',
    cpuMhz: MHZ,
    cacheSize: '4096 KB',
  },
  ...{
    physicalId: '0',
    siblings: CORES,
    coreId: String(core),
    cpuCores: CORES,
    apicId: String(core),
    initialApicId: String(core),
    fpu: 'yes',
  },
  ...{
    fpuException: 'yes',
    cpuIdLevel: 13,
    wp: 'yes',
    flags: ['fpu', 'sse2', 'aes', 'avx2'],
    bogoMips: MHZ * 2,
    clFlushSize: 64,
    cacheAlignment: 64,
  },
}))

const SECTOR = 512
/** Bytes in a second that a machine writes to the disk that it is installed on, and reads from it. */
const DISK = { writes: 60_000, reads: 8000 } as const

type DiskStat = {
  [
    key in
      | 'readCompleted'
      | 'readSectors'
      | 'readTimeMs'
      | 'writeCompleted'
      | 'writeSectors'
      | 'writeTimeMs'
      | 'ioTimeMs'
      | 'ioTimeWeightedMs'
  ]: bigint
}

/** By name of the device. A container sees those of its host, which are not the world's. */
export const diskStatsOf = (site: Site, machine: Machine): ReadonlyMap<string, DiskStat> => {
  const uptime = uptimeSeconds(site, machine)
  return new Map(
    machine.disks.map(({ path, system }) => {
      const rate = 0.8 + 0.4 * share(machine.uuid, path)
      const read = system ? 250 * 1024 ** 2 + uptime * DISK.reads * rate : 40 * 1024
      const written = system ? uptime * DISK.writes * rate : 0
      const [reads, writes] = [read / 32_768, written / 12_288]
      const stat: DiskStat = {
        ...{ readCompleted: whole(reads), readSectors: whole(read / SECTOR), readTimeMs: whole(reads * 0.4) },
        ...{ writeCompleted: whole(writes), writeSectors: whole(written / SECTOR), writeTimeMs: whole(writes * 1.2) },
        ...{ ioTimeMs: whole(reads * 0.3 + writes), ioTimeWeightedMs: whole(reads * 0.4 + writes * 1.2) },
      }
      return [path.slice('/dev/'.length), stat]
    }),
  )
}

const total = <T extends Record<string, bigint>>(stats: readonly T[]): Partial<Record<keyof T, bigint>> => {
  const all: Partial<Record<keyof T, bigint>> = {}
  for (const stat of stats) for (const [key, value] of Object.entries(stat)) all[key as keyof T] = (all[key as keyof T] ?? 0n) + value
  return all
}

/** Network devices of every machine. */
export const INTERFACES: readonly string[] = ['lo', 'eth0']

const networkStatsOf = (site: Site, machine: Machine) => {
  const uptime = uptimeSeconds(site, machine)
  const device = (name: string, received: number, sent: number) => ({
    name,
    counts: { rxBytes: whole(received), rxPackets: whole(received / 700), txBytes: whole(sent), txPackets: whole(sent / 700) },
  })
  const busy = machine.role === 'controlplane' ? 50_000 : 12_000
  const loop = uptime * busy * 1.5
  return [
    device('lo', loop, loop),
    device('eth0', uptime * busy * (0.9 + 0.2 * share(machine.uuid, 'rx')), uptime * busy * (0.9 + 0.2 * share(machine.uuid, 'tx'))),
  ]
}

/** What the kernel counts. All of it is made of what runs on the machine and of the time since its boot: asked twice at one moment, it is the same. */
export const counterMethods = {
  memory: unary(methods.memory, ({ site, machine }) => answer({ messages: [{ meminfo: memory(site, machine) }] })),
  loadAvg: unary(methods.loadAvg, ({ site, machine }) => {
    const load = loadOf(site, machine)
    return answer({ messages: [{ load1: load, load5: load * 0.97, load15: load * 0.95 }] })
  }),
  systemStat: unary(methods.systemStat, ({ site, machine }) => answer({ messages: [systemStat(site, machine)] })),
  cPUInfo: unary(methods.cPUInfo, () => answer({ messages: [{ cpuInfo }] })),
  // Virtual machines have no governor: the kernel knows no frequencies, and Talos says so with empty entries, of which such a machine has none.
  cPUFreqStats: unary(methods.cPUFreqStats, () => answer({ messages: [{ cpuFreqStats: [] }] })),
  diskStats: unary(methods.diskStats, ({ site, machine }) => {
    const stats = diskStatsOf(site, machine)
    return answer({ messages: [{ total: total([...stats.values()]), devices: [...stats].map(([name, stat]) => ({ name, ...stat })) }] })
  }),
  networkDeviceStats: unary(methods.networkDeviceStats, ({ site, machine }) => {
    const devices = networkStatsOf(site, machine)
    return answer({
      messages: [
        {
          total: { ...total(devices.map(({ counts }) => counts)), name: 'Total' },
          devices: devices.map(({ name, counts }) => ({ name, ...counts })),
        },
      ],
    })
  }),
  processes: unary(methods.processes, ({ site, machine }) => {
    const now = site.schedule.now()
    const processes = runningOn(site, machine).processes.map(process => ({
      ...{ pid: process.pid, ppid: process.ppid, state: 'S', threads: process.threads, cpuTime: cpuSecondsOf(process, now) },
      ...{ virtualMemory: BigInt(memoryOf(process, now)) * 12n, residentMemory: BigInt(memoryOf(process, now)) },
      // The kernel keeps fifteen characters of a name.
      ...{ command: process.executable.slice(process.executable.lastIndexOf('/') + 1).slice(0, 15) },
      ...{ executable: process.executable, args: process.args },
    }))
    return answer({ messages: [{ processes }] })
  }),
}
