// What people reported of upgrades of Kubernetes, and a controller that dies in the middle of one.
import { describe, expect, it } from 'vitest'
import type { OperationSpec } from '../../src/api/talos-operation.ts'
import { talosOperation } from '../../src/api/talos-operation.ts'
import { timing } from '../../src/core/timing.ts'
import { planOperation, type Plan } from '../../src/engine/plan.ts'
import { kubernetes as kubernetesKind } from '../../src/kinds/kubernetes/kubernetes.ts'
import type { Result } from '../../src/ports/fault.ts'
import { leaveBehind } from '../../src/storm/oddities.ts'
import { restarts } from '../../src/storm/restarts.ts'
import { CLUSTER, NAMESPACE } from '../../src/storm/story.ts'
import { setConfig } from '../../src/world/configuration.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { openPorts } from '../../src/world/ports/open.ts'
import { hold, mirrored } from '../stories/kubernetes-cases.ts'
import { messages, play, playWithDeaths, type Run } from './play.ts'

const MINUTE = 60_000
const before = { kubernetes: 'v1.35.4' }
const kubernetes = { version: 'v1.36.2' }

const refusals = ({ status }: Run): readonly string[] => (status().preflight?.refusals ?? []).map(r => `${r.rule}: ${r.message}`)
const images = ({ world }: Run): ReadonlySet<string> =>
  new Set(world.machines.flatMap(m => [m.kubeletRun.image, ...[...m.pods.values()].map(pod => pod.image)]))
const planOf = async (story: Run, block: object): Promise<Plan> => {
  const definition = talosOperation([kubernetesKind])
  const spec = definition.spec.parse({ clusterRef: { name: CLUSTER }, kind: 'kubernetes', kubernetes: block }) as OperationSpec
  const observer = { ...openPorts(story.world, { name: 'plan', operation: definition }), timing: timing(), self: undefined }
  let made: Result<Plan> | undefined
  void planOperation(observer, kubernetesKind, NAMESPACE, 'planned', spec).then(plan => (made = plan))
  await story.until('the plan is there', () => made !== undefined)
  if (!made?.ok) throw new Error(made?.fault.message)
  return made.value
}
/** Once, the first time that it happens anywhere. */
const when = ({ world }: Run, what: string, act: () => void): void => {
  const stop = world.journal.onEntry(entry => {
    if (entry.what !== what) return
    stop()
    act()
  })
}

describe('an upgrade of Kubernetes', () => {
  it('ends the same wherever the controller dies', async () => {
    const { end } = await playWithDeaths({ cluster: before, spec: { kubernetes: { ...kubernetes, drain: 'minor' } } }, 6)
    expect(end).toMatchObject({ phase: 'Completed' })
  })

  it('ends the same with the only API server going away under it', async () => {
    const { end } = await playWithDeaths({
      cluster: { ...before, controlPlanes: 1, workers: 2 },
      spec: { kubernetes, acknowledge: ['api-outage'] },
      allowed: { apiOutage: true },
    })
    expect(end).toMatchObject({ phase: 'Completed' })
  })

  it('goes on where another one was left, also with components of three versions', async () => {
    let begin = 0
    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      allowed: { apiOutage: true },
      arrange: async r => {
        const change = (name: string, from: string, to: string): void => {
          const machine = r.world.machine(name)
          setConfig(r.world.site, machine, machine.config.replace(from, to))
        }
        r.byHand(() => {
          change('cp-1', 'kube-apiserver:v1.35.4', 'kube-apiserver:v1.36.2')
          change('cp-2', 'kube-apiserver:v1.35.4', 'kube-apiserver:v1.36.1')
          change('wk-2', 'kubelet:v1.35.4', 'kubelet:v1.34.2')
        })
        await r.pass(5 * MINUTE)
        begin = r.world.schedule.now()
      },
    })
    expect(run.status()).toMatchObject({ phase: 'Completed', preflight: { kubernetes: { lowest: 'v1.34.2', highest: 'v1.36.2' } } })
    const ours = run.world.journal.of('component-image', 'cp-1').filter(e => e.at >= begin)
    expect(ours.map(e => e.detail.split(' ')[0])).toEqual(['kube-controller-manager', 'kube-scheduler', 'kube-proxy', 'kubelet'])
  })

  it('restarts nothing that runs the version already', async () => {
    const { run } = await play({ cluster: { kubernetes: 'v1.36.2' }, spec: { kubernetes } })
    expect(run.status().phase).toBe('Completed')
    expect(run.world.journal.of('component-image')).toEqual([])
  })

  it('takes little more time than the restarts of its parts, one after the other', async () => {
    let told: ReturnType<typeof restarts> | undefined
    await play({
      cluster: { ...before, workers: 3 },
      spec: { kubernetes },
      arrange: ({ world }) => void (told = restarts(world, kubernetes.version)),
    })
    const own = told?.restarts() ?? []
    expect(own).toHaveLength(15)
    expect((told?.spanMs() ?? Infinity) / own.reduce((sum, { ms }) => sum + ms, 0)).toBeLessThan(1.1)
  })
})

