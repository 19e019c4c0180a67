// What happens to machines, in the invented cluster.
import { describe, expect, it } from 'vitest'
import { sha256 } from '../../core/sha256.ts'
import { createStory, NAMESPACE, type Story } from '../../storm/story.ts'
import { setConfig } from '../../world/configuration.ts'
import { RESOURCE } from '../../world/objects.ts'
import { ICHOR } from '../../world/ports/home.ts'
import { encodeBase64, asciiBytes } from '../../world/ports/base64.ts'
import {
  MINUTE,
  SYSCTL,
  APPENDS,
  CUTS,
  ON_BOOT,
  begun,
  resume,
  status,
  settled,
  rolledOut,
  applied,
  times,
  machineNames,
  whenOpen,
} from '../../storm/config-story.ts'

describe('every machine has the patched configuration in the end', () => {
  it.each(['try', 'no-reboot', 'staged', 'reboot'])('in the mode %s', async mode => {
    const story = await rolledOut({ mode, patches: [{ inline: SYSCTL }] })
    expect(status(story)).toMatchObject({ phase: 'Completed', progress: { done: 5, total: 5 } })
    const { world } = story
    for (const machine of world.machines) {
      expect(times(machine.onDisk ?? machine.config, 'net.core.somaxconn: "65535"')).toBe(1)
      expect(times(machine.config, 'somaxconn')).toBe(mode === 'staged' ? 0 : 1)
    }
    const perMachine = { try: ['tried', ''], 'no-reboot': [''], staged: ['staged'], reboot: ['staged'] }[mode]
    for (const name of machineNames(story)) expect(applied(story, name)).toEqual(perMachine)
    expect(world.journal.of('reboot-requested')).toHaveLength(mode === 'reboot' ? 5 : 0)
    expect(world.store.list(RESOURCE.nodes).items.filter(n => (n['spec'] as { unschedulable?: boolean }).unschedulable)).toEqual([])
  })

  it('a worker first, then control planes with the leader last, one at a time', async () => {
    const story = await rolledOut({ patches: [{ inline: SYSCTL }] }, {}, { maxUnavailable: 2 })
    const { world } = story
    const leader = world.machines.find((m, i) => m.role === 'controlplane' && world.member(i).id === world.etcd.leader())
    const order = applied(story)
      .filter(e => e.endsWith('tried'))
      .map(e => e.split(' ')[0])
    expect(order[0]).toBe('wk-1')
    expect(new Set(order.slice(1, 4))).toEqual(new Set(['cp-1', 'cp-2', 'cp-3']))
    expect(order[3]).toBe(leader?.name)
    expect(order[4]).toBe('wk-2')
  })

  it('from several documents, and from objects beside the operation', async () => {
    const story = createStory({ seed: 3 })
    const object = (resource: string, kind: string, data: Record<string, string>): void =>
      void story.world.store.create(resource, { apiVersion: 'v1', kind, metadata: { name: 'patches', namespace: NAMESPACE }, data })
    object(RESOURCE.secrets, 'Secret', { 'dns.yaml': encodeBase64(asciiBytes(SYSCTL)) })
    object(RESOURCE.configMaps, 'ConfigMap', {
      'clock.yaml': 'apiVersion: v1alpha1\nkind: TimeSyncConfig\nntp:\n  servers: [time.example.com]\n',
    })
    story.start()
    await story.pass(MINUTE)
    const patches = [{ secretKeyRef: { name: 'patches', key: 'dns.yaml' } }, { configMapKeyRef: { name: 'patches', key: 'clock.yaml' } }]
    story.create({ name: 'op', spec: { kind: 'config', config: { patches } } })
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Completed', progress: { done: 5 } })
    expect(Object.keys(status(story).preflight?.pins ?? {})).toEqual(['Secret/patches/dns.yaml', 'ConfigMap/patches/clock.yaml'])
    for (const machine of story.world.machines) expect(machine.config).toMatch(/somaxconn[\s\S]*^---\n[\s\S]*TimeSyncConfig/m)
    expect(JSON.stringify(status(story))).not.toContain('somaxconn')
  })

  it('leaves a machine alone whose configuration says it already, and is over at once where all do', async () => {
    const story = await rolledOut({ patches: [{ inline: SYSCTL }] })
    story.create({ name: 'again', spec: { kind: 'config', config: { patches: [{ inline: SYSCTL }] } } })
    await story.until('it is over', () => story.operation('again')?.status.phase === 'Completed')
    expect(story.operation('again')?.status.progress).toMatchObject({ done: 0, skipped: 5 })
    for (const name of machineNames(story)) expect(applied(story, name)).toEqual(['tried', ''])
  })

  it('the same name again, for a patch that adds each time: refused, and done when asked for', async () => {
    const story = await rolledOut({ patches: [{ inline: APPENDS }] })
    expect(status(story).phase).toBe('Completed')
    await story.until('the lock is free', () => story.holder() === '')
    story.remove('op')
    story.create({ name: 'op', spec: { kind: 'config', config: { patches: [{ inline: APPENDS }] } } })
    await settled(story)
    expect(status(story).preflight?.refusals.map(r => r.rule)).toEqual(['DoneAlready'])
    for (const machine of story.world.machines) expect(times(machine.config, 'ichor.example.com')).toBe(1)
  })

  it('a machine that only waits for its reboot is given that', async () => {
    const story = await rolledOut({ mode: 'staged', patches: [{ inline: ON_BOOT }] })
    story.create({ name: 'boot', spec: { kind: 'config', config: { mode: 'reboot', patches: [{ inline: ON_BOOT }] } } })
    await story.until('it is over', () => story.operation('boot')?.status.phase === 'Completed')
    for (const machine of story.world.machines) {
      expect(times(machine.config, 'GODEBUG')).toBe(1)
      expect(applied(story, machine.name)).toEqual(['staged'])
    }
    expect(story.world.journal.of('reboot-requested')).toHaveLength(5)
  })
})

