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

const drawNode: Draw = (random, shape) => {
  const isMember = random.chance(0.6) || shape.workers === 0
  const machine = isMember ? `cp-${random.between(1, shape.controlPlanes)}` : `wk-${random.between(1, shape.workers)}`
  const etcdActions = isMember ? ['etcd-defrag', ...(shape.controlPlanes > 1 ? ['forfeit-leadership'] : [])] : []
  const action = random.pick(['reboot', 'reboot', 'shutdown', 'restart-service', 'reset', ...etcdActions])
  return {
    kind: 'node',
    ...envelope(random, shape),
    node: {
      machine,
      action,
      ...(action === 'reboot' && random.chance(0.3) ? { mode: 'powercycle' } : {}),
      ...(action === 'restart-service' ? { service: 'kubelet' } : {}),
      ...(action === 'reset' ? { rebootAfter: random.chance(0.5), wipe: random.pick(['state', 'disk']) } : {}),
    },
  }
}

/** What an operation of each kind asks for. */
const draws: Readonly<Record<string, Draw>> = {
  talos: (random, shape, to) => ({
    kind: 'talos',
    ...envelope(random, shape),
    talos: { version: to, ...(random.chance(0.2) ? { rebootMode: 'powercycle' } : {}) },
  }),
  node: drawNode,
}

/** The kinds that storms know how to ask for. */
export const stormKinds: readonly string[] = Object.keys(draws)

export const drawOperation: (random: Random, kind: string, shape: Shape, to: string) => Draft['spec'] = (random, kind, shape, to) => {
  const draw = draws[kind]
  if (!draw) throw new Error(`storms do not know the kind ${kind} (they know: ${stormKinds.join(', ')})`)
  return draw(random, shape, to)
}
