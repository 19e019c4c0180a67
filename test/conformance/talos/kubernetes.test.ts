// What talosctl does to both sides of a cluster at once, simulated machines and the simulated Kubernetes API over the same world: dry runs of an
// upgrade of Kubernetes and of new authorities, and health as the client itself sees it. Held against what real machines of 1.12.1 said.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KubernetesSide, simulatedKubernetes } from '../../../src/app/demo/kubernetes.ts'
import { type Machines, startMachines } from '../../machines-on-the-wire.ts'
import { countInvocations, hasTalosctl, type Ran, talosctl as run } from './talosctl.ts'

countInvocations()

describe.skipIf(!hasTalosctl)('talosctl and the Kubernetes of a cluster', () => {
  let home: string
  let machines: Machines
  let kubernetes: KubernetesSide
  const faults: unknown[] = []
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'talosctl-'))
    machines = await startMachines({
      ...{ seed: 5, controlPlanes: 3, workers: 1, talos: 'v1.12.1', kubernetes: 'v1.34.3', speed: 50, clusterName: 'home' },
      kubernetesAdmin: async () => kubernetes.admin,
    })
    kubernetes = await simulatedKubernetes(machines.world, home, error => faults.push(error))
    await writeFile(join(home, 'admin'), await machines.talosconfig())
  })
  afterAll(async () => {
    await kubernetes?.close()
    await machines.close()
    await rm(home, { recursive: true, force: true })
    expect(faults).toEqual([])
  })

  const talosctl = (...args: string[]): Promise<Ran> => run(home, ['-n', machines.address(0), ...args])
  const everywhere = () => ({
    controlPlanes: [0, 1, 2].map(machines.address),
    all: [0, 1, 2, 3].map(machines.address),
  })

  test('an upgrade of Kubernetes to another minor is looked at, and not begun', { timeout: 60_000 }, async () => {
    const { code, out, err } = await talosctl('upgrade-k8s', '--dry-run', '--to', '1.35.0')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const lines = out.trimEnd().split('\n')
    const { controlPlanes, all } = everywhere()
    const quoted = (addresses: readonly string[]) => `[${addresses.map(address => `"${address}"`).join(' ')}]`
    expect(lines.slice(0, 3)).toEqual([
      'automatically detected the lowest Kubernetes version 1.34.3',
      `discovered controlplane nodes ${quoted(controlPlanes)}`,
      `discovered worker nodes ${quoted(all.slice(3))}`,
    ])
    expect(lines.slice(3, 7).toSorted()).toEqual(
      all.map(address => `> "${address}": Talos version 1.12.1 is compatible with Kubernetes version 1.35.0`).toSorted(),
    )
    expect(lines.slice(7, 9)).toEqual([
      'checking for removed Kubernetes component flags',
      'checking for removed Kubernetes API resource versions',
    ])
    const pulls = (image: string, on: readonly string[]) => on.map(address => ` > "${address}": pre-pulling ${image}:v1.35.0`)
    const components = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
    const updates = (name: string, from: string, on: readonly string[]) =>
      on.flatMap(address => [` > "${address}": starting update`, ` > update ${name}: ${from} -> 1.35.0`, ' > skipped in dry-run'])
    expect(lines.slice(9, lines.indexOf('updating manifests'))).toEqual([
      ...components.flatMap(name => pulls(`registry.k8s.io/${name}`, controlPlanes)),
      ...pulls('ghcr.io/siderolabs/kubelet', all),
      ...components.flatMap(name => [`updating "${name}" to version "1.35.0"`, ...updates(name, 'v1.34.3', controlPlanes)]),
      'updating kube-proxy to version "1.35.0"',
      ...controlPlanes.flatMap(address => [` > "${address}": starting update`, ' > skipped in dry-run']),
      'updating kubelet to version "1.35.0"',
      ...updates('kubelet', '1.34.3', all),
    ])
    const manifests = lines.slice(lines.indexOf('updating manifests') + 1)
    expect(manifests.filter((_, at) => at % 2 === 0).map(line => line.replace(' > processing manifest ', ''))).toEqual([
      expect.stringMatching(/^v1\.Secret\/kube-system\/bootstrap-token-[a-z0-9]{6}$/),
      'rbac.authorization.k8s.io/v1.ClusterRoleBinding/system-bootstrap-approve-node-client-csr',
      'rbac.authorization.k8s.io/v1.ClusterRoleBinding/system-bootstrap-node-bootstrapper',
      'rbac.authorization.k8s.io/v1.ClusterRoleBinding/system-bootstrap-node-renewal',
      'apps/v1.DaemonSet/kube-system/kube-flannel',
      'apps/v1.DaemonSet/kube-system/kube-proxy',
      'v1.ConfigMap/kube-system/kubeconfig-in-cluster',
      'rbac.authorization.k8s.io/v1.ClusterRoleBinding/system:talos-nodes',
      'rbac.authorization.k8s.io/v1.ClusterRole/system:talos-nodes',
    ])
    expect(new Set(manifests.filter((_, at) => at % 2 === 1))).toEqual(new Set([' < no changes']))
    // talosctl writes each configuration back, with its own comments.
    for (const { config } of machines.world.machines) expect(config).not.toContain('1.35.0')
  })

  test('an image that no registry has ends it before anything else', { timeout: 60_000 }, async () => {
    machines.world.registry.remove('kube-scheduler:v1.34.4')
    const { code, out, err } = await talosctl('upgrade-k8s', '--dry-run', '--to', '1.34.4')
    expect(code).toBe(1)
    expect(err).toContain('failed pre-pulling images: error pre-pulling registry.k8s.io/kube-scheduler:v1.34.4 on ')
    expect(err).toContain('code = NotFound')
    expect(out).not.toContain('updating')
  })

  test('the roots of trust are shown to an administrator, and new ones are made for show', { timeout: 60_000 }, async () => {
    const { controlPlanes, all } = everywhere()
    const where = ['--control-plane-nodes', controlPlanes.join(','), '--worker-nodes', all.slice(3).join(',')]
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    const { out } = await talosctl('rotate-ca', '--talos=false', ...where)
    expect(out).toContain('> Dry-run mode enabled, no changes were made to the cluster')
    const talos = await talosctl('rotate-ca', '--kubernetes=false', ...where)
    expect(talos.out).toContain(`> Current Talos CA:\n  crt: ${base64(machines.ca.crt)}\n  key: ${base64(machines.ca.key)}\n`)
    // Of a dry run no talosconfig comes that it could go on with: real machines end it in the same way.
    expect([talos.code, talos.err]).toEqual([1, 'failed to create new client with rotated Talos CA: failed to determine endpoints\n'])
    for (const address of all) expect(talos.out).toContain(`  - ${address}: skipped (dry-run)`)
  })

  test('health, as the client finds it', { timeout: 60_000 }, async () => {
    const { code, err } = await talosctl('health', '--server=false', '--wait-timeout', '40s')
    expect(code).toBe(0)
    expect(err.match(/: (OK|SKIP)$/gm)).toHaveLength(16)
    machines.world.userCordon('wk-1')
    const cordoned = await talosctl('health', '--server=false', '--wait-timeout', '5s')
    machines.world.userUncordon('wk-1')
    expect(cordoned.code).toBe(1)
    expect(cordoned.err).toContain('some nodes are not schedulable: [wk-1]')
  })
})