describe('the hash triple', () => {
  it('read and computed stand in status before the write, and applied after it', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: APPENDS }] })
    const before = story.world.machine('wk-1').config
    let atWrite: string | undefined
    story.world.journal.onEntry(({ what, machine }) => {
      if (what !== 'config-applied' || machine !== 'wk-1') return
      atWrite = JSON.stringify(status(story).machines?.find(t => t.hostname === 'wk-1')?.goal)
    })
    const machine = await whenOpen(story, 'wk-1', step => step === 'well')
    const target = status(story).machines?.find(t => t.hostname === 'wk-1')
    expect(target?.goal).toMatchObject({ read: sha256(before), computed: sha256(machine.config) })
    expect(atWrite).toBe(JSON.stringify(target?.goal))
    expect(target?.receipts).toMatchObject([{ step: 'apply', value: `sha256 ${sha256(machine.config)}` }])
  })

  it.each(['try', 'no-reboot', 'staged', 'reboot'])('an answer that is lost is not asked for by a second patch: %s', async mode => {
    const story = await begun({}, { mode, patches: [{ inline: APPENDS }] })
    const fault = { kind: 'unreachable', message: 'connection reset' } as const
    story.world.calls.next({ name: 'applyConfiguration', times: 2 }, { do: 'fail', when: 'after', fault })
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    for (const machine of story.world.machines) expect(times(machine.onDisk ?? machine.config, 'ichor.example.com')).toBe(1)
  })

  it('a call that never came through is made again', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: APPENDS }] })
    const fault = { kind: 'unreachable', message: 'no route to host' } as const
    story.world.calls.next({ name: 'applyConfiguration', times: 2 }, { do: 'fail', when: 'before', fault })
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    expect(applied(story, 'wk-1')).toEqual([''])
  })
})

