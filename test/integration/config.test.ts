// A rollout of configuration, asked for with the CLI as people type it, carried out by the controller as a process of its own: machines on the wire, and
// the Kubernetes API once as the world plays it and once as it is.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { API_VERSION } from '../../src/api/names.ts'
import { sha256 } from '../../src/core/sha256.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire, type Process } from '../cluster-on-the-wire.ts'
import { realParts } from '../real/parts.ts'

const ichor = join(import.meta.dirname, '..', '..', 'bin', 'ichor')
const LONG = 240_000
const eventually = <T>(check: () => T | Promise<T>, timeout = LONG - 5_000) => vi.waitFor(check, { timeout, interval: 20 })
const servers = await realParts('etcd', 'kube-apiserver')

const ADDS = 'machine:\n  certSANs:\n    - on-the-wire.example.com\n'
const PASSWORD = 'hunter2hunter2'
const SECRET = `apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: registry.example.com\nusername: ichor\npassword: ${PASSWORD}\n`
const CUTS =
  'machine:\n  network:\n    interfaces:\n      - interface: eth0\n        routes:\n          - network: 0.0.0.0/0\n            gateway: 192.0.2.1\n'

describe.each([
  { api: 'as the world plays it', isReal: false },
  { api: 'as it is', isReal: true },
])('ichor config rollout, with the API $api', ({ isReal }) => {
  let cluster: ClusterOnTheWire
  let controller: Process
  const run = (...args: readonly string[]) =>
    promisify(execFile)(ichor, [...args, '--kubeconfig', cluster.kubernetes.kubeconfigPath, '-n', NAMESPACE], {
      env: { ...process.env, ICHOR_SOURCE: '1' },
    })
  const file = (name: string, text: string): string => {
    const path = join(cluster.folder, name)
    writeFileSync(path, text)
    return path
  }
  const create = async (resource: (typeof RESOURCE)[keyof typeof RESOURCE], object: object): Promise<void> => {
    const created = await cluster.client.create(resource, { namespace: NAMESPACE }, object as never)
    if (!created.ok) throw new Error(created.fault.message)
  }
  const operation = (name: string, config: object): Promise<void> =>
    create(RESOURCE.talosOperation, {
      apiVersion: API_VERSION,
      kind: 'TalosOperation',
      metadata: { name },
      spec: { clusterRef: { name: CLUSTER }, kind: 'config', config },
    })
  const applied = (machine?: string): readonly string[] =>
    cluster.world.journal.of('config-applied', machine).map(e => `${e.machine} ${e.detail}`.trim())
  const times = (text: string, part: string): number => text.split(part).length - 1

  beforeAll(async () => {
    if (isReal && 'missing' in servers) return
    cluster = await startCluster({ controlPlanes: 3, workers: 2, from: 'v1.13.5', speed: 20, realApiServer: isReal })
    if (cluster.kubernetes.needsCrds) await run('install', '--crds-only')
    await cluster.register()
    controller = await cluster.startController({ identity: 'ichor-0' })
    await eventually(async () => {
      const found = await cluster.client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
      const status = (found.ok ? found.value['status'] : {}) as { machines?: { summary?: string } }
      expect(status.machines?.summary).toBe('5/5')
    })
  }, LONG)
  afterAll(() => cluster?.close())

  it.skipIf(isReal && 'missing' in servers)(
    'shows what would change on each machine, without secrets, and changes nothing',
    async () => {
      const { stdout } = await run('config', 'rollout', '-f', file('adds.yaml', ADDS), '-f', file('secret.yaml', SECRET), '--plan')
      expect(stdout).toContain(`Plan: config rollout on cluster ${CLUSTER}, 5 of 5 machines`)
      expect(stdout).toMatch(/^1 +wk-1 +worker +[0-9a-f]{12} +[0-9a-f]{12} /m)
      expect(stdout).toMatch(/What changes on cp-1, cp-2, cp-3:|What changes on cp-[123]/)
      expect(stdout).toContain('on-the-wire.example.com')
      expect(stdout).toContain('+password: (secret')
      expect(stdout).not.toContain(PASSWORD)
      expect(applied()).toEqual([])
    },
    LONG,
  )

  it.skipIf(isReal && 'missing' in servers)(
    'says at once what is wrong with a patch',
    async () => {
      const wrong = file('wrong.yaml', 'machine:\n  sysctl:\n    a: b\ncluster:\n  secret: bm90aGluZw==\n')
      await expect(run('config', 'rollout', '-f', wrong, '--yes')).rejects.toMatchObject({
        code: 3,
        stderr: expect.stringMatching(
          /UnknownField: \S*wrong\.yaml, line 2, .*machine\.sysctl: there is no such field; the nearest is sysctls[\s\S]*PatchForbidden/,
        ),
      })
    },
    LONG,
  )

  it.skipIf(isReal && 'missing' in servers)(
    'goes through over a kill -9 of the controller, and nobody is patched twice',
    async () => {
      const waiting = run('config', 'rollout', '-f', file('adds.yaml', ADDS), '--mode', 'no-reboot', '--yes', '--wait')
      await eventually(() => expect(applied('cp-1').length + applied('cp-2').length + applied('cp-3').length).toBeGreaterThan(0))
      await controller.kill('SIGKILL')
      controller = await cluster.startController({ identity: 'ichor-0' })
      await waiting
      for (const { config, name } of cluster.world.machines) {
        expect(times(config, 'on-the-wire.example.com')).toBe(1)
        expect(applied(name)).toEqual([name])
      }
      expect(applied()[0]).toBe('wk-1')
      expect(cluster.faults).toEqual([])
    },
    LONG,
  )

  it.skipIf(isReal && 'missing' in servers)(
    'takes a patch from a Secret, tries it, and shows it nowhere',
    async () => {
      await create(RESOURCE.secret, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'patches' },
        data: { 'registry.yaml': Buffer.from(SECRET).toString('base64') },
      })
      await operation('registry', { mode: 'try', patches: [{ secretKeyRef: { name: 'patches', key: 'registry.yaml' } }] })
      await eventually(async () => expect(await cluster.status('registry')).toMatchObject({ phase: 'Completed' }))
      const status = JSON.stringify(await cluster.status('registry'))
      expect(status).not.toContain(PASSWORD)
      expect(status).not.toContain(sha256(SECRET))
      for (const { name, config } of cluster.world.machines) {
        expect(times(config, PASSWORD)).toBe(1)
        expect(applied(name).slice(-2)).toEqual([`${name} tried`, name])
      }
      for (const line of controller.log()) expect(JSON.stringify(line)).not.toContain(PASSWORD)
    },
    LONG,
  )

  it.skipIf(isReal && 'missing' in servers)(
    '[B145 siderolabs/talos#4724] a configuration that cuts a machine off is put back by Talos, and nobody else is given it',
    async () => {
      const before = applied().length
      await operation('gateway', { patches: [{ inline: CUTS }] })
      await eventually(async () => expect(await cluster.status('gateway')).toMatchObject({ phase: 'Paused' }))
      expect(await cluster.status('gateway')).toMatchObject({ failureReason: 'ConfigRejected' })
      expect(
        new Set(
          applied()
            .slice(before)
            .map(e => e.split(' ')[0]),
        ),
      ).toEqual(new Set(['wk-1']))
      expect(cluster.world.machine('wk-1').config).not.toContain('192.0.2.1')
      await run('operation', 'cancel', 'gateway', '--yes')
    },
    LONG,
  )

  it.skipIf(isReal && 'missing' in servers)(
    'reboots a machine into a change that needs it, drained, and only that one',
    async () => {
      const onBoot = file('boot.yaml', 'machine:\n  env:\n    LEVEL: debug\n')
      await expect(run('config', 'rollout', '-f', onBoot, '--yes')).rejects.toMatchObject({
        stderr: expect.stringContaining('RebootNeeded'),
      })
      const boots = cluster.world.journal.of('boot').length
      await run('config', 'rollout', '-f', onBoot, '--mode', 'reboot', '--machines', 'wk-2', '--name', 'boot', '--yes', '--wait')
      expect(cluster.world.machine('wk-2').config).toContain('LEVEL: debug')
      expect(
        cluster.world.journal
          .of('boot')
          .slice(boots)
          .map(e => e.machine),
      ).toEqual(['wk-2'])
      expect(cluster.world.machine('wk-1').config).not.toContain('LEVEL')
    },
    LONG,
  )
})