describe('refused, before anything is touched', () => {
  it('[B007] a Kubernetes that the Talos of one machine does not know: it is named, with what to do first', async () => {
    const { run } = await play({
      cluster: { kubernetes: 'v1.32.4', talos: index => (index === 4 ? 'v1.9.5' : 'v1.10.4') },
      spec: { kubernetes: { version: 'v1.33.1' } },
    })
    expect(run.status().failureReason).toBe('PreflightRefused')
    expect(refusals(run)).toEqual([
      expect.stringMatching(
        /^TalosSkew: .*v1\.33\.1 on Talos v1\.9\.5.*It runs on wk-2\. Upgrade Talos there first, or choose Kubernetes up to 1\.32\./,
      ),
    ])
  })

  it.each([
    ['an older minor', 'v1.35.4', 'v1.34.2', /^DowngradeRefused: .*cannot go back a minor/],
    ['an older patch', 'v1.35.4', 'v1.35.1', /^DowngradeRefused: v1\.35\.1 is older than what runs: all 15 components \(v1\.35\.4\)\./],
    [
      'a minor that is skipped',
      'v1.34.2',
      'v1.36.2',
      /^MinorSkipped: all 10 components but the kubelets \(v1\.34\.2\): .*Go to 1\.35 first/,
    ],
  ])('%s', async (_, from, version, told) => {
    const { run } = await play({ cluster: { kubernetes: from }, spec: { kubernetes: { version } } })
    expect(run.status().failureReason).toBe('PreflightRefused')
    expect(refusals(run)).toEqual([expect.stringMatching(told)])
    const { order, notes } = await planOf(run, { version })
    expect(order.filter(one => one.skip !== undefined)).toEqual([])
    expect([...new Set(order.filter(one => one.stage !== 'manifests').map(one => one.from))]).toEqual([from])
    expect(notes).toContainEqual(expect.stringContaining('bootstrap manifests are applied'))
  })

  it('says in the plan of what is there already neither that something is pulled nor that manifests are applied', async () => {
    const { run } = await play({ cluster: before, spec: { kubernetes: { version: before.kubernetes } } })
    expect(run.status().phase).toBe('Completed')
    const { order, notes } = await planOf(run, { version: before.kubernetes })
    expect(order.every(one => one.skip !== undefined)).toBe(true)
    expect(notes).toEqual([])
  })

  it('an older patch passes with override', async () => {
    const { run } = await play({ cluster: before, spec: { kubernetes: { version: 'v1.35.1' }, override: true } })
    expect(run.status().phase).toBe('Completed')
  })

  it('APIs that somebody uses and the new version does not serve', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      arrange: ({ world }) => {
        world.site.faults.deprecatedApis = [
          { resource: 'example.k8s.io/v1beta1 things', removedIn: '1.36' },
          { resource: 'v1 componentstatuses', removedIn: '' },
        ]
      },
    })
    expect(refusals(run)).toEqual([expect.stringMatching(/^DeprecatedApis: .*v1beta1 things \(gone in 1\.36\)\. /)])
  })

  it('flags and feature gates that the new version does not know, on each machine that is given them', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      arrange: ({ world }) => {
        const give = (name: string, section: string, args: string): void => {
          const machine = world.machine(name)
          machine.config = machine.config.replace(`    ${section}:\n`, `    ${section}:\n        extraArgs:\n            ${args}\n`)
        }
        give('cp-2', 'apiServer', 'feature-gates: TopologyAwareHints=true,NodeSwap=true')
        give('wk-1', 'kubelet', 'pod-infra-container-image: pause:3.9')
      },
    })
    expect(run.status().failureReason).toBe('PreflightRefused')
    expect(refusals(run)).toEqual([
      expect.stringMatching(
        /^RemovedOptions: cp-2: .*v1\.36\.2 does not know.*: kube-apiserver feature gate TopologyAwareHints \(gone in 1\.36\)\. /,
      ),
      expect.stringMatching(/^RemovedOptions: wk-1: .*: kubelet --pod-infra-container-image \(gone in 1\.35\)\. /),
    ])
    expect(run.world.journal.of('component-image')).toEqual([])
  })

  it('the only API server, where nobody accepted that it goes away; a held control plane; a part of the cluster', async () => {
    const { run } = await play({
      cluster: { ...before, controlPlanes: 1, workers: 1 },
      spec: { kubernetes, machineSelector: { matchLabels: { zone: 'a' } } },
      arrange: r => hold(r, 'cp-1'),
    })
    expect(refusals(run).map(text => text.split(':')[0])).toEqual(['WholeCluster', 'HeldControlPlane', 'ApiOutage'])
  })

  it('an image whose tag tells no version', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      arrange: ({ world }) => {
        const machine = world.machine('wk-1')
        machine.config = machine.config.replace('kubelet:v1.35.4', 'kubelet:newest')
      },
    })
    expect(refusals(run)).toEqual([expect.stringMatching(/^ImageUnreadable: wk-1: the image of kubelet is \S+:newest, /)])
  })
})

