// The Secret with a credential of the cluster goes away while a machine is open.
import { describe, expect, it } from 'vitest'
import { MINUTE, restartStory } from '../storm/restart-story.ts'
import type { RestartStory } from '../storm/restart-story.ts'
import type { Fault } from '../ports/fault.ts'

const MISSING = 'Secret ichor-system/kubeconfig does not exist; spec.kubeconfigSecretRef of TalosCluster home must name a Secret'

/** Its first machine is open, and the image is being pulled; from here on there is no connection to that API. */
const without = async (fault: Fault) => {
  let isAway = false
  const heard: string[] = []
  const story: RestartStory = await restartStory({
    hear: (_, message) => void heard.push(message),
    wrap: ports => ({
      ...ports,
      connections: {
        ...ports.connections,
        kube: cluster => (isAway ? Promise.resolve({ ok: false, fault }) : ports.connections.kube(cluster)),
      },
    }),
  })
  story.restart('a')
  await story.until('a machine is open', () => story.open('a').length > 0)
  isAway = true
  return { story, heard, back: () => (isAway = false) }
}
const passes = (story: RestartStory): number => story.world.calls.counts().get('home.operation') ?? 0
const writes = (story: RestartStory): number => story.world.calls.counts().get('home.writeOperationStatus') ?? 0

describe.each<[string, Fault]>([
  ['whose Secret is gone', { kind: 'notFound', message: MISSING }],
  ['that cannot be opened for now', { kind: 'unreachable', message: MISSING }],
])('a connection %s', (_, fault) => {
  it('is told in status and log, and not asked for all the time', async () => {
    const { story, heard, back } = await without(fault)
    await story.pass(MINUTE)
    const [passed, written] = [passes(story), writes(story)]
    await story.pass(5 * MINUTE)
    expect(passes(story) - passed).toBeLessThan(300)
    expect(writes(story) - written).toBeLessThan(60)
    expect(story.status('a').message).toContain(MISSING)
    expect(story.status('a').waiting?.for).toContain(MISSING)
    expect(heard.filter(line => line.startsWith('connecting to Kubernetes did not work')).length).toBeGreaterThan(0)
    // No intention was written for what could not be asked.
    expect(story.target('a', 'cp-1')).toMatchObject({ step: 'install', attempts: 0, fault: MISSING })
    back()
    await story.untilDone('a')
  })

  it('is named where the step has waited for it in vain', async () => {
    const { story } = await without(fault)
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    expect(story.status('a').message).toContain(`the last try: ${MISSING}`)
  })
})
