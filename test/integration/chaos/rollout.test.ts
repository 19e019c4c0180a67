// A rollout while its controller, its API server and the line between the two fail again and again.
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { RESOURCE } from '../../../src/adapters/kube/resource.ts'
import { ANNOTATION } from '../../../src/api/names.ts'
import type { ClusterOnTheWire, Process } from '../../cluster-on-the-wire.ts'
import { realParts } from '../../real/parts.ts'
import { startBadProxy, TROUBLES } from './bad-proxy.ts'
import { judge } from './judge.ts'
import {
  again,
  duringOperation,
  either,
  eventually,
  expectCompleted,
  LATER_MS,
  LIMIT_MS,
  randomOf,
  SEEN_PER_MACHINE,
  startStage,
  termsOf,
  untilDiscovered,
} from './stage.ts'

const servers = await realParts('etcd', 'kube-apiserver')

const CONTROLLER_KILLS = either(8, 50)
const API_SERVER_KILLS = either(2, 5)
const ETCD_KILLS = either(1, 2)
/** One request in so many meets trouble on the line. */
const TROUBLE_ONE_IN = either(12, 5)

describe.skipIf('missing' in servers)('a rollout', () => {
  let cluster: ClusterOnTheWire
  let controller: Process
  const start = async (kubeconfigPath?: string): Promise<void> => {
    controller = await cluster.startController({ identity: 'ichor-0', ...(kubeconfigPath ? { kubeconfigPath } : {}) })
  }
  const terms = () => termsOf(controller)

  beforeAll(async () => {
    cluster = await startStage({ from: 'v1.13.3', speed: either(150, 60) })
    await start()
    await untilDiscovered(cluster)
    // Each test starts its own: two of one name would both lead.
    await controller.kill('SIGTERM')
  }, LIMIT_MS)
  afterEach(() => controller?.kill('SIGTERM'))
  afterAll(() => cluster?.close())

  it(
    `whose controller is killed ${CONTROLLER_KILLS} times comes to its end, and nothing is done twice`,
    async () => {
      const random = randomOf(1)
      await start()
      const held = 'wk-3'
      await cluster.client.patch(RESOURCE.node, { name: held }, { metadata: { annotations: { [ANNOTATION.upgradeHold]: 'keep' } } })
      const { count, verdict } = judge(cluster, { version: 'v1.13.5', held: [held], terms })
      await cluster.upgrade('kills', 'v1.13.5')
      const moments = Array.from({ length: CONTROLLER_KILLS }, () => random.between(1, SEEN_PER_MACHINE * 5)).toSorted((a, b) => a - b)
      for (const [kills, moment] of moments.entries()) {
        // It leads at once: the Lease is its own. One that dies before that has done nothing.
        await eventually(() => expect(terms().length).toBeGreaterThan(kills))
        await duringOperation(cluster, 'kills', () => expect(count()).toBeGreaterThanOrEqual(moment))
        await pause(random.between(0, LATER_MS))
        expect((await cluster.status('kills'))?.phase, `after ${kills} kills; ${again}`).not.toBe('Completed')
        await controller.kill('SIGKILL')
        await start()
      }
      await expectCompleted(cluster, 'kills')
      expect(await verdict('kills')).toEqual([])
      await cluster.client.patch(RESOURCE.node, { name: held }, { metadata: { annotations: { [ANNOTATION.upgradeHold]: null } } })
    },
    LIMIT_MS,
  )

  it(
    'whose API server and etcd are killed goes on when they are back, and nothing is done twice',
    async () => {
      const random = randomOf(2)
      const { world, kubernetes } = cluster
      await start()
      const { count, verdict } = judge(cluster, { version: 'v1.13.7', terms })
      await cluster.upgrade('servers', 'v1.13.7')
      const killApiServer = async (): Promise<void> => {
        const before = world.journal.of('api-up').length
        // The world's API server fails, and the real one is killed and started again with it.
        world.apiOutage(random.between(100, 3_000))
        await duringOperation(cluster, 'servers', () => expect(world.journal.of('api-up').length).toBeGreaterThan(before))
      }
      const killEtcd = async (): Promise<void> => {
        await kubernetes.etcd?.kill()
        await pause(random.between(100, 3_000))
        await kubernetes.etcd?.restart()
      }
      const strikes = [
        ...Array.from({ length: API_SERVER_KILLS }, () => killApiServer),
        ...Array.from({ length: ETCD_KILLS }, () => killEtcd),
      ]
        .map(strike => ({ strike, moment: random.between(1, SEEN_PER_MACHINE * 6) }))
        .toSorted((a, b) => a.moment - b.moment)
      for (const { strike, moment } of strikes) {
        await duringOperation(cluster, 'servers', () => expect(count()).toBeGreaterThanOrEqual(moment))
        expect((await cluster.status('servers'))?.phase, again).not.toBe('Completed')
        await strike()
      }
      await expectCompleted(cluster, 'servers')
      expect(await verdict('servers')).toEqual([])
      expect(controller.hasExited()).toBe(false)
    },
    LIMIT_MS,
  )

  it(
    'over a line that cuts, delays and doubles takes longer, and that is all',
    async () => {
      const proxy = await startBadProxy(cluster, { random: randomOf(3), oneIn: TROUBLE_ONE_IN })
      try {
        await start(proxy.kubeconfigPath)
        const { verdict } = judge(cluster, { version: 'v1.13.9', terms })
        await cluster.upgrade('line', 'v1.13.9')
        await expectCompleted(cluster, 'line')
        expect(await verdict('line')).toEqual([])
        expect(controller.hasExited()).toBe(false)
        expect(
          TROUBLES.filter(trouble => proxy.counts[trouble] === 0),
          `troubles that never came; ${again}`,
        ).toEqual([])
      } finally {
        await proxy.close()
      }
    },
    LIMIT_MS,
  )
})
