// A configuration on trial: Talos puts the one from before back unless it is kept.
import { describe, expect, it } from 'vitest'
import { createStory, type Story, type StoryOptions } from '../../storm/story.ts'
import { MINUTE, APPENDS, begun, status, settled, resume, applied, times, machineNames, whenOpen } from '../../storm/config-story.ts'

describe('a trial', () => {
  it.each([2, 3, 4, 6])('that cannot be judged, because the API is away for %i minutes, is made again', async minutes => {
    const story = await begun({ homeOutside: true }, { patches: [{ inline: APPENDS }] })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    await story.pass(20_000)
    story.world.apiOutage(minutes * MINUTE)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Completed' })
    expect(status(story).lastFailure).toBeUndefined()
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  /** Whatever would keep it comes to nothing. */
  const neverKept = (story: Story): (() => void) => {
    const machine = story.world.machine('wk-1')
    return story.world.calls.intercept(({ name, target }) =>
      name === 'applyConfiguration' && target === machine.addresses[0] && machine.endTrial !== undefined
        ? { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: 'connection refused' } }
        : undefined,
    )
  }

  it('that went well and was kept too late is made again', async () => {
    const story = await begun({}, { patches: [{ inline: APPENDS }] })
    const mend = neverKept(story)
    await story.until('Talos has ended the trial', () => story.world.journal.of('config-rolled-back', 'wk-1').length > 0)
    mend()
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Completed' })
    expect(applied(story, 'wk-1')).toEqual(['tried', 'tried', ''])
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  it('that goes well again and again and is never kept: it says so, and blames no patch', async () => {
    const story = await begun({}, { patches: [{ inline: APPENDS }] })
    const mend = neverKept(story)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'MachineUnreachable' })
    expect(status(story).message).toMatch(/wk-1 was well with the patched configuration, .*: connection refused\. Resume the operation/)
    mend()
    await resume(story)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Completed' })
  })

  it('that ended badly is made again when a person has mended the machine and resumes', async () => {
    const story = await begun({}, { patches: [{ inline: APPENDS }] })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    story.world.blackHole('wk-1', true)
    await settled(story)
    story.world.blackHole('wk-1', false)
    await story.until('Talos has put it back', () => !story.world.machine('wk-1').config.includes('ichor.example.com'))
    await story.pass(2 * MINUTE)
    expect(status(story).phase).toBe('Paused')
    await resume(story)
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    expect(applied(story, 'wk-1')).toEqual(['tried', 'tried', ''])
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })
})

describe('a trial on a machine that has booted since it was last given a configuration', () => {
  /** After a boot Talos tells what is on its disk only once it is given a configuration for good: nothing shows that what runs is only tried. */
  const booted = async (options: StoryOptions = {}, inline = APPENDS): Promise<Story> => {
    const story = createStory({ seed: 3, ...options })
    for (const machine of story.world.machines) machine.hasPersistent = false
    story.start()
    await story.pass(MINUTE)
    story.create({ name: 'op', spec: { kind: 'config', config: { patches: [{ inline }] } } })
    return story
  }

  it.each(['v1.13.5', 'v1.9.6'])('is kept, with Talos %s', async talos => {
    const story = await booted({ talos, kubernetes: talos === 'v1.9.6' ? 'v1.32.3' : 'v1.36.2' })
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Completed' })
    await story.pass(10 * MINUTE)
    for (const name of machineNames(story)) {
      expect(applied(story, name)).toEqual(['tried', ''])
      expect(story.world.machine(name)).toMatchObject({ onDisk: undefined, config: expect.stringContaining('ichor.example.com') })
    }
  })

  it('is told of to who cancels', async () => {
    const story = await booted()
    const machine = await whenOpen(story, 'wk-1', step => step === 'trial')
    story.edit('op', { spec: { cancelled: true } })
    await story.until('it is cancelled', () => status(story).phase === 'Cancelled')
    expect(status(story).machines?.find(t => t.hostname === 'wk-1')?.message).toMatch(/is on trial there, .*at the latest at 2026-/)
    await story.pass(4 * MINUTE)
    expect(machine.config).not.toContain('ichor.example.com')
  })

  it('is waited for by who pauses and resumes, and the patch is not in it twice', async () => {
    const story = await booted()
    await whenOpen(story, 'wk-1', step => step === 'trial')
    story.edit('op', { spec: { paused: true } })
    await story.until('it is paused', () => status(story).phase === 'Paused')
    story.edit('op', { spec: { paused: false } })
    await story.until('it is done', () => status(story).phase === 'Completed')
    expect(applied(story, 'wk-1')).toEqual(['tried', 'tried', ''])
    await story.pass(10 * MINUTE)
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  it.each([
    ['adds to a list', APPENDS],
    ['says the same once more', 'machine: {sysctls: {vm.max_map_count: "262144"}}\n'],
  ])('is not taken for what is there for good by the next operation, whose patch %s', async (_, inline) => {
    const story = await booted({}, inline)
    await whenOpen(story, 'wk-1', step => step === 'trial')
    story.edit('op', { spec: { cancelled: true } })
    await story.until('it is cancelled', () => status(story).phase === 'Cancelled')
    story.create({ name: 'next', spec: { kind: 'config', config: { patches: [{ inline }] } } })
    await story.until('it is refused', () => story.operation('next')?.status.failureReason === 'PreflightRefused')
    expect(story.operation('next')?.status.preflight?.refusals?.map(r => r.rule)).toEqual(['ConfigPending'])
    await story.pass(4 * MINUTE)
    story.create({ name: 'later', spec: { kind: 'config', config: { patches: [{ inline }] } } })
    await story.until('it is done', () => story.operation('later')?.status.phase === 'Completed')
    for (const m of story.world.machines) expect(times(m.config, inline === APPENDS ? 'ichor.example.com' : 'max_map_count')).toBe(1)
  })

  it('that could not be judged is made again when it has ended, and not taken for a new one', async () => {
    const story = await booted({ homeOutside: true })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    await story.pass(20_000)
    story.world.apiOutage(3 * MINUTE)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Completed' })
    expect(status(story).lastFailure).toBeUndefined()
    await story.pass(10 * MINUTE)
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })
})

describe('a trial with the only control plane, which keeps the operations too', () => {
  const IMAGE = 'cluster: {apiServer: {image: "registry.k8s.io/kube-apiserver:v2.0.0"}}\n'

  it('whose API server does not come with the patch is not made for ever', async () => {
    const story = await begun(
      { controlPlanes: 1, workers: 0, homeOutside: false },
      { mode: 'try', patches: [{ inline: IMAGE }] },
      { acknowledge: ['api-outage'] },
    )
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigRejected' })
    expect(status(story).message).toMatch(
      /cp-1 was tried with the patched configuration more than once, .* the Kubernetes API did not answer/,
    )
    const tries = applied(story, 'cp-1').length
    expect(tries).toBeGreaterThan(1)
    expect(story.world.machine('cp-1').config).not.toContain('v2.0.0')
    await resume(story)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigRejected' })
    expect(applied(story, 'cp-1').length).toBeGreaterThan(tries)
  })
})
