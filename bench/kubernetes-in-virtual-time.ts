// An upgrade of Kubernetes in the simulated world, in virtual time: how much longer it takes than the programs themselves, one after the other.
import { createStory } from '../src/storm/story.ts'
import { restarts } from '../src/storm/restarts.ts'

export type KubernetesTime = {
  readonly controlPlanes: number
  readonly workers: number
  /** From the first image that is set until the last program runs and, for the manifests, is applied; milliseconds of the world. */
  readonly restartingMs: number
  /** The sum of what the programs took themselves, each from its image to the moment when it works. */
  readonly ownMs: number
  /** From the creation of the operation to Completed, pulls and the pods of kube-proxy among it. */
  readonly wallMs: number
}

const NAME = 'up'

export const kubernetesInVirtualTime = async (controlPlanes: number, workers: number, seed: number): Promise<KubernetesTime> => {
  const story = createStory({ seed, controlPlanes, workers, kubernetes: 'v1.35.4' })
  const { world } = story
  const version = 'v1.36.2'
  const told = restarts(world, version)
  story.start()
  await story.pass(60_000)
  const began = world.schedule.now()
  story.create({ name: NAME, spec: { kind: 'kubernetes', kubernetes: { version } } })
  await story.until(
    'Completed',
    () => {
      const { phase, failureReason, message } = story.operation(NAME)?.status ?? {}
      if (failureReason) throw new Error(`the upgrade stopped: ${failureReason}: ${message}`)
      return phase === 'Completed'
    },
    24 * 3_600_000,
  )
  const ownMs = told.restarts().reduce((sum, { ms }) => sum + ms, 0)
  return { controlPlanes, workers, restartingMs: told.spanMs(), ownMs, wallMs: world.schedule.now() - began }
}
