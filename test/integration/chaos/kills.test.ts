// One rollout, and the controller killed again and again in the middle of it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../../src/api/names.ts'
import { RESOURCE } from '../../../src/adapters/kube/resource.ts'
import type { ClusterOnTheWire, Process } from '../../cluster-on-the-wire.ts'
import { realParts } from '../../real/parts.ts'
import { judge } from './judge.ts'
import {
  again,
  duringOperation,
  either,
  eventually,
  expectCompleted,
  LIMIT_MS,
  randomOf,
  startStage,
  termsOf,
  untilDiscovered,
} from './stage.ts'

const servers = await realParts('etcd', 'kube-apiserver')

const KILLS = either(8, 50)
/** Fewer than the machines see of a rollout that nobody disturbs, so that the last kill falls into it as well. */
const SEEN = 90
/** After what a machine saw, so that moments at which no machine sees anything have their turn, too. */
const LATER_MS = 400

describe.skipIf('missing' in servers)('a controller that is killed', () => {
  let cluster: ClusterOnTheWire
  beforeAll(async () => {
    cluster = await startStage({ from: 'v1.13.5', speed: either(150, 60) })
  }, LIMIT_MS)
  afterAll(() => cluster?.close())

  it(
    `${KILLS} times at moments drawn at random carries its rollout to the end, and does nothing twice`,
    async () => {
      const random = randomOf(1)
      const held = 'wk-3'
      await cluster.client.patch(RESOURCE.node, { name: held }, { metadata: { annotations: { [ANNOTATION.upgradeHold]: 'keep' } } })
      let controller: Process = await cluster.startController({ identity: 'ichor-0' })
      const { count, verdict } = judge(cluster, { version: 'v1.13.9', held: [held], terms: () => termsOf(controller) })
      await untilDiscovered(cluster)
      await cluster.upgrade('up', 'v1.13.9')

      const moments = Array.from({ length: KILLS }, () => random.between(1, SEEN)).toSorted((a, b) => a - b)
      let lives = 0
      for (const moment of moments) {
        lives++
        // It leads at once: the Lease is its own. One that dies before that has done nothing.
        await eventually(() => expect(termsOf(controller).length).toBeGreaterThanOrEqual(lives))
        await duringOperation(cluster, 'up', () => expect(count()).toBeGreaterThanOrEqual(moment))
        await new Promise(resolve => setTimeout(resolve, random.between(0, LATER_MS)))
        expect((await cluster.status('up'))?.phase, `after ${lives - 1} kills; ${again}`).not.toBe('Completed')
        await controller.kill('SIGKILL')
        controller = await cluster.startController({ identity: 'ichor-0' })
      }
      await expectCompleted(cluster, 'up')
      expect(await verdict('up')).toEqual([])
    },
    LIMIT_MS,
  )
})
