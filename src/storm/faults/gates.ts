import type { HealthGate } from '../../api/talos-cluster.ts'
import { change } from '../../world/objects.ts'
import { ICHOR } from '../../world/ports/home.ts'
import { TROUBLES, deleteStorage, drawGates, setUpStorage, tellStorage } from '../gates.ts'
import { createRandom } from '../../world/random.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'
import { CLUSTER, NAMESPACE } from '../story.ts'

/** What becomes of the objects that health gates look at, and of the gates. */

const SAYS = Object.keys(TROUBLES) as (keyof typeof TROUBLES)[]

export const gates: Trouble<Stage> = {
  family: 'gates',
  harmless: false,
  draw: ({ random, shape, horizonMs }) => ({
    family: 'gates',
    // Where there are none yet, somebody has to set them up first.
    what: random.pick([
      ...(shape.setting?.gates ? [...SAYS, 'is gone', 'may not be read', 'is not answered for'] : []),
      'the gates are others',
    ]),
    when: { at: random.between(0, horizonMs) },
    times: random.between(0, 2 ** 20),
    forMs: random.between(2000, 240_000),
  }),
  strike: (stage, { what, times = 0 }) => {
    const { world } = stage.story
    stage.note(what === 'the gates are others' ? what : `the storage system ${what}`)
    const refuse = (kind: 'forbidden' | 'unreachable') =>
      stage.disturb(({ name }) =>
        name === 'object' ? { do: 'fail', when: 'before', fault: { kind, message: `CephCluster: ${kind}` } } : undefined,
      )
    switch (what) {
      case 'is gone':
        deleteStorage(world)
        return () => setUpStorage(world)
      case 'may not be read':
        return refuse('forbidden')
      case 'is not answered for':
        return refuse('unreachable')
      case 'the gates are others': {
        setUpStorage(world)
        const write = (healthGates: readonly HealthGate[]): void =>
          void change(world.store, ICHOR.clusters, NAMESPACE, CLUSTER, now => ({
            ...now,
            spec: { ...(now['spec'] as object), healthGates },
          }))
        write(drawGates(createRandom(times)))
        // Whoever mistook something is told by the wait, and mends it.
        return () => write(stage.plan.shape.setting?.gates ?? [])
      }
      default: {
        const said = SAYS.find(says => says === what)
        if (said === undefined) throw new Error(`there is no trouble with gates like ${what}`)
        tellStorage(world, TROUBLES[said])
        return () => tellStorage(world)
      }
    }
  },
}
