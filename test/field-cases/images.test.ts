import { describe, expect, it } from 'vitest'
import { RESOURCE } from '../../src/world/objects.ts'
import { runningSlot } from '../../src/world/slots.ts'
import { installedFrom, play, playWithDeaths } from './play.ts'

const S1 = 'a'.repeat(64)

describe('the configuration names the plain installer, the machine runs extensions [B013 home-operations/tuppr#478, siderolabs/talos#8467]', () => {
  const cluster = {
    talos: 'v1.12.2',
    kubernetes: 'v1.34.1',
    schematic: S1,
    extensions: ['iscsi-tools'],
    installImage: () => 'ghcr.io/siderolabs/installer:v1.12.2',
  }

  it('what runs is the truth: the image is built from its schematic', async () => {
    const { run, end } = await playWithDeaths({ cluster, spec: { talos: { version: 'v1.12.4' } } })
    const image = `factory.talos.dev/metal-installer/${S1}:v1.12.4`
    expect(end.phase).toBe('Completed')
    expect(installedFrom(run)).toEqual(Array(5).fill(image))
    expect(run.world.machines.map(m => runningSlot(m.disk).extensions)).toEqual(Array(5).fill(['iscsi-tools']))
    expect(run.world.journal.entries().filter(e => e.detail.includes('ghcr.io/siderolabs/installer'))).toEqual([])
    expect(run.world.machines.map(m => m.config.includes(image))).toEqual(Array(5).fill(true))
  })

  it('where the factory is unknown it is refused before any write, telling what to set', async () => {
    const { run, end } = await play({
      cluster,
      spec: { talos: { version: 'v1.12.4' }, override: true },
      arrange: ({ world }) => {
        for (const machine of world.machines) machine.disk.slots.A = { ...runningSlot(machine.disk), factory: '' }
      },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(run.status().preflight?.refusals.map(r => [r.rule, r.overridden])).toEqual([['SchematicMismatch', false]])
    expect(run.status().message).toContain('Set spec.imageFactory of the TalosCluster')
  })
})

describe('the installer fails [B019 siderolabs/talos#11210, siderolabs/talos#10986, siderolabs/talos#11156]', () => {
  const lines = ['failed to probe bootloader: no such file or directory']

  it('with the last line of the installer in the reason, and nobody after it is touched', async () => {
    const { run, end } = await playWithDeaths({
      spec: { talos: { version: 'v1.13.9' } },
      arrange: ({ world }) => world.fault('wk-1', { installer: { exitCode: 1, lines, times: Infinity } }),
    })
    expect(end).toEqual({
      phase: 'Paused',
      reason: 'InstallFailed',
      machines: [
        'cp-1 v1.13.9 Completed',
        'cp-2 v1.13.9 Completed',
        'cp-3 v1.13.9 Completed',
        'wk-1 v1.13.5 Failed',
        'wk-2 v1.13.5 Pending',
      ],
    })
    expect(run.status().message).toMatch(/^wk-1: .*exit code 1: .*failed to probe bootloader.*still runs v1\.13\.5, wanted v1\.13\.9\.$/)
    expect(run.world.journal.of('reboot-requested', 'wk-1')).toEqual([])
    expect(run.world.journal.of('pulled', 'wk-2')).toEqual([])
  })

  it('on older machines it reboots by itself, healthy on the version before: that is no success', async () => {
    const { run, end } = await playWithDeaths({
      cluster: { talos: 'v1.11.5', kubernetes: 'v1.34.1' },
      spec: { talos: { version: 'v1.12.4' } },
      arrange: ({ world }) => world.fault('wk-1', { installer: { exitCode: 1, lines, times: Infinity } }),
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'BootedOldVersion' })
    expect(end.machines.slice(3)).toEqual(['wk-1 v1.11.5 Failed', 'wk-2 v1.11.5 Pending'])
    expect(run.status().message).toMatch(/^wk-1 still runs v1\.11\.5, wanted v1\.12\.4: either the installer failed or/)
    expect(run.world.journal.of('down', 'wk-1')).toHaveLength(1)
  })

  it('the next operation may take the lock over, and a retry installs anew', async () => {
    const { run, end } = await play({
      spec: { talos: { version: 'v1.13.9' }, machineSelector: { matchLabels: { 'kubernetes.io/role': 'spare' } } },
      allowed: { attempts: 2 },
      arrange: ({ world }) => {
        world.fault('wk-1', { installer: { exitCode: 1, lines, times: 1 } })
        for (const machine of world.store.list('talosmachines.ichor.maesh.dev').items.filter(m => m.metadata.name.startsWith('wk-1-'))) {
          world.store.update('talosmachines.ichor.maesh.dev', {
            ...machine,
            metadata: { ...machine.metadata, labels: { ...machine.metadata.labels, 'kubernetes.io/role': 'spare' } },
          })
        }
      },
      drive: async run => {
        await run.settled()
        expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'InstallFailed' })
        run.create({ name: 'next', spec: { kind: 'talos', talos: { version: 'v1.13.9' }, paused: true } })
        await run.resume()
        await run.settled()
      },
    })
    expect(end).toMatchObject({ phase: 'Completed' })
    expect(end.machines).toContain('wk-1 v1.13.9 Completed')
    expect(run.world.store.list(RESOURCE.leases).items.map(l => (l.spec as { holderIdentity?: string }).holderIdentity)).not.toContain(
      'ichor-controller/op/ichor-system/up',
    )
  })
})
