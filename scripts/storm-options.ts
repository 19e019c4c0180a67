import { parseArgs } from 'node:util'
import { FAMILIES, type Family } from '../src/storm/plan.ts'
import { stormKinds } from '../src/storm/operations.ts'

/** What `npm run storm` was asked for. */
export type StormOptions = {
  /** `all`, or the name of one. */
  readonly kind: string
  readonly families: readonly Family[] | undefined
  readonly controlPlanes: number | undefined
  readonly workers: number | undefined
  readonly from: number
  /** How many are played; Infinity where only the time bounds them. */
  readonly seeds: number
  readonly minutes: number | undefined
  /** The only one to play. */
  readonly seed: number | undefined
  readonly threads: number | undefined
  /** A file. */
  readonly plan: string | undefined
  readonly sabotage: string | undefined
  readonly replay: boolean
  readonly coverage: boolean
  readonly deaths: boolean
}

const SEEDS = 100

export const STORM_HELP = `Usage: npm run storm -- [options]

Plays whole runs of the controller in an invented cluster, each drawn from a seed, with trouble, on all cores. Ends with one line of counts; the
exit code is 1 when something was violated. A seed that fails tells its story, is made smaller, and is kept as a plan in .cache/storm/.

  --seeds N          how many seeds (default: ${SEEDS}, or as many as --minutes allow)
  --from S           the first of them (default: 1)
  --minutes M        end after so long
  --seed S           this one alone
  --kind K           ${['all', ...stormKinds].join(', ')} (default: all, in turns)
  --faults F,…       only these: ${FAMILIES.slice(0, 9).join(', ')},
                     ${FAMILIES.slice(9).join(', ')}
  --machines C+W     control planes and workers, instead of what the seed draws
  --workers N        threads (default: one for each core)
  --replay           the story of --seed S, or of --plan FILE, the same byte for byte each time
  --plan FILE        with --replay: a plan that was kept
  --deaths           lets the controller die once at each call that changes something, of every kind
  --sabotage NAME    with a line of the source spoiled (test/storm/sabotages/), until a checker finds something; the exit code is 1 then
  --coverage         tells which branches of core, kinds and engine no seed reached
  -h, --help
`

class Problem extends Error {}

/** The options, or one sentence of what is wrong with them. */
export const readStormOptions = (argv: readonly string[]): StormOptions | 'help' | { readonly problem: string } => {
  try {
    return read(argv)
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message }
    if ((error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS'))
      return { problem: (error as Error).message.replace(/\n.*/s, '').split('. To specify')[0]! }
    throw error
  }
}

const read = (argv: readonly string[]): StormOptions | 'help' => {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const { values } = parseArgs({
    args: [...argv],
    options: {
      ...{ seeds: text, from: text, seed: text, kind: text, faults: text, minutes: text, machines: text, workers: text },
      ...{ plan: text, sabotage: text },
      ...{ replay: flag, coverage: flag, deaths: flag, help: { ...flag, short: 'h' } },
    },
  })
  if (values.help) return 'help'
  const { kind = 'all', minutes } = values
  if (kind !== 'all' && !stormKinds.includes(kind)) throw new Problem(`--kind ${kind}: there are all, ${stormKinds.join(', ')}`)
  const [controlPlanes, workers] = machinesOf(values.machines)
  if (values.plan !== undefined && !values.replay) throw new Problem('--plan is played with --replay')
  if (values.replay && values.plan === undefined && values.seed === undefined) throw new Problem('--replay needs --seed S or --plan FILE')
  if (values.seed !== undefined && (values.seeds ?? values.from ?? minutes) !== undefined)
    throw new Problem('--seed is one alone: not together with --seeds, --from or --minutes')
  return {
    kind,
    families: values.faults?.split(',').map(familyOf),
    ...{ controlPlanes, workers },
    from: whole('from', values.from) ?? 1,
    seeds: whole('seeds', values.seeds, 1) ?? (minutes === undefined ? SEEDS : Infinity),
    minutes: positive('minutes', minutes),
    seed: whole('seed', values.seed),
    threads: whole('workers', values.workers, 1),
    ...{ plan: values.plan, sabotage: values.sabotage },
    ...{ replay: values.replay, coverage: values.coverage, deaths: values.deaths },
  }
}

const familyOf = (name: string): Family => {
  const found = FAMILIES.find(family => family === name)
  if (!found) throw new Problem(`--faults ${name}: there are ${FAMILIES.join(', ')}`)
  return found
}

const machinesOf = (text: string | undefined): readonly [number?, number?] => {
  if (text === undefined) return []
  const [, controlPlanes, workers] = /^([1-9])\+(\d{1,3})$/.exec(text) ?? []
  if (controlPlanes === undefined) throw new Problem(`--machines ${text}: must be control planes + workers, for example 3+3`)
  return [Number(controlPlanes), Number(workers)]
}

const whole = (name: string, text: string | undefined, least = 0): number | undefined => {
  if (text === undefined) return undefined
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value) || value < least) throw new Problem(`--${name} ${text}: must be a whole number from ${least}`)
  return value
}

const positive = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!(value > 0) || value === Infinity) throw new Problem(`--${name} ${text}: must be a number above 0`)
  return value
}
