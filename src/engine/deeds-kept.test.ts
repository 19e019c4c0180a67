// What an operation did that is deleted between two machines is remembered: whoever creates it again does not do it twice.
import { describe, expect, it } from 'vitest'
import { ANNOTATION, leaseName } from '../api/names.ts'
import { APPENDS, MINUTE, SYSCTL, applied, begun, status } from '../storm/config-story.ts'
import { CLUSTER, NAMESPACE, type Story } from '../storm/story.ts'
import { RESOURCE } from '../world/objects.ts'
import { registerCluster } from '../world/ports/connections.ts'
import { ICHOR } from '../world/ports/home.ts'

const spec = { kind: 'config', config: { mode: 'no-reboot', patches: [{ inline: APPENDS }] } }
const isAtRest = (story: Story): boolean =>
  status(story).machines?.some(t => t.phase === 'Completed') === true && !status(story).machines?.some(t => t.phase === 'Running')

/** It has patched its first machines, and a person has paused it. */
const betweenMachines = async (): Promise<Story> => {
  const story = await begun({}, spec.config)
  await story.until('the first machine is done', () => status(story).machines?.some(t => t.phase === 'Completed') === true)
  story.edit('op', { spec: { paused: true } })
  await story.until('it is paused', () => status(story).phase === 'Paused' && isAtRest(story))
  await story.pass(MINUTE)
  return story
}
const isGone = (story: Story) => (): boolean => story.operation('op') === undefined
const deleted = async (story: Story): Promise<void> => {
  story.remove('op')
  await story.until('it is gone', isGone(story), MINUTE)
}
/** As GitOps does it; it must not add to the lists of the machines once more. */
const isRefusedAnew = async (story: Story): Promise<void> => {
  const before = applied(story)
  story.create({ name: 'op', spec })
  await story.until('it is refused', () => status(story).failureReason === 'PreflightRefused')
  expect(status(story).preflight?.refusals.map(({ rule }) => rule)).toEqual(['DoneAlready'])
  await story.pass(5 * MINUTE)
  expect(applied(story)).toEqual(before)
}
const lease = (story: Story) => {
  const found = story.world.store.get(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
  if (!found) throw new Error('there is no Lease')
  return found
}

describe('an operation that is deleted between two machines', () => {
  it('which a person had paused: it is not done again under its name', async () => {
    const story = await betweenMachines()
    await deleted(story)
    expect(story.holder()).toBe('')
    await isRefusedAnew(story)
  })

  it('which waited for a maintenance window', async () => {
    const cluster = { maintenanceWindows: [{ schedule: '0 8 * * *', duration: '3m', timeZone: 'UTC' }] }
    const story = await begun({ cluster }, spec.config)
    await story.until('it waits', () => status(story).message?.includes('Outside the maintenance windows') === true)
    expect(isAtRest(story)).toBe(true)
    await story.pass(MINUTE)
    await deleted(story)
    story.create({ name: 'op', spec: { ...spec, ignoreWindows: true } })
    await story.until('it is refused', () => status(story).failureReason === 'PreflightRefused')
    expect(status(story).preflight?.refusals.map(({ rule }) => rule)).toEqual(['DoneAlready'])
  })

  it('whose lock another holds: it goes at once, and the other keeps it', async () => {
    const story = await betweenMachines()
    const { metadata, spec: held } = lease(story) as unknown as { metadata: { annotations: object }; spec: object }
    const holderIdentity = 'a-person'
    story.world.store.update(RESOURCE.leases, {
      ...lease(story),
      metadata: { ...lease(story).metadata, annotations: {} },
      spec: { ...held, holderIdentity },
    })
    expect(metadata.annotations).toHaveProperty([ANNOTATION.holderUid])
    await deleted(story)
    expect(story.holder()).toBe(holderIdentity)
    story.world.store.update(RESOURCE.leases, { ...lease(story), spec: { ...held, holderIdentity: '' } })
    await isRefusedAnew(story)
  })

  it('whose Lease somebody deleted', async () => {
    const story = await betweenMachines()
    story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    await deleted(story)
    expect(story.holder()).toBe('')
    await isRefusedAnew(story)
  })

  it('whose namespace goes, in which nothing can be created any more: it holds nothing up', async () => {
    const story = await betweenMachines()
    story.world.calls.intercept(({ name }) =>
      name === 'createLease'
        ? { do: 'fail', when: 'before', fault: { kind: 'forbidden', message: 'the namespace is being terminated' } }
        : undefined,
    )
    story.world.store.remove(RESOURCE.leases, NAMESPACE, leaseName(CLUSTER))
    await deleted(story)
  })

  it('whose cluster is gone', async () => {
    const story = await betweenMachines()
    story.world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
    await deleted(story)
    expect(story.holder()).toBe('')
    registerCluster(story.world, { namespace: NAMESPACE, name: CLUSTER })
    await isRefusedAnew(story)
  })

  it('which was refused anew after it had begun', async () => {
    const story = await betweenMachines()
    story.world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
    story.edit('op', { spec: { paused: false } })
    await story.until('it is refused', () => status(story).failureReason === 'PreflightRefused')
    registerCluster(story.world, { namespace: NAMESPACE, name: CLUSTER })
    await story.pass(5 * MINUTE)
    await deleted(story)
    await isRefusedAnew(story)
  })

  it('and has done nothing yet goes without a trace, and can be created again', async () => {
    const story = await begun({}, spec.config, { paused: true })
    await story.pass(MINUTE)
    expect(story.operation('op')?.metadata.finalizers).toEqual([])
    story.remove('op')
    expect(isGone(story)()).toBe(true)
    story.create({ name: 'op', spec })
    await story.until('it is done', () => status(story).phase === 'Completed')
    expect(story.operation('op')?.metadata.finalizers).toEqual([])
  })

  it('is guarded no longer once it has ended and that is told', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: SYSCTL }] })
    await story.until('it is done', () => status(story).phase === 'Completed')
    await story.until('its finalizer is gone', () => story.operation('op')?.metadata.finalizers.length === 0, MINUTE)
  })
})
