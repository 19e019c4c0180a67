// What others do to the machines meanwhile, or did before.
import { describe, expect, it } from 'vitest'
import { createStory, NAMESPACE, type Story } from '../../storm/story.ts'
import { setConfig, stageConfig, tryConfig } from '../../world/configuration.ts'
import type { Machine } from '../../world/machine.ts'
import { RESOURCE } from '../../world/objects.ts'
import { encodeBase64, asciiBytes } from '../../world/ports/base64.ts'
import { requestReboot } from '../../world/reboot.ts'
import { MINUTE, SYSCTL, APPENDS, ON_BOOT, begun, status, settled, resume, applied, times, whenOpen } from '../../storm/config-story.ts'

describe('somebody else changes a configuration', () => {
  const byHand = (story: Story, machine: Machine): void =>
    setConfig(story.world.site, machine, machine.config.replace('wipe: false', 'wipe: true'))

  /** Between our look at wk-1 and our write. */
  const inBetween = (story: Story): void => {
    story.world.calls.intercept(call => {
      const machine = call.name === 'applyConfiguration' ? story.world.at(call.target) : undefined
      if (machine?.name === 'wk-1' && machine.config.includes('wipe: false')) byHand(story, machine)
      return undefined
    })
  }

  it('right before the write: it is held, nothing is overwritten, and it is read anew on resume', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: SYSCTL }] })
    inBetween(story)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigChangedByOthers' })
    expect(status(story).message).toMatch(
      /wk-1: somebody else has changed its machine configuration.*Resume the operation to patch what is there now/,
    )
    expect(applied(story)).toEqual([])
    await resume(story)
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    expect(story.world.machine('wk-1').config).toContain('wipe: true')
    for (const m of story.world.machines) expect(times(m.config, 'somaxconn')).toBe(1)
  })

  it('the same with a patch that adds each time: nobody can tell whether it is in there, so a person has to look', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: APPENDS }] })
    inBetween(story)
    await settled(story)
    expect(status(story).message).toMatch(/The patches may be in it, so they are not applied once more/)
    await resume(story)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigChangedByOthers' })
    expect(applied(story)).toEqual([])
  })

  it('after it was written there: it is held, and never patched a second time', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: APPENDS }] })
    const machine = await whenOpen(story, 'wk-1', step => step === 'well')
    byHand(story, machine)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigChangedByOthers' })
    await resume(story)
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigChangedByOthers' })
    expect(times(machine.config, 'ichor.example.com')).toBe(1)
    // Put back what was computed, it goes on.
    setConfig(story.world.site, machine, machine.config.replace('wipe: true', 'wipe: false'))
    await resume(story)
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  it('a Secret that holds another patch by now stops the rollout, and goes on when it is put back', async () => {
    const story = createStory({ seed: 3 })
    const hold = (text: string): void => {
      const data = { p: encodeBase64(asciiBytes(text)) }
      const now = story.world.store.get(RESOURCE.secrets, NAMESPACE, 'patches')
      if (now) story.world.store.update(RESOURCE.secrets, { ...now, data })
      else
        story.world.store.create(RESOURCE.secrets, {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'patches', namespace: NAMESPACE },
          data,
        })
    }
    hold(SYSCTL)
    story.start()
    await story.pass(MINUTE)
    story.create({
      name: 'op',
      spec: { kind: 'config', config: { mode: 'no-reboot', patches: [{ secretKeyRef: { name: 'patches', key: 'p' } }] } },
    })
    await whenOpen(story, 'wk-1', step => step === 'well')
    hold(APPENDS)
    await settled(story)
    expect(status(story)).toMatchObject({ failureReason: 'ConfigChangedByOthers' })
    expect(status(story).message).toContain('Secret/patches/p holds another patch than when this operation began')
    hold(SYSCTL)
    await resume(story)
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    for (const m of story.world.machines) expect(m.config).not.toContain('ichor.example.com')
  })
})

