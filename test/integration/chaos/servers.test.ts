// One rollout, and the API server and its etcd killed in the middle of it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterOnTheWire } from '../../cluster-on-the-wire.ts'
import { realParts } from '../../real/parts.ts'
import { judge } from './judge.ts'
import { again, duringOperation, either, expectCompleted, LIMIT_MS, randomOf, startStage, termsOf, untilDiscovered } from './stage.ts'

const servers = await realParts('etcd', 'kube-apiserver')

const API_SERVER_KILLS = either(2, 5)
const ETCD_KILLS = either(1, 2)
/** Fewer than the machines see of a rollout that nobody disturbs. */
const SEEN = 110

describe.skipIf('missing' in servers)('the API server and etcd', () => {
  let cluster: ClusterOnTheWire
  beforeAll(async () => {
    cluster = await startStage({ from: 'v1.13.5', speed: either(150, 60) })
  }, LIMIT_MS)
  afterAll(() => cluster?.close())

  it(
    'may be killed at any moment: the rollout goes on when they are back, and nothing is done twice',
    async () => {
      const random = randomOf(2)
      const { world, kubernetes } = cluster
      const controller = await cluster.startController({ identity: 'ichor-0' })
      await untilDiscovered(cluster)
      const { count, verdict } = judge(cluster, { version: 'v1.13.9', terms: () => termsOf(controller) })
      await cluster.upgrade('up', 'v1.13.9')

      const killApiServer = async (): Promise<void> => {
        const before = world.journal.of('api-up').length
        // The world's API server fails, and the real one is killed and started again with it.
        world.apiOutage(random.between(100, 3_000))
        await duringOperation(cluster, 'up', () => expect(world.journal.of('api-up').length).toBeGreaterThan(before))
      }
      const killEtcd = async (): Promise<void> => {
        await kubernetes.etcd?.kill()
        await new Promise(resolve => setTimeout(resolve, random.between(100, 3_000)))
        await kubernetes.etcd?.restart()
      }
      const strikes = [
        ...Array.from({ length: API_SERVER_KILLS }, () => killApiServer),
        ...Array.from({ length: ETCD_KILLS }, () => killEtcd),
      ]
        .map(strike => ({ strike, moment: random.between(1, SEEN) }))
        .toSorted((a, b) => a.moment - b.moment)
      for (const { strike, moment } of strikes) {
        await duringOperation(cluster, 'up', () => expect(count()).toBeGreaterThanOrEqual(moment))
        expect((await cluster.status('up'))?.phase, again).not.toBe('Completed')
        await strike()
      }
      await expectCompleted(cluster, 'up')
      expect(await verdict('up')).toEqual([])
      expect(controller.hasExited()).toBe(false)
    },
    LIMIT_MS,
  )
})
