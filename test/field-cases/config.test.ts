// What people reported of rollouts of configuration, and a controller that dies in the middle of one.
import { describe, expect, it } from 'vitest'
import { CUTS_OFF } from '../stories/config-cases.ts'
import { play, playWithDeaths, type Run } from './play.ts'

const ADDED = 'ichor.example.com'
const inline = (...patches: readonly string[]) => patches.map(text => ({ inline: text }))
const adds = (mode: string) => ({ config: { mode, patches: inline(`machine:\n  certSANs:\n    - ${ADDED}\n`) } })
const applied = ({ world }: Run): ReadonlySet<string> => new Set(world.journal.of('config-applied').map(e => e.machine))
const refusals = ({ status }: Run): readonly string[] => (status().preflight?.refusals ?? []).map(r => `${r.rule}: ${r.message}`)

describe('a rollout of configuration', () => {
  it.each(['try', 'no-reboot', 'staged', 'reboot'])('in the mode %s ends the same wherever the controller dies', async mode => {
    const { run, end } = await playWithDeaths({ spec: adds(mode) }, 6)
    expect(end).toMatchObject({ phase: 'Completed' })
    for (const { config, onDisk } of run.world.machines) expect((onDisk ?? config).split(ADDED)).toHaveLength(2)
  })

  it('is patched once on every machine whose controller died right after any of its writes', async () => {
    for (let write = 1; write <= 5; write++) {
      const { run } = await play({
        spec: adds('no-reboot'),
        allowed: { deaths: 1 },
        arrange: r => {
          let seen = 0
          r.world.calls.intercept(call => {
            if (call.name !== 'applyConfiguration' || ++seen !== write) return undefined
            r.process().kill()
            r.world.schedule.after(10_000, r.restart)
            return { do: 'silence', when: 'after' }
          })
        },
      })
      expect(run.status().phase).toBe('Completed')
      for (const { config } of run.world.machines) expect(config.split(ADDED), `death after write ${write}`).toHaveLength(2)
    }
  })
})

describe('a bad configuration', () => {
  it('bricks nobody: the canary is cut off, Talos puts the old one back, the second machine never gets it [B145 siderolabs/talos#4724 siderolabs/talos#4591]', async () => {
    const { run } = await playWithDeaths({ spec: { config: { patches: inline(CUTS_OFF) } } }, 4)
    expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'ConfigRejected' })
    expect([...applied(run)]).toEqual(['wk-1'])
    expect(run.world.machine('wk-1')).toMatchObject({ cut: false, config: expect.not.stringContaining('192.0.2.1') })
  })

  it('is found out by a dry run on each machine before the first is given it [B145 siderolabs/talos#4724]', async () => {
    const { run } = await play({
      spec: { config: { patches: inline('machine:\n  sysctls:\n    a: "1"\n') } },
      arrange: ({ world }) => world.fault('cp-3', { refusesConfig: '1 error occurred: invalid sysctl key' }),
    })
    expect(refusals(run)).toEqual([expect.stringMatching(/^ConfigRejected: cp-3 refuses the patched configuration: .*invalid sysctl key/)])
    expect(applied(run).size).toBe(0)
  })
})

describe('secrets of the cluster [B149 siderolabs/omni@9e062ebc]', () => {
  const key = 'LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t'
  it.each<[string, string]>([
    ['the CA of Talos, by a strategic merge', `machine:\n  ca:\n    crt: ${key}\n    key: ${key}\n`],
    ['the CA of Kubernetes', `cluster:\n  ca:\n    key: ${key}\n`],
    ['the key of service accounts', `cluster:\n  serviceAccount:\n    key: ${key}\n`],
    ['the encryption secret', `cluster:\n  secretboxEncryptionSecret: ${key}\n`],
    ['the token of machines', 'machine:\n  token: abcdef.0123456789abcdef\n'],
    ['the CA, deleted', 'cluster:\n  ca:\n    $patch: delete\n'],
    ['all around the CA, deleted', 'cluster:\n  $patch: delete\n'],
    ['the CA, by a JSON patch', `- op: replace\n  path: /cluster/ca\n  value:\n    key: ${key}\n`],
    ['a part of it, by a JSON patch', `- op: add\n  path: /cluster/ca/key\n  value: ${key}\n`],
    ['copied elsewhere, by a JSON patch', '- op: copy\n  from: /machine/token\n  path: /machine/nodeLabels/token\n'],
    ['in the second document of a patch', `apiVersion: v1alpha1\nkind: TimeSyncConfig\n---\ncluster:\n  token: abcdef.0123456789abcdef\n`],
  ])('are not changed by a patch: %s', async (_, patch) => {
    const { run } = await play({ spec: { config: { patches: inline('machine:\n  sysctls:\n    a: "1"\n', patch) } } })
    expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused' })
    expect(refusals(run).join('\n')).toMatch(/^PatchForbidden: patch 2.*a patch may not touch this|the main document cannot be deleted/m)
    expect(JSON.stringify(run.status())).not.toContain(key)
    expect(applied(run).size).toBe(0)
  })

  it('nor by the documents that hold them since Talos 1.14', async () => {
    const patch = `apiVersion: v1alpha1\nkind: KubeServiceAccountConfig\nissuer:\n  privateKey: ${key}\n`
    const { run } = await play({ cluster: { talos: 'v1.14.0-rc.1' }, spec: { config: { patches: inline(patch) } } })
    expect(refusals(run).join('\n')).toMatch(/^PatchForbidden: /m)
    expect(applied(run).size).toBe(0)
  })
})