describe('a reboot by somebody else', () => {
  const reboot = (story: Story, name: string): void => void requestReboot(story.world.site, story.world.machine(name), 'default')

  it('into what was staged is the reboot', async () => {
    const story = await begun({}, { mode: 'reboot', patches: [{ inline: APPENDS }] })
    await whenOpen(story, 'wk-1', step => step === 'drain' || step === 'reboot')
    reboot(story, 'wk-1')
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    expect(story.world.journal.of('boot', 'wk-1')).toHaveLength(1)
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  it('before anything was staged: the machine is opened anew', async () => {
    const story = await begun({}, { mode: 'reboot', patches: [{ inline: APPENDS }] })
    await story.until('it is open', () => status(story).machines?.[0]?.phase === 'Running')
    reboot(story, 'wk-1')
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  it('while it is on trial ends the trial: it is tried again', async () => {
    const story = await begun({}, { patches: [{ inline: APPENDS }] })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    reboot(story, 'wk-1')
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    expect(applied(story, 'wk-1')).toEqual(['tried', 'tried', ''])
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })
})

describe('another operation', () => {
  it('that waits for the lock shows machines nothing that would end a trial', async () => {
    const story = await begun({}, { patches: [{ inline: SYSCTL }] })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    const shown: string[] = []
    story.world.calls.intercept(call => {
      if (call.name === 'dryRun' && story.holder().endsWith('/op')) shown.push(call.target)
      return undefined
    })
    story.create({ name: 'next', spec: { kind: 'config', config: { mode: 'staged', patches: [{ inline: ON_BOOT }] } } })
    await story.until('the first is done', () => status(story).phase === 'Completed')
    // Those that are shown theirs by the first itself, when they are opened.
    expect(shown.filter(address => story.world.at(address)?.name === 'wk-1')).toEqual([])
    await story.until('the next is done', () => story.operation('next')?.status.phase === 'Completed')
    for (const m of story.world.machines) expect(m.onDisk).toMatch(/somaxconn[\s\S]*GODEBUG|GODEBUG[\s\S]*somaxconn/)
  })
})

describe('what is on a machine already', () => {
  const onTrial = (story: Story, minutes: number): void =>
    tryConfig(
      story.world.site,
      story.world.machine('wk-2'),
      story.world.machine('wk-2').config.replace('wipe: false', 'wipe: true'),
      minutes * MINUTE,
    )

  it.each(['staged', 'reboot'])(
    'a trial of somebody else: the mode %s would make it stay, even to be shown a configuration',
    async mode => {
      const story = createStory({ seed: 3 })
      story.start()
      await story.pass(MINUTE)
      const before = story.world.machine('wk-2').config
      onTrial(story, 10)
      story.create({ name: 'op', spec: { kind: 'config', config: { mode, patches: [{ inline: SYSCTL }] } } })
      await settled(story)
      expect(status(story).preflight?.refusals).toMatchObject([
        { rule: 'ConfigPending', message: expect.stringMatching(/on trial/) as string },
      ])
      await story.pass(10 * MINUTE)
      expect(story.world.machine('wk-2').config).toBe(before)
    },
  )

  it('a trial that somebody begins between the look and the write is left alone', async () => {
    const story = await begun({}, { mode: 'staged', patches: [{ inline: SYSCTL }] })
    const before = story.world.machine('wk-2').config
    let isTried = false
    story.world.calls.intercept(({ name, target }) => {
      if (name !== 'applyConfiguration' || target !== story.world.machine('wk-2').addresses[0] || isTried) return undefined
      isTried = true
      onTrial(story, 3)
      return undefined
    })
    await settled(story)
    expect(isTried).toBe(true)
    expect(status(story)).toMatchObject({ phase: 'Completed' })
    expect(story.world.journal.of('config-rolled-back', 'wk-2')).toHaveLength(1)
    expect(story.world.machine('wk-2').config).toBe(before)
    expect(story.world.machine('wk-2').onDisk).toContain('somaxconn')
  })

  it('a trial of an operation that was cancelled: who cancels is told that it ends by itself', async () => {
    const story = await begun({}, { patches: [{ inline: SYSCTL }] })
    const machine = await whenOpen(story, 'wk-1', step => step === 'trial')
    story.edit('op', { spec: { cancelled: true } })
    await story.until('it is cancelled', () => status(story).phase === 'Cancelled')
    expect(status(story).machines?.find(t => t.hostname === 'wk-1')?.message).toMatch(
      /the patched configuration is on trial there, and Talos puts the one from before back by itself, at the latest at 2026-/,
    )
    await story.pass(4 * MINUTE)
    expect(machine.config).not.toContain('somaxconn')
  })

  it.each([
    ['staged', (story: Story, m: Machine) => stageConfig(story.world.site, m, m.config.replace('wipe: false', 'wipe: true'))],
    ['on trial', (story: Story, m: Machine) => tryConfig(story.world.site, m, m.config.replace('wipe: false', 'wipe: true'), 10 * MINUTE)],
  ])('a configuration that is %s: refused where this would undo it', async (_, prepare) => {
    const story = createStory({ seed: 3 })
    story.start()
    await story.pass(MINUTE)
    prepare(story, story.world.machine('wk-2'))
    story.create({ name: 'op', spec: { kind: 'config', config: { patches: [{ inline: SYSCTL }] } } })
    await settled(story)
    expect(status(story).preflight?.refusals.map(r => r.rule)).toEqual(['ConfigPending'])
    expect(applied(story)).toEqual([])
  })
})
