// What Talos has to be told before it hands out a talosconfig: printed by ichor install, brought to the control planes by an operation, and judged by the
// official talosctl.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire } from '../cluster-on-the-wire.ts'
import { realParts } from '../real/parts.ts'

const ichor = join(import.meta.dirname, '..', '..', 'bin', 'ichor')
const talosctl = await realParts('talosctl')
const LONG = 120_000
const ACCESS = { enabled: true, allowedRoles: ['os:admin'], allowedKubernetesNamespaces: [NAMESPACE] }

describe('access to the Talos API from within', () => {
  let cluster: ClusterOnTheWire
  let patch: string
  const run = (...args: readonly string[]) =>
    promisify(execFile)(ichor, [...args, '--kubeconfig', cluster.kubernetes.kubeconfigPath, '-n', NAMESPACE], {
      env: { ...process.env, ICHOR_SOURCE: '1' },
    })

  beforeAll(async () => {
    cluster = await startCluster({ controlPlanes: 3, workers: 1, from: 'v1.13.5', speed: 50 })
    // As talosctl has generated it for years. A configuration without any features takes its first one with a reboot alone.
    for (const machine of cluster.world.machines) {
      const [first, ...others] = parseAllDocuments(machine.config)
      first!.setIn(['machine', 'features'], { rbac: true, stableHostname: true })
      machine.config = [first!, ...others].map(String).join('---\n')
    }
    await cluster.register()
    await cluster.startController({ identity: 'ichor-0' })
    await vi.waitFor(
      async () => {
        const found = await cluster.client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
        expect((found.ok ? (found.value['status'] as { machines?: { summary?: string } }) : {}).machines?.summary).toBe('4/4')
      },
      { timeout: LONG, interval: 50 },
    )
    patch = join(cluster.folder, 'talos-access.yaml')
    writeFileSync(patch, (await run('install', '--talos-patch')).stdout)
  }, LONG)
  afterAll(() => cluster?.close())

  it('is printed for the namespace, and nothing else is', () => {
    expect(parse(readFileSync(patch, 'utf8'))).toEqual({ machine: { features: { kubernetesTalosAPIAccess: ACCESS } } })
  })

  it(
    'is missing: the install is refused, with the patch and with the command that brings it to the control planes that Ichor knows',
    async () => {
      const refused = run('install', '--image', 'registry.example.org/ichor:0.1.0', '--talos-cluster', 'here')
      const { stderr, code } = await refused.then(
        () => ({ stderr: '', code: 0 }),
        (error: { stderr: string; code: number }) => error,
      )
      expect(code).toBe(3)
      expect(stderr).toContain('serviceaccount.talos.dev/here-talosconfig in ichor-system: this cluster has no Talos API access')
      for (const line of readFileSync(patch, 'utf8').trimEnd().split('\n')) expect(stderr).toContain(line)
      const [, command = ''] = /: ichor (config rollout .*)$/m.exec(stderr) ?? []
      expect(command).toMatch(/--cluster home --machines cp-1-\w+,cp-2-\w+,cp-3-\w+ /)

      // As it was printed, from where the file is.
      await promisify(execFile)(ichor, [...command.split(' '), '--yes'], {
        cwd: cluster.folder,
        env: { ...process.env, ICHOR_SOURCE: '1' },
      })
      for (const { name, config } of cluster.world.machines) {
        const [first] = parseAllDocuments(config)
        const { machine } = first!.toJS() as { machine: { features?: { kubernetesTalosAPIAccess?: object } } }
        expect(machine.features?.kubernetesTalosAPIAccess, name).toEqual(name.startsWith('cp-') ? ACCESS : undefined)
      }
      expect(cluster.world.journal.of('boot')).toEqual([])
      expect(cluster.faults).toEqual([])
    },
    LONG,
  )

  it.skipIf('missing' in talosctl)(
    `is taken by talosctl for a control plane, beside what others were allowed${'missing' in talosctl ? ` (${talosctl.missing})` : ''}`,
    async () => {
      if ('missing' in talosctl) return
      const talos = (...args: readonly string[]) => promisify(execFile)(talosctl.paths.talosctl, args, { cwd: cluster.folder })
      await talos('gen', 'config', 'home', 'https://10.5.0.2:6443', '--output-dir', 'generated')
      const others = {
        machine: {
          features: { kubernetesTalosAPIAccess: { enabled: true, allowedRoles: ['os:reader'], allowedKubernetesNamespaces: ['others'] } },
        },
      }
      writeFileSync(join(cluster.folder, 'others.json'), JSON.stringify(others))
      await talos(
        'machineconfig',
        'patch',
        'generated/controlplane.yaml',
        '-p',
        '@others.json',
        '-p',
        '@talos-access.yaml',
        '-o',
        'patched.yaml',
      )
      await talos('validate', '--config', 'patched.yaml', '--mode', 'metal', '--strict')
      const [first] = parseAllDocuments(readFileSync(join(cluster.folder, 'patched.yaml'), 'utf8'))
      expect((first!.toJS() as typeof others).machine.features.kubernetesTalosAPIAccess).toEqual({
        enabled: true,
        allowedRoles: ['os:reader', 'os:admin'],
        allowedKubernetesNamespaces: ['others', NAMESPACE],
      })
    },
    LONG,
  )
})
