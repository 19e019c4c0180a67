import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../src/api/names.ts'
import { createStory, NAMESPACE } from '../../src/storm/story.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { play, playWithDeaths, type Run } from './play.ts'

const spec = { talos: { version: 'v1.13.9' } }

/** Every host that somebody tried to reach a machine at. */
const dialled = ({ world }: Pick<Run, 'world'>): ReadonlySet<string> =>
  new Set(
    world.calls
      .log()
      .filter(call => call.port === 'talos')
      .map(call => call.target),
  )

describe('the control plane that has the virtual address is upgraded [B033 siderolabs/talos#14041, siderolabs/talos#7859, siderolabs/talos#7423]', () => {
  const cluster = { vip: '192.0.2.10', workloads: [{ name: 'web', replicas: 2, on: [0] }] }
  const loseAt = (moment: 'cordon' | 'evicted', run: Run, ms: number): void => {
    const stop = run.world.journal.onEntry(({ what, machine }) => {
      if (what !== moment || machine !== run.world.vip.holder()?.name) return
      stop()
      run.world.vip.lose(ms)
    })
  }
  const isCordoned = ({ world }: Run, name: string) =>
    (world.store.get(RESOURCE.nodes, '', name)?.spec as { unschedulable?: boolean } | undefined)?.unschedulable === true

  it('and the API cannot be reached for 45 seconds from its cordon on: the drain is waited for, not left out', async () => {
    const { run, end } = await playWithDeaths({ cluster, spec, arrange: run => loseAt('cordon', run, 45_000) })
    expect(end.phase).toBe('Completed')
    expect(end.machines.filter(m => m.endsWith('cordoned'))).toEqual([])
    const [holder] = run.world.journal.of('vip').filter(e => e.detail.startsWith('nobody'))
    const [cordon] = run.world.journal.of('cordon', 'cp-1')
    expect(holder?.at).toBe(cordon?.at)
    const [evicted] = run.world.journal.of('evicted', 'cp-1')
    const [reboot] = run.world.journal.of('reboot-requested', 'cp-1')
    expect((evicted?.at ?? 0) - (cordon?.at ?? 0)).toBeGreaterThanOrEqual(45_000)
    expect(reboot?.at).toBeGreaterThan(evicted?.at ?? 0)
  })

  it.each([
    ['cordon', 'NodeNotReady', /^cp-1: cordon did not end within 5m: the Kubernetes API does not answer: .*192\.0\.2\.10/],
    ['evicted', 'DrainTimeout', /^cp-1: drain did not end within 2m: its pods cannot be listed: .*192\.0\.2\.10/],
  ] as const)(
    'and from the %s on it stays away for too long: the step fails, and the cordon is lifted when the API is back',
    async (moment, reason, words) => {
      const { end } = await play({
        cluster,
        spec: { ...spec, drain: { timeout: '2m' } },
        arrange: run => loseAt(moment, run, 15 * 60_000),
        drive: async run => {
          await run.settled()
          expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: reason })
          expect(run.status().message).toMatch(words)
          expect(isCordoned(run, 'cp-1')).toBe(true)
          await run.until('the cordon is lifted', () => !isCordoned(run, 'cp-1'), 20 * 60_000)
          expect(run.world.store.get(RESOURCE.nodes, '', 'cp-1')?.metadata.annotations?.[ANNOTATION.cordonedBy]).toBeUndefined()
          expect(run.world.journal.of('reboot-requested', 'cp-1')).toEqual([])
          await run.resume()
          await run.settled()
        },
      })
      expect(end.phase).toBe('Completed')
    },
  )
})

describe('a Node without an internal address [B037 siderolabs/talos#7253]', () => {
  it('but with an external one is a machine like any other', async () => {
    const { run, end } = await playWithDeaths({ cluster: { addressTypes: i => (i === 4 ? 'ExternalIP' : 'InternalIP') }, spec }, 3)
    const status = run.world.store.get(RESOURCE.nodes, '', 'wk-2')?.status as { addresses: { type: string }[] } | undefined
    expect(status?.addresses.map(a => a.type)).toEqual(['ExternalIP', 'Hostname'])
    expect(end).toMatchObject({ phase: 'Completed' })
    expect(end.machines[4]).toBe('wk-2 v1.13.9 Completed')
    expect([...dialled(run)].toSorted()).toEqual(['10.5.0.2', '10.5.0.3', '10.5.0.4', '10.5.0.5', '10.5.0.6'])
  })

  it('nor any other yet is no machine that could be left behind in silence; nobody dials an empty host', async () => {
    const story = createStory({ addresses: i => (i === 3 ? [] : `10.5.0.${i + 2}`) })
    story.start()
    await story.until(
      'the others are known',
      () => story.world.store.list(ICHOR.machines, NAMESPACE).items.filter(m => 'status' in m).length === 4,
    )
    story.create({ name: 'up', spec: { kind: 'talos', ...spec } })
    await story.until('it is judged', () => story.operation('up')?.status.phase === 'Paused')
    const { failureReason, message, preflight } = story.operation('up')?.status ?? {}
    expect(failureReason).toBe('PreflightRefused')
    expect(preflight?.refusals.map(r => r.rule)).toEqual(['UnknownNode'])
    expect(message).toContain('Node wk-1 (no address known) belongs to no TalosMachine')
    expect(dialled(story)).toEqual(new Set(['10.5.0.2', '10.5.0.3', '10.5.0.4', '10.5.0.6']))
    expect(story.world.journal.of('pulled')).toEqual([])
  })
})

describe('the name of the control plane is known to its machines alone [B039 home-operations/tuppr#230, home-operations/tuppr#227]', () => {
  it('which does not matter: machines are reached by their addresses, and the API by the cluster itself', async () => {
    const { run, end } = await playWithDeaths({ cluster: { endpoint: 'https://api.cluster.internal:6443' }, spec }, 3)
    expect(run.world.machines.map(m => m.config.includes('endpoint: https://api.cluster.internal:6443\n'))).toEqual(Array(5).fill(true))
    expect(end.phase).toBe('Completed')
    expect([...dialled(run)].filter(host => !/^10\.5\.0\.\d$/.test(host))).toEqual([])
  })
})