describe('a configuration that a machine is not well with', () => {
  it('cuts it off: Talos puts the old one back, and nobody else is given it', async () => {
    const story = await rolledOut({ patches: [{ inline: CUTS }] })
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigRejected' })
    expect(status(story).message).toMatch(/wk-1 was not well with the patched configuration, and Talos has put the one from before back/)
    expect(new Set(applied(story).map(e => e.split(' ')[0]))).toEqual(new Set(['wk-1']))
    expect(applied(story, 'wk-1')).not.toContain('')
    expect(story.world.machine('wk-1').config).not.toContain('192.0.2.1')
    expect(story.world.machine('wk-1').cut).toBe(false)
  })

  it('cuts it off in the mode no-reboot: the rollout stops there', async () => {
    const story = await rolledOut({ mode: 'no-reboot', patches: [{ inline: CUTS }] })
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'MachineUnreachable' })
    expect(applied(story)).toEqual(['wk-1 '])
  })

  it('needs a reboot: refused with the mode that would do, before anything is written', async () => {
    const story = await rolledOut({ patches: [{ inline: ON_BOOT }] })
    expect(status(story).preflight?.refusals.map(r => r.rule)).toEqual(['RebootNeeded'])
    expect(status(story).message).toMatch(/takes this change only with a reboot; use the mode reboot, or staged\. The same holds for/)
    expect(applied(story)).toEqual([])
  })

  it.each(['try', 'no-reboot', 'staged', 'reboot'])('one machine refuses it: none is given it, in the mode %s', async mode => {
    const story = createStory({ seed: 3 })
    story.start()
    await story.pass(MINUTE)
    story.world.faults.of(story.world.machine('wk-2')).refusesConfig = '1 error occurred: static hostname is already set in v1alpha1 config'
    story.create({ name: 'op', spec: { kind: 'config', config: { mode, patches: [{ inline: SYSCTL }] } } })
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused' })
    expect(status(story).message).toMatch(/wk-2 refuses the patched configuration: .*static hostname/)
    expect(applied(story)).toEqual([])
    expect(story.holder()).toBe('')
  })

  it('one begins to refuse it in the middle: it stops there', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: SYSCTL }] })
    await whenOpen(story, 'wk-1', step => step === 'well')
    story.world.faults.of(story.world.machine('wk-2')).refusesConfig = 'no'
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'ConfigRejected' })
    expect(applied(story, 'wk-2')).toEqual([])
  })

  it('keeps a static pod from coming up: it stops at the first control plane', async () => {
    const story = await begun(
      {},
      { mode: 'no-reboot', patches: [{ inline: 'cluster:\n  apiServer:\n    image: registry.k8s.io/kube-apiserver:v1.36.1\n' }] },
    )
    story.world.faults.crashing.set('kube-apiserver:v1.36.1', 'Error: unknown flag: --gone')
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'StaticPodTimeout' })
    expect(status(story).message).toMatch(/cp-1: kube-apiserver does not stay up with the patched configuration: CrashLoopBackOff/)
    expect(new Set(applied(story).map(e => e.split(' ')[0]))).toEqual(new Set(['wk-1', 'cp-1']))
  })
})

