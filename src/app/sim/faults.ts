import type { World } from '../../world/cluster.ts'
import { Problem } from '../demo/option-values.ts'

/** What one line does to the simulated machines. */
export type SimFault = (world: World) => void

type Word = {
  /** As the help shows it. */
  readonly usage: string
  readonly means: string
  readonly takes?: 'number' | 'addresses' | 'image'
  readonly apply: (world: World, machine: string, value: string) => void
}

const listed = (value: string): string[] => value.split(',')

const WORDS: Readonly<Record<string, Word>> = {
  off: { usage: 'off', means: 'loses its power', apply: (world, machine) => world.powerOff(machine) },
  on: { usage: 'on', means: 'is switched on again', apply: (world, machine) => world.powerOn(machine) },
  cut: { usage: 'cut', means: 'is cut off the network, both ways', apply: (world, machine) => world.blackHole(machine, true) },
  heal: { usage: 'heal', means: 'is on the network again', apply: (world, machine) => world.blackHole(machine, false) },
  slow: {
    ...{ usage: 'slow MS', means: 'answers so much later; 0 mends', takes: 'number' },
    apply: (world, machine, value) => world.fault(machine, { slowMs: Number(value) }),
  },
  bandwidth: {
    ...{ usage: 'bandwidth BYTES', means: 'takes and gives no more a second; 0 mends', takes: 'number' },
    apply: (world, machine, value) => world.fault(machine, { bytesPerSecond: Number(value) || undefined }),
  },
  full: { usage: 'full', means: 'has no room for images', apply: (world, machine) => world.fault(machine, { diskFull: true }) },
  free: {
    ...{ usage: 'free', means: 'has room again, for images and kernels' },
    apply: (world, machine) => world.fault(machine, { diskFull: false, bootPartitionFull: false }),
  },
  'boot-full': {
    ...{ usage: 'boot-full', means: 'has no room for another kernel' },
    apply: (world, machine) => world.fault(machine, { bootPartitionFull: true }),
  },
  clock: {
    ...{ usage: 'clock SECONDS', means: 'has a clock that is ahead, or behind with a minus; 0 mends', takes: 'number' },
    apply: (world, machine, value) => world.setClock(machine, Number(value) * 1000),
  },
  'no-time': {
    ...{ usage: 'no-time', means: 'finds no time server, and waits for one after its next boot' },
    apply: (world, machine) => world.fault(machine, { timeNeverSyncs: true }),
  },
  time: { usage: 'time', means: 'finds one again', apply: (world, machine) => world.fault(machine, { timeNeverSyncs: false }) },
  address: {
    ...{ usage: 'address A[,B]', means: 'has these addresses from now on, of 127.0.0.0/8', takes: 'addresses' },
    apply: (world, machine, value) => world.readdress(machine, listed(value)),
  },
  'next-address': {
    ...{ usage: 'next-address A[,B]', means: 'comes back with these from its next boot', takes: 'addresses' },
    apply: (world, machine, value) => world.readdress(machine, listed(value), 'next boot'),
  },
  'no-image': {
    ...{ usage: 'no-image IMAGE', means: 'and all others find no such image in any registry; the end of a name will do', takes: 'image' },
    apply: (world, _, value) => world.registry.remove(value),
  },
  image: {
    ...{ usage: 'image IMAGE', means: 'and all others find it again', takes: 'image' },
    apply: (world, _, value) => world.registry.restore(value),
  },
  'fill-etcd': { usage: 'fill-etcd', means: 'and all other members have etcd at its quota', apply: world => world.etcd.fill() },
}

const VALUES: Readonly<Record<NonNullable<Word['takes']>, RegExp>> = {
  number: /^[-+]?\d+$/,
  addresses: /^127(?:\.\d{1,3}){3}(?:,127(?:\.\d{1,3}){3})*$/,
  image: /./,
}

/** Reads one, such as `wk-1 slow 500`. Throws a Problem that names what is possible. */
export const readFault = (line: string): SimFault => {
  const [machine = '', name = '', value, ...more] = line.trim().split(/\s+/)
  const word = WORDS[name]
  if (!word || more.length > 0)
    throw new Problem(
      `${JSON.stringify(line)} is no fault: write a machine and one of ${Object.values(WORDS)
        .map(({ usage }) => usage)
        .join(', ')}`,
    )
  const isRight = word.takes === undefined ? value === undefined : VALUES[word.takes].test(value ?? '')
  if (!isRight || (name !== 'clock' && value?.startsWith('-')))
    throw new Problem(`${JSON.stringify(line)} is no fault: write ${machine} ${word.usage}`)
  return world => {
    if (!world.machines.some(one => one.name === machine))
      throw new Problem(`there is no machine ${machine}; there are ${world.machines.map(one => one.name).join(', ')}`)
    word.apply(world, machine, value ?? '')
  }
}

const width = Math.max(...Object.values(WORDS).map(({ usage }) => usage.length))

export const FAULTS_HELP = Object.values(WORDS)
  .map(({ usage, means }) => `  ${usage.padEnd(width)}  ${means}\n`)
  .join('')
