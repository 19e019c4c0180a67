import type { Known } from './preflight.ts'
import type { World } from './world.ts'
import { configurationFacts } from './world.ts'

/** Machines on whose disk another configuration is than the one that runs, and why. */
export const pendingOn = (world: World, known: readonly Known[]): readonly (Known & { readonly pending: 'staged' | 'trial' })[] =>
  known.flatMap(k => {
    const configuration = configurationFacts(world, k.machine.metadata.name)
    const pending = configuration.ok ? configuration.value.pending : undefined
    return pending ? [{ ...k, pending }] : []
  })

const TOLD = {
  staged: 'A configuration is staged on NAMES, which the reboot takes into effect.',
  trial: 'A configuration is on trial on NAMES, which the reboot ends: the one from before is booted.',
} as const

/** What a reboot for another reason does with what waits there; a sentence for plans. */
export const bootsPending = (world: World, known: readonly Known[]): readonly string[] =>
  (['staged', 'trial'] as const).flatMap(why => {
    const names = pendingOn(world, known).flatMap(({ name, pending }) => (pending === why ? [name] : []))
    return names.length > 0 ? [TOLD[why].replace('NAMES', names.join(', '))] : []
  })