describe('a controller that is not there', () => {
  it('while a machine is on trial: Talos ends the trial, and the next controller tries again', async () => {
    const story = createStory({ seed: 3 })
    const first = story.start()
    await story.pass(MINUTE)
    story.create({ name: 'op', spec: { kind: 'config', config: { patches: [{ inline: APPENDS }] } } })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    first.kill()
    await story.pass(5 * MINUTE)
    expect(story.world.machine('wk-1').config).not.toContain('ichor.example.com')
    story.start('ichor-1')
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    expect(applied(story, 'wk-1')).toEqual(['tried', 'tried', ''])
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  it('and comes back in time: the trial that runs is taken up', async () => {
    const story = createStory({ seed: 3 })
    const first = story.start()
    await story.pass(MINUTE)
    story.create({ name: 'op', spec: { kind: 'config', config: { patches: [{ inline: APPENDS }] } } })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    first.kill()
    await story.pass(20_000)
    story.start('ichor-1')
    await settled(story)
    expect(status(story).phase).toBe('Completed')
    expect(applied(story, 'wk-1')).toEqual(['tried', ''])
  })
})

describe('a pause', () => {
  it('after a write of which nobody heard for longer than the operation waits: never patched a second time', async () => {
    const story = await begun({}, { mode: 'no-reboot', patches: [{ inline: APPENDS }] })
    const machine = story.world.machine('wk-1')
    // It takes the configuration, and is out of sight from then on.
    const mend = story.world.calls.intercept(({ port, target, name }) =>
      port === 'talos' && machine.addresses.includes(target) && (name === 'applyConfiguration' || applied(story, 'wk-1').length > 0)
        ? { do: 'fail', when: 'after', fault: { kind: 'unreachable', message: 'no route to host' } }
        : undefined,
    )
    await settled(story)
    expect(status(story)).toMatchObject({ phase: 'Paused', failureReason: 'MachineUnreachable' })
    mend()
    await resume(story)
    await whenOpen(story, 'wk-1', step => step === 'well')
    story.edit('op', { spec: { paused: true } })
    await story.until('it is paused', () => status(story).phase === 'Paused')
    story.edit('op', { spec: { paused: false } })
    await story.until('it is done', () => status(story).phase === 'Completed')
    expect(times(machine.config, 'ichor.example.com')).toBe(1)
  })

  it('while a machine is on trial leaves nothing there, and the machine is tried again afterwards', async () => {
    const story = await begun({}, { patches: [{ inline: APPENDS }] })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    story.edit('op', { spec: { paused: true } })
    await story.until('it is paused', () => status(story).phase === 'Paused')
    await story.pass(4 * MINUTE)
    expect(story.world.machine('wk-1').config).not.toContain('ichor.example.com')
    story.edit('op', { spec: { paused: false } })
    await story.until('it is done', () => status(story).phase === 'Completed')
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })

  it('and a resume while the trial still runs waits until Talos has ended it', async () => {
    const story = await begun({}, { patches: [{ inline: APPENDS }] })
    await whenOpen(story, 'wk-1', step => step === 'trial')
    story.edit('op', { spec: { paused: true } })
    await story.until('it is paused', () => status(story).phase === 'Paused')
    story.edit('op', { spec: { paused: false } })
    await story.until('it is done', () => status(story).phase === 'Completed')
    for (const m of story.world.machines) expect(times(m.config, 'ichor.example.com')).toBe(1)
  })
})

describe('a machine that is not ready', () => {
  const KUBELET = 'ghcr.io/siderolabs/kubelet'
  /** Its configuration names a kubelet that no registry has. */
  const sick = async (spec: object): Promise<Story> => {
    const story = createStory({ seed: 3 })
    story.start()
    await story.pass(MINUTE)
    const { world } = story
    const machine = world.machine('wk-2')
    world.registry.remove('kubelet:v1.36.9')
    setConfig(world.site, machine, machine.config.replace(/kubelet:v[\d.]+/, 'kubelet:v1.36.9'))
    await story.pass(2 * MINUTE)
    const names = world.store
      .list(ICHOR.machines)
      .items.flatMap(({ metadata }) => (metadata.name.startsWith('wk-2-') ? [metadata.name] : []))
    const patches = [{ inline: `machine:\n  kubelet:\n    image: ${KUBELET}:v1.36.2\n` }]
    story.create({ name: 'op', spec: { kind: 'config', machineSelector: { names }, ...spec, config: { mode: 'no-reboot', patches } } })
    await settled(story)
    return story
  }

  it('keeps everything as it is', async () => {
    const story = await sick({})
    expect(status(story).preflight?.refusals).toMatchObject([{ rule: 'MachineNotReady', overridable: true }])
    expect(status(story).message).toMatch(/wk-2 is not ready: stage running, services: kubelet/)
    expect(applied(story)).toEqual([])
  })

  it('is given the patch that is its cure where that is asked for, and has to be well with it', async () => {
    const story = await sick({ override: true })
    expect(status(story)).toMatchObject({ phase: 'Completed', progress: { done: 1, total: 1 } })
    expect(applied(story)).toEqual(['wk-2 '])
    expect(story.world.isUp(story.world.machine('wk-2'))).toBe(true)
  })
})