describe('two changes at once [B134 blog.joshdow.ca]', () => {
  it('Flannel is not brought back beside the Cilium that took its place: refused, with what to set', async () => {
    const cluster = { kubernetes: 'v1.34.2', cilium: { version: 'v1.19.1' } }
    const spec = { kubernetes: { version: 'v1.35.4' } }
    const { run } = await play({
      cluster,
      spec,
      arrange: ({ world }) => {
        for (const machine of world.machines) machine.config = machine.config.replace('name: none', 'name: flannel')
      },
    })
    expect(refusals(run)).toEqual([
      expect.stringMatching(/^SecondNetwork: .*bring DaemonSet kube-system\/kube-flannel back.*cluster\.network\.cni\.name to none/),
    ])
    expect(run.world.journal.of('component-image')).toEqual([])
    const { run: right } = await play({ cluster, spec })
    expect(right.status().phase).toBe('Completed')
  })

  it('an upgrade of Talos is not begun while Kubernetes is upgraded', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      drive: async r => {
        await r.until('the first is at work', () => r.world.journal.of('component-image').length > 0)
        r.create({ name: 'talos', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
        await r.until('the other is judged', () => r.operation('talos')?.status.phase === 'Paused')
        expect(r.operation('talos')?.status.message).toMatch(/left half done by the kubernetes operation up|Waits for the cluster lock/)
        await r.until('the first is over', () => r.status().phase === 'Completed')
        expect(r.world.journal.of('install-began')).toEqual([])
      },
    })
    expect(run.status().phase).toBe('Completed')
  })
})

describe('images', () => {
  it('[B122] keep their repository and their suffix, and nothing is asked of the registries of old', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      allowed: { apiOutage: true },
      arrange: async r => {
        r.byHand(() => mirrored(r))
        await r.pass(5 * MINUTE)
        for (const official of ['registry.k8s.io', 'ghcr.io/siderolabs'])
          for (const name of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kube-proxy', 'kubelet'])
            r.world.registry.remove(`${official}/${name}:v1.36.2`)
      },
    })
    expect(run.status().phase).toBe('Completed')
    expect([...images(run)].toSorted()).toEqual([
      'mirror.example:5000/k8s/kube-apiserver:v1.36.2',
      'mirror.example:5000/k8s/kube-controller-manager:v1.36.2',
      'mirror.example:5000/k8s/kube-scheduler:v1.36.2',
      'mirror.example:5000/talos/kubelet:v1.36.2-fat',
    ])
  })

  it('[B137] are all there before anything is changed: no registry is needed from then on', async () => {
    const { run } = await play({
      cluster: { ...before, workloads: [{ name: 'web', replicas: 2, on: [3] }] },
      spec: { kubernetes: { ...kubernetes, drain: 'always' } },
      arrange: r => when(r, 'component-image', () => r.world.registry.remove(':v1.36.2')),
    })
    expect(run.status().phase).toBe('Completed')
    expect(run.world.journal.of('pull-failed')).toEqual([])
  })
})

