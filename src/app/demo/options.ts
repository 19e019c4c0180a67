import { parseArgs } from 'node:util'
import { Problem, machinesOf, numberOf, orProblem } from './option-values.ts'
import { versionPair } from './version-pairs.ts'

export type ScenarioName = keyof typeof SCENARIOS

export type DemoOptions = {
  readonly controlPlanes: number
  readonly workers: number
  /** Talos versions with `v`. */
  readonly from: string
  readonly to: string
  /** How much faster than real machines everything is. */
  readonly speed: number
  readonly scenario: ScenarioName
  readonly realApiServer: boolean
  /** Ends with an exit code instead of running on. */
  readonly once: boolean
  readonly seed: number
}

export const SCENARIOS = {
  happy: 'an upgrade that goes well',
  'image-not-found': 'no registry has the installer image; it is brought there, and the operation goes on',
  'controller-killed': 'kill -9 of the controller in the middle of an upgrade, and a new one',
  'pdb-blocks': 'a budget holds a drain up; the operation stops, the budget gives way, and it goes on',
  'etcd-unhealthy': 'a member of etcd falls ill; the upgrade waits until it is mended (three control planes or more)',
  'boots-old-version': 'the new Talos does not start on one machine, which falls back; it is tried again',
  'two-operations': 'a reboot is asked for while an upgrade works; it waits for its turn',
  'leader-paused': 'the leading controller is stopped (SIGSTOP), another takes over, and the first one wakes',
} as const satisfies Readonly<Record<string, string>>

/** Three control planes and three workers then take about a minute and a half. */
const DEFAULT_SPEED = 20
const DEFAULT_TO = 'v1.13.9'
const DEFAULT_FROM = 'v1.13.5'

export const DEMO_HELP = `Usage: npm run demo -- [options]      (or: ichor demo [options])

Runs a whole simulated Talos cluster on this machine, upgrades it, and keeps it running for you to look at: with ichor, kubectl and talosctl.
Ctrl-C ends it and leaves nothing behind.

  --machines C+W     control planes and workers (default: 3+3; for example 1+0 or 5+20)
  --from VERSION     the Talos version that runs (default: ${DEFAULT_FROM}, or the release before --to)
  --to VERSION       the Talos version to upgrade to (default: ${DEFAULT_TO})
  --scenario NAME    ${Object.entries(SCENARIOS)
    .map(([name, about]) => `${name.padEnd(19)}${about}`)
    .join('\n                     ')}
  --speed N          N times as fast as real machines, 1 to 1000 (default: ${DEFAULT_SPEED})
  --kube-apiserver   a real kube-apiserver with a real etcd instead of the simulated Kubernetes API (built once; needs Go)
  --once             end when the upgrade has ended: exit code 0 if it went as the scenario says, else 1
  --seed N           another roll of the dice for how long things take (default: 1)
  -h, --help
`

export type ReadOptions =
  | { readonly ok: true; readonly options: DemoOptions | 'help' }
  /** One sentence. */
  | { readonly ok: false; readonly problem: string }

/** What the command line says, or one sentence of what is wrong with it. */
export const readOptions = (argv: readonly string[]): ReadOptions => {
  const options = orProblem(() => read(argv))
  return options instanceof Problem ? { ok: false, problem: options.message } : { ok: true, options }
}

/** What a scenario cannot do without, where these machines do not have it. */
const lackOf = (scenario: string, { controlPlanes, workers }: Pick<DemoOptions, 'controlPlanes' | 'workers'>): string | undefined => {
  if (scenario === 'etcd-unhealthy' && controlPlanes < 3) return 'needs a member of etcd to spare, so at least 3+0'
  if (scenario === 'pdb-blocks' && controlPlanes + workers < 2)
    return 'needs another machine that pods could go to, or nothing is drained; so at least 1+1'
  return undefined
}

const read = (argv: readonly string[]): DemoOptions | 'help' => {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      machines: { type: 'string', default: '3+3' },
      from: { type: 'string' },
      to: { type: 'string' },
      scenario: { type: 'string', default: 'happy' },
      speed: { type: 'string', default: String(DEFAULT_SPEED) },
      'kube-apiserver': { type: 'boolean', default: false },
      once: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  if (!Object.hasOwn(SCENARIOS, values.scenario))
    throw new Problem(`--scenario ${values.scenario}: there are ${Object.keys(SCENARIOS).join(', ')}`)
  const machines = machinesOf(values.machines)
  const lacks = lackOf(values.scenario, machines)
  if (lacks) throw new Problem(`--scenario ${values.scenario} --machines ${values.machines}: ${lacks}`)
  return {
    ...machines,
    ...versionPair(values, { from: DEFAULT_FROM, to: DEFAULT_TO }),
    scenario: values.scenario as ScenarioName,
    speed: numberOf('--speed', values.speed, 1, 1000),
    realApiServer: values['kube-apiserver'],
    once: values.once,
    seed: numberOf('--seed', values.seed, 0, Number.MAX_SAFE_INTEGER),
  }
}
