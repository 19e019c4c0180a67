import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Refusal } from '../kind.ts'
import { refuse } from '../preflight.ts'
import type { World } from '../world.ts'
import { controlPlanesOf } from './target.ts'

/** The only API server is replaced, and nobody has accepted what follows from that. */
export const apiOutage = (operation: TalosOperation, world: World): readonly Refusal[] =>
  controlPlanesOf(world).length === 1 && !operation.spec.acknowledge.includes('api-outage')
    ? [
        refuse(
          'ApiOutage',
          'With one control plane the Kubernetes API is away while its API server is replaced, for about a minute. Accept that with `--acknowledge api-outage` (spec.acknowledge).',
        ),
      ]
    : []
