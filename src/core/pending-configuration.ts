import type { Known } from './preflight.ts'
import type { World } from './world.ts'
import { configurationFacts } from './world.ts'

/** Machines on which another configuration than the one that runs waits for the next boot; or which only try the one that runs. */
export const pendingOn = (world: World, known: readonly Known[]): readonly Known[] =>
  known.filter(({ machine }) => {
    const configuration = configurationFacts(world, machine.metadata.name)
    return configuration.ok && configuration.value.onDisk !== configuration.value.running
  })

/** What a reboot for another reason does with it, a sentence for plans; none where nothing waits. */
export const bootsPending = (world: World, known: readonly Known[]): readonly string[] => {
  const pending = pendingOn(world, known)
  if (pending.length === 0) return []
  const names = pending.map(({ name }) => name).join(', ')
  return [
    `A configuration is staged or on trial on ${names}: a machine boots with the one on its disk, so one that is staged takes effect then, and one on trial is gone.`,
  ]
}
