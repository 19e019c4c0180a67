import type { Clock } from '../../ports/clock.ts'
import type { Talos } from '../../ports/talos.ts'
import type { Calls } from './calls.ts'
import { resourceTypes } from './resource-types.ts'
import { watchResources } from './watch.ts'

/** As `Talos.watch`. A boot needs no watch of its own: no bookmark outlives it, so that what there is is told anew after each. */
export function watchMachine(calls: Calls, clock: Clock, address: string, told: Parameters<Talos['watch']>[1]): () => void {
  const over = new AbortController()
  const { signal } = over
  const changed = (): void => told('changed')
  void watchResources({ calls, clock, random: Math.random, address, of: resourceTypes.machineStatus, signal, told: changed }).then(() => {
    if (!signal.aborted) told('ended')
  })
  return () => over.abort()
}
