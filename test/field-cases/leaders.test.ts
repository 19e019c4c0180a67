import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { fakeClock } from '../kube/clocks.ts'
import { startReflector } from '../../src/adapters/kube/reflector.ts'
import { apiFault } from '../../src/adapters/kube/classify.ts'
import { NAMESPACE } from '../../src/storm/story.ts'
import { change } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { NAME, play } from './play.ts'

const spec = { talos: { version: 'v1.13.9' } }

describe('a leader that cannot reach the API keeps acting [B150 cilium/cilium#42920, kyverno/kyverno#14984, kubernetes/kubernetes#23731]', () => {
  it.each([
    ['its requests fail', 0],
    ['its requests hang, and are answered when another leads already', 60_000],
  ])('in the middle of a drain, %s: nothing of it changes anything after another leads', async (_, delayMs) => {
    const late: string[] = []
    const { run, end } = await play({
      cluster: { workloads: Array.from({ length: 6 }, (_unused, i) => ({ name: `web-${i}`, on: [3] })) },
      spec,
      allowed: { deaths: 1 },
      drive: async run => {
        const first = run.process()
        const second = run.start('ichor-standby')
        let cutUntil = Infinity
        run.world.calls.intercept(call => {
          if (call.client !== 'ichor-0') return undefined
          if (call.changes && second.controller.isLeading() && !first.controller.isLeading()) late.push(`${call.name} ${call.target}`)
          if (cutUntil === Infinity && call.name === 'evict') cutUntil = call.at + 60_000
          if (call.at >= cutUntil || cutUntil === Infinity) return undefined
          if (delayMs > 0) return { do: 'delay', ms: delayMs }
          return call.port === 'home' ? { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: 'cut off' } } : undefined
        })
        await run.until('another leads', () => second.controller.isLeading())
        expect(first.controller.isLeading()).toBe(false)
        await run.settled()
      },
    })
    expect(end.phase).toBe('Completed')
    // The Lease of the election is asked for by whoever does not lead; that is no act.
    expect(late.filter(call => !call.startsWith('createLease') && !call.startsWith('replaceLease'))).toEqual([])
    for (const { name } of run.world.machines) expect(run.world.journal.of('reboot-requested', name)).toHaveLength(1)
  })
})

describe('a stale cache makes a finished step run again [B152 akuity/kargo#5934, kubernetes-sigs/controller-runtime#1464]', () => {
  it('watches are five seconds late, and labels are touched all the time: one install and one reboot for each machine', async () => {
    const { run, end } = await play({
      cluster: {
        wrap: ports => ({
          ...ports,
          home: {
            ...ports.home,
            watch: (what, changed) => ports.home.watch(what, (...told) => void ports.clock.after(5000, () => changed(...told))),
          },
        }),
      },
      spec,
      drive: async run => {
        let touches = 0
        const touch = (): void => {
          change(run.world.store, ICHOR.operations, NAMESPACE, NAME, now => ({
            ...now,
            metadata: { ...now.metadata, labels: { ...now.metadata.labels, 'example.com/touched': String(++touches) } },
          }))
          if (run.status().phase !== 'Completed') run.world.schedule.after(1000, touch)
        }
        touch()
        await run.settled()
        expect(touches).toBeGreaterThan(100)
      },
    })
    expect(end.phase).toBe('Completed')
    for (const { name } of run.world.machines) {
      expect(run.world.journal.of('install-began', name)).toHaveLength(1)
      expect(run.world.journal.of('reboot-requested', name)).toHaveLength(1)
    }
  })
})

describe('a storm of new watches after an outage [B154 kubernetes-client/javascript#1933]', () => {
  it('away for 30 s, forbidden for 10 s, three times: at most two requests in a second, and one watch in the end', async () => {
    const clock = fakeClock()
    const asked: number[] = []
    let open = 0
    const outage = () => clock.monotonic() % 100_000
    const objection = () =>
      outage() < 20_000
        ? undefined
        : outage() < 50_000
          ? apiFault('unreachable', 'connection refused')
          : outage() < 60_000
            ? apiFault('forbidden', 'not yet')
            : undefined
    const request = () => {
      asked.push(clock.monotonic())
      return objection()
    }
    const reflector = startReflector({
      source: {
        list: () => Promise.resolve(request() ?? { ok: true as const, value: { items: [], resourceVersion: '1' } }),
        watch: (_, on) => {
          const refused = request()
          if (refused) return Promise.resolve(refused)
          open++
          on.opened()
          return new Promise(resolve => {
            const ends = 100_000 - ((outage() + 80_000) % 100_000)
            clock.after(ends, () => {
              open--
              resolve(apiFault('unreachable', 'cut'))
            })
          })
        },
      },
      parse: object => object,
      clock,
      random: () => 0.5,
    })
    for (let ms = 0; ms < 270_000; ms += 100) {
      await setImmediate()
      clock.advance(100)
    }
    await setImmediate()
    const inOneSecond = asked.map(at => asked.filter(other => other >= at && other < at + 1000).length)
    expect(Math.max(...inOneSecond)).toBeLessThanOrEqual(2)
    expect(open).toBe(1)
    expect(reflector.isHealthy()).toBe(true)
    reflector.stop()
  })
})
