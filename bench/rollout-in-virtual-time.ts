// A whole rollout in the simulated world with the engine and kind in this process: time passes only when nothing is left to do, so that no noise of this computer is in it.
import { createStory } from '../src/storm/story.ts'
import { openAccount, type Account } from './time-account.ts'
import { workloads } from './workloads.ts'

export type RolloutTime = {
  readonly controlPlanes: number
  readonly workers: number
  /** Milliseconds of the world, from the creation of the operation to Completed. */
  readonly wallMs: number
  readonly account: Account
  readonly callsToKubernetes: number
  readonly callsToTalos: number
}

const NAME = 'up'

export const rolloutInVirtualTime = async (controlPlanes: number, workers: number, seed: number): Promise<RolloutTime> => {
  const story = createStory({ seed, controlPlanes, workers, workloads })
  const { world } = story
  story.start()
  // The controller knows the machines before anybody upgrades them.
  await story.pass(60_000)
  const before = new Map(world.calls.counts())
  const began = world.schedule.now()
  story.create({ name: NAME, spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
  const status = () => story.operation(NAME)?.status
  const account = openAccount({ world, status })
  account.look()
  await story.until(
    'Completed',
    () => {
      account.look()
      const { phase, failureReason, message } = status() ?? {}
      if (failureReason) throw new Error(`the rollout stopped: ${failureReason}: ${message}`)
      return phase === 'Completed'
    },
    24 * 3_600_000,
  )
  const calls = (ports: readonly string[]): number =>
    [...world.calls.counts()]
      .filter(([key]) => ports.includes(key.split('.')[0]!))
      .reduce((sum, [key, count]) => sum + count - (before.get(key) ?? 0), 0)
  return {
    controlPlanes,
    workers,
    wallMs: world.schedule.now() - began,
    account,
    callsToKubernetes: calls(['home', 'kube']),
    callsToTalos: calls(['talos']),
  }
}
