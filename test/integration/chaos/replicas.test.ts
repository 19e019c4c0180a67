// Three replicas of the controller: one of them leads, falls asleep or is told to stop, and another goes on.
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LEADER_LEASE_MS } from '../../../src/engine/leader.ts'
import type { ClusterOnTheWire, Process } from '../../cluster-on-the-wire.ts'
import { realParts } from '../../real/parts.ts'
import { judge } from './judge.ts'
import {
  again,
  duringOperation,
  either,
  eventually,
  expectCompleted,
  isLong,
  LATER_MS,
  LIMIT_MS,
  nextIntention,
  randomOf,
  SEEN_PER_MACHINE,
  startStage,
  termsOf,
  untilDiscovered,
  watchLeaders,
} from './stage.ts'

const servers = await realParts('etcd', 'kube-apiserver')

const NAMES = ['ichor-1', 'ichor-2', 'ichor-3']
const SLEEPS = either(1, 4)
const RESTARTS = either(3, 12)
/** What is promised. Short of it, a busy machine is no failure; one that had to wait for the lease to run out is. */
const HAND_OVER_MS = either(LEADER_LEASE_MS * 0.6, 2_000)
const SEEN = SEEN_PER_MACHINE * 6

describe.skipIf('missing' in servers)('three replicas', () => {
  let cluster: ClusterOnTheWire
  let leaders: ReturnType<typeof watchLeaders>
  const replicas = new Map<string, Process>()
  const terms = () => [...replicas.values()].flatMap(termsOf)
  const start = async (identity: string): Promise<void> => {
    replicas.set(identity, await cluster.startController({ identity }))
  }
  const leading = async (): Promise<Process> => {
    await eventually(() => expect(NAMES).toContain(leaders.leader()))
    return replicas.get(leaders.leader())!
  }

  beforeAll(async () => {
    cluster = await startStage({ from: 'v1.13.5', speed: 60 })
    leaders = watchLeaders(cluster)
    for (const name of NAMES) await start(name)
    await untilDiscovered(cluster)
  }, LIMIT_MS)
  afterAll(async () => {
    leaders?.stop()
    await cluster?.close()
  })

  it(
    'have a leader that sleeps for two lengths of its lease, and does nothing more when it wakes',
    async () => {
      const random = randomOf(4)
      const { count, verdict } = judge(cluster, { version: 'v1.13.7', terms })
      await cluster.upgrade('asleep', 'v1.13.7')
      for (let i = 0; i < SLEEPS; i++) {
        const moment = Math.floor((SEEN / 2 / SLEEPS) * i) + random.between(1, 15)
        await duringOperation(cluster, 'asleep', () => expect(count()).toBeGreaterThanOrEqual(moment))
        const sleeper = await leading()
        // Between the intention and its act, and at any moment.
        await (i % 2 === 0 ? nextIntention(cluster, 'asleep') : pause(random.between(0, LATER_MS)))
        process.kill(sleeper.pid, 'SIGSTOP')
        const [name] = [...replicas].find(([, replica]) => replica === sleeper)!
        let woken: number
        try {
          await pause(2 * LEADER_LEASE_MS)
          await eventually(() => expect(leaders.leader()).not.toBe(name))
        } finally {
          woken = Date.now()
          process.kill(sleeper.pid, 'SIGCONT')
        }
        await eventually(() => expect(sleeper.log().some(l => l.msg === 'no longer leading' && l.time >= woken)).toBe(true))
        const acts = sleeper.log().filter(({ level, time, machine, step }) => level === 30 && time >= woken && machine && step)
        expect(acts, again).toEqual([])
        expect((await cluster.status('asleep'))?.phase, again).not.toBe('Completed')
      }
      await expectCompleted(cluster, 'asleep')
      expect(await verdict('asleep')).toEqual([])
    },
    LIMIT_MS,
  )

  it(
    'are restarted one by one, and hand over',
    async () => {
      const random = randomOf(5)
      const { count, verdict } = judge(cluster, { version: 'v1.13.9', terms })
      await cluster.upgrade('restarts', 'v1.13.9')
      const took: number[] = []
      for (let i = 0; i < RESTARTS; i++) {
        const moment = random.between(Math.floor((SEEN / RESTARTS) * i), Math.floor((SEEN / RESTARTS) * (i + 1)))
        await duringOperation(cluster, 'restarts', () => expect(count()).toBeGreaterThanOrEqual(moment))
        await pause(random.between(0, LATER_MS))
        const leader = await leading()
        const name = leaders.leader()
        const told = Date.now()
        await leader.kill('SIGTERM')
        expect(await leader.exited).toBe(0)
        const next = await eventually(() => {
          const reign = leaders.reigns().at(-1)!
          expect(reign.holder).not.toBe('')
          expect(reign.acquiredAt).toBeGreaterThan(told)
          return reign
        })
        expect(next.holder).not.toBe(name)
        took.push(next.acquiredAt - told)
        await start(name)
      }
      expect(Math.max(...took), `milliseconds that each hand-over took: ${took.join(', ')}; ${again}`).toBeLessThan(HAND_OVER_MS)
      if (isLong) console.log(`hand-overs took ${took.join(', ')} ms`)
      await expectCompleted(cluster, 'restarts')
      expect(await verdict('restarts')).toEqual([])
    },
    LIMIT_MS,
  )
})
