import type { Random } from '../world/random.ts'
import type { Draft, Shape } from './plan.ts'

type Draw = (random: Random, shape: Shape, to: string) => Draft['spec']

const envelope = (random: Random, shape: Shape): Readonly<Record<string, unknown>> => ({
  maxUnavailable: random.pick([1, 1, 1, 2, '50%']),
  // Some forget to.
  ...(shape.controlPlanes < 3 && random.chance(0.9) ? { acknowledge: ['api-outage'] } : {}),
  ...(random.chance(0.3) ? { minReadySeconds: random.between(1, 60) } : {}),
  drain: { policy: random.pick(['wait', 'wait', 'wait', 'force', 'skip']), timeout: random.pick(['2m', '5m', '10m']) },
  timeouts: { reboot: random.pick(['10m', '30m']) },
})

/** What an operation of each kind asks for. */
const draws: Readonly<Record<string, Draw>> = {
  talos: (random, shape, to) => ({
    kind: 'talos',
    ...envelope(random, shape),
    talos: { version: to, ...(random.chance(0.2) ? { rebootMode: 'powercycle' } : {}) },
  }),
}

/** The kinds that storms know how to ask for. */
export const stormKinds: readonly string[] = Object.keys(draws)

export const drawOperation: (random: Random, kind: string, shape: Shape, to: string) => Draft['spec'] = (random, kind, shape, to) => {
  const draw = draws[kind]
  if (!draw) throw new Error(`storms do not know the kind ${kind} (they know: ${stormKinds.join(', ')})`)
  return draw(random, shape, to)
}
