import { parseArgs } from 'node:util'
import type { SimFault } from './faults.ts'
import { FAULTS_HELP, readFault } from './faults.ts'
import { Problem, machinesOf, numberOf, orProblem, release } from '../demo/option-values.ts'

export type SimOptions = {
  readonly controlPlanes: number
  readonly workers: number
  /** Talos version with `v`. */
  readonly version: string
  /** How much faster than real machines everything is. */
  readonly speed: number
  readonly seed: number
  /** Size of the etcd database, and so of a snapshot; undefined: some tens of MiB. */
  readonly etcdBytes: number | undefined
  /** What is wrong with machines from the start. */
  readonly faults: readonly SimFault[]
  /** More of that comes by standard input, one a line. */
  readonly readsFaults: boolean
  /** Says nothing of what happens on the machines. */
  readonly isQuiet: boolean
}

const DEFAULT_VERSION = 'v1.13.9'
const MiB = 1024 ** 2

export const SIM_HELP = `Usage: ichor sim talos [options]

Runs simulated Talos machines on loopback addresses, alone: for trying tools that talk to the Talos API. Every machine listens on an address of its
own, port 50000, and behaves as its Talos version does. Their Kubernetes API is simulated, too. Ctrl-C ends them and leaves nothing behind.

  --machines C+W     control planes and workers (default: 3+3; for example 1+0 or 5+20)
  --version VERSION  the Talos version that runs (default: ${DEFAULT_VERSION})
  --speed N          N times as fast as real machines, 1 to 1000 (default: 1)
  --etcd-size MIB    size of the etcd database in MiB, and so of a snapshot (default: some tens)
  --fault FAULT      what is wrong with a machine, such as 'wk-1 slow 500' (see below; may be given more than once)
  --stdin            read more faults from standard input, one a line, while the machines run
  --quiet            do not say what happens on the machines
  --seed N           another roll of the dice for how long things take (default: 1)
  -h, --help

Faults, each after the name of a machine:

${FAULTS_HELP}`

export type ReadSimOptions =
  | { readonly ok: true; readonly options: SimOptions | 'help' }
  /** One sentence. */
  | { readonly ok: false; readonly problem: string }

export const readSimOptions = (argv: readonly string[]): ReadSimOptions => {
  const options = orProblem(() => read(argv))
  return options instanceof Problem ? { ok: false, problem: options.message } : { ok: true, options }
}

const read = (argv: readonly string[]): SimOptions | 'help' => {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      machines: { type: 'string', default: '3+3' },
      version: { type: 'string', default: DEFAULT_VERSION },
      speed: { type: 'string', default: '1' },
      'etcd-size': { type: 'string' },
      fault: { type: 'string', multiple: true, default: [] },
      stdin: { type: 'boolean', default: false },
      quiet: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  const [what, ...more] = positionals
  if (what !== 'talos')
    throw new Problem(
      what === undefined ? 'what shall be simulated? There is: talos' : `there is no simulation of ${what}; there is: talos`,
    )
  if (more.length > 0) throw new Problem(`unexpected argument ${more[0]}`)
  const size = values['etcd-size']
  return {
    ...machinesOf(values.machines),
    version: release('--version', values.version),
    speed: numberOf('--speed', values.speed, 1, 1000),
    seed: numberOf('--seed', values.seed, 0, Number.MAX_SAFE_INTEGER),
    etcdBytes: size === undefined ? undefined : numberOf('--etcd-size', size, 0, 8192) * MiB,
    faults: values.fault.map(readFault),
    readsFaults: values.stdin,
    isQuiet: values.quiet,
  }
}