describe('a kubelet', () => {
  it('[B118] that takes nine minutes is waited for, and one that takes for ever is told and not set back', async () => {
    const slow = await play({
      cluster: before,
      spec: { kubernetes },
      arrange: ({ world }) => world.fault('cp-2', { kubeletStartMs: 9 * MINUTE }),
    })
    expect(slow.run.status().phase).toBe('Completed')

    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      allowed: { attempts: 2 },
      arrange: ({ world }) => world.fault('cp-2', { kubeletStartMs: 40 * MINUTE }),
      drive: async r => {
        await r.settled()
        expect(r.status()).toMatchObject({ phase: 'Paused', failureReason: 'KubeletTimeout' })
        expect(messages(r)).toMatch(/cp-2: kubelet did not end within 15m: its kubelet is Preparing: Creating service runner/)
        expect(r.world.machine('cp-2').config).toContain('kubelet:v1.36.2')
        await r.pass(30 * MINUTE)
        await r.resume()
        await r.settled()
      },
    })
    expect(run.status().phase).toBe('Completed')
    expect(run.world.journal.of('component-image', 'cp-1').filter(e => e.detail.startsWith('kubelet '))).toHaveLength(1)
  })
})

describe('what Talos brings into the cluster', () => {
  it('[B120] a manifest that the API server does not take stops it at its very end, and is told in the plan', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes },
      arrange: ({ world }) =>
        void world.site.faults.refusedManifests.set('Service kube-system/kube-dns', 'spec.clusterIP: Invalid value: field is immutable'),
    })
    // The world's Talos has no such Service, so nothing is said of it; the manifest that it has is.
    expect(run.status().phase).toBe('Completed')
    const refused = await play({
      cluster: before,
      spec: { kubernetes },
      arrange: ({ world }) =>
        void world.site.faults.refusedManifests.set('ConfigMap kube-system/kubeconfig-in-cluster', 'field is immutable'),
    })
    expect(refused.run.status()).toMatchObject({ phase: 'Paused', failureReason: 'ManifestSyncFailed' })
    expect(refused.run.status().preflight?.notes?.join(' ')).toMatch(
      /does not take ConfigMap kube-system\/kubeconfig-in-cluster .*stops at its very end/,
    )
    expect(images(refused.run)).not.toContain('ghcr.io/siderolabs/kubelet:v1.35.4')
  })

  it('[B135] kube-proxy that is switched off on purpose is neither pulled nor made', async () => {
    const { run } = await play({ cluster: { ...before, kubeProxy: false }, spec: { kubernetes } })
    expect(run.status().phase).toBe('Completed')
    expect(run.world.journal.of('pulled').some(e => e.detail.includes('kube-proxy'))).toBe(false)
    expect(run.world.store.get(RESOURCE.daemonSets, 'kube-system', 'kube-proxy')).toBeUndefined()
    expect(run.status().preflight?.notes).toContain('kube-proxy is switched off, and stays so.')
  })

  const withoutProxy = (run: Run, ...names: readonly string[]): void => {
    for (const name of names) {
      const machine = run.world.machine(name)
      const text = machine.config.replace(/( {4}proxy:\n)( {8}image: \S+\n)?/, '$1        disabled: true\n')
      expect(text).not.toBe(machine.config)
      setConfig(run.world.site, machine, text)
    }
  }
  const proxy = ({ world }: Run) => world.store.get(RESOURCE.daemonSets, 'kube-system', 'kube-proxy')
  const controlPlanes = ['cp-1', 'cp-2', 'cp-3']

  it('and no longer does, stays where nobody asked to delete it, and is named in the plan', async () => {
    const { run } = await play({ cluster: before, spec: { kubernetes }, arrange: r => withoutProxy(r, ...controlPlanes) })
    expect(run.status().phase).toBe('Completed')
    expect(proxy(run)).toBeDefined()
    expect(run.status().preflight?.notes).toContain(
      'Talos once brought these and no longer does; they stay, unless `--prune` asks to delete them: DaemonSet kube-system/kube-proxy.',
    )
  })

  it('is deleted with prune, as the plan says, and is out of the inventory, so that Talos makes it again when it is wanted', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes: { ...kubernetes, prune: true } },
      arrange: r => withoutProxy(r, ...controlPlanes),
    })
    expect(run.status().phase).toBe('Completed')
    expect(proxy(run)).toBeUndefined()
    expect(run.world.journal.of('manifest-pruned').map(e => e.detail)).toEqual(['DaemonSet kube-system/kube-proxy'])
    expect(run.status().preflight?.notes?.join(' ')).toContain(
      'deleted, which Talos once brought and no longer does: DaemonSet kube-system/kube-proxy.',
    )
    const inventory = run.world.store.get('configmaps', 'kube-system', 'talos-bootstrap-manifests-inventory')
    expect(Object.keys(inventory?.['data'] ?? {})).not.toContain('kube-system_kube-proxy_apps_DaemonSet')
  })

  it('stays while one control plane still has it as a manifest, and where Talos keeps no inventory', async () => {
    const spec = { kubernetes: { ...kubernetes, prune: true } }
    const one = await play({ cluster: before, spec, arrange: r => withoutProxy(r, 'cp-1', 'cp-3') })
    const old = await play({
      cluster: { kubernetes: 'v1.34.2', talos: 'v1.12.5' },
      spec: { kubernetes: { version: 'v1.35.4', prune: true } },
      arrange: r => withoutProxy(r, ...controlPlanes),
    })
    for (const { run } of [one, old]) {
      expect(run.status().phase).toBe('Completed')
      expect(proxy(run)).toBeDefined()
      expect(run.status().preflight?.notes?.join(' ')).toContain('Nothing is to be deleted')
    }
  })

  it('is deleted with prune, also where there is more of it than fits into one note of the plan', async () => {
    const names = Array.from({ length: 120 }, (_, at) => `of-an-operator-that-is-gone-${at}`)
    const { run } = await play({
      cluster: before,
      spec: { kubernetes: { ...kubernetes, prune: true } },
      arrange: r => r.byHand(() => names.forEach(name => leaveBehind(r.world, name))),
    })
    expect(run.status().phase).toBe('Completed')
    expect(names.filter(name => run.world.store.get(RESOURCE.configMaps, 'kube-system', name))).toEqual([])
    for (const name of names) expect(run.status().preflight?.notes?.join(' ')).toMatch(new RegExp(`${name}[,.]`))
  })

  it('is not deleted where the plan did not show it', async () => {
    const { run } = await play({
      cluster: before,
      spec: { kubernetes: { ...kubernetes, prune: true } },
      allowed: { apiOutage: true },
      arrange: r => when(r, 'kubelet-restart', () => r.byHand(() => withoutProxy(r, ...controlPlanes))),
    })
    expect(run.status()).toMatchObject({ phase: 'Paused', failureReason: 'ManifestSyncFailed' })
    expect(messages(run)).toMatch(/DaemonSet kube-system\/kube-proxy would be deleted, too, but the plan did not show it/)
    expect(proxy(run)).toBeDefined()
  })
})

describe('a release candidate [B003]', () => {
  it('is upgraded to its release, which is something else', async () => {
    const { run } = await play({ cluster: { kubernetes: 'v1.36.0-rc.1' }, spec: { kubernetes: { version: 'v1.36.0' } } })
    expect(run.status()).toMatchObject({ phase: 'Completed' })
    expect([...images(run)].filter(image => !image.endsWith(':v1.36.0'))).toEqual([])
  })
})
