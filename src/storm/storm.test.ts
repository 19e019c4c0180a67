import { expect, it } from 'vitest'
import type { Process } from './story.ts'
import { createStory } from './story.ts'
import { postWatchmen } from './watchmen.ts'

/** Two replicas that die and freeze, a Kubernetes API that goes away, writes that meet others': drawn from the seed, until the upgrade is done. */
const storm = async (seed: number): Promise<readonly string[]> => {
  const isLegacy = seed % 4 === 0
  const story = createStory({
    seed,
    controlPlanes: seed % 3 === 0 ? 5 : 3,
    workers: 3,
    kubernetes: isLegacy ? 'v1.35.1' : 'v1.36.2',
    talos: isLegacy ? 'v1.12.5' : 'v1.13.5',
    workloads: [{ name: 'web', replicas: 3, budget: { maxUnavailable: 1 } }],
  })
  const { world } = story
  const watchmen = postWatchmen(world)
  const { random, after } = world.schedule
  const replicas: Process[] = []
  let count = 0
  const start = (slot: number): void => {
    replicas[slot] = story.start(`ichor-${++count}`)
  }
  const strike = (slot: number): void => {
    const replica = replicas[slot]
    const dice = random.next()
    if (dice < 0.4) {
      replica?.kill()
      start(slot)
    } else if (dice < 0.7) {
      replica?.freeze()
      after(random.between(1000, 50_000), () => replica?.thaw())
    } else if (dice < 0.8) world.apiOutage(random.between(5000, 120_000))
    else world.faults.statusConflicts = 3
    after(random.between(20_000, 200_000), () => strike(slot))
  }
  for (const slot of [0, 1]) {
    start(slot)
    after(random.between(30_000, 200_000), () => strike(slot))
  }
  await story.until(
    'machines are discovered',
    () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === world.machines.length,
  )
  story.create({ name: 'up', spec: { kind: 'talos', talos: { version: isLegacy ? 'v1.12.9' : 'v1.13.9' } } })
  await story.until('it is over', () => ['Completed', 'Paused'].includes(story.operation('up')?.status.phase ?? ''))
  const status = story.operation('up')?.status
  const boots = Object.entries(watchmen.counts('boot')).filter(([, n]) => n !== 1)
  return [
    ...(status?.phase === 'Completed' ? [] : [`${status?.failureReason}: ${status?.message}`]),
    ...watchmen.complaints(),
    ...boots.map(([name, n]) => `${name} booted ${n} times`),
  ]
}

it.each([201, 204, 207, 210, 213, 216, 219, 222])(
  'seed %i: an upgrade through a storm ends like one in fair weather',
  async seed => {
    expect(await storm(seed)).toEqual([])
  },
  30_000,
)
