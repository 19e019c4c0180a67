// The bootstrap manifests of Talos on a real API server: what applying them would do, and what it does.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kubeClient, type KubeClient } from '../../src/adapters/kube/client.ts'
import { at, record, text } from '../../src/adapters/kube/json.ts'
import { openKube } from '../../src/adapters/kube/kube.ts'
import { loadKubeConfig } from '../../src/adapters/kube/kubeconfig.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { openTransport } from '../../src/adapters/kube/transport.ts'
import type { Manifest } from '../../src/ports/components.ts'
import type { Result } from '../../src/ports/fault.ts'
import type { Kube } from '../../src/ports/kube.ts'
import { createWorld } from '../../src/world/cluster.ts'
import { bootstrapManifests } from '../../src/world/manifests.ts'
import { realClock } from '../kube/clocks.ts'
import { startKubeApiserver, type RealKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')

const value = <T>(result: Result<T>): T => {
  if (!result.ok) throw new Error(result.fault.message)
  return result.value
}

const proxy = (version: string): Manifest => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'kube-proxy', namespace: 'kube-system', labels: { 'k8s-app': 'kube-proxy' } },
  spec: {
    selector: { matchLabels: { 'k8s-app': 'kube-proxy' } },
    template: {
      metadata: { labels: { 'k8s-app': 'kube-proxy' } },
      spec: { containers: [{ name: 'kube-proxy', image: `registry.k8s.io/kube-proxy:${version}` }] },
    },
  },
})
const dns = (clusterIP?: string): Manifest => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kube-dns', namespace: 'kube-system' },
  spec: {
    ...(clusterIP ? { clusterIP } : {}),
    selector: { 'k8s-app': 'kube-dns' },
    ports: [{ name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 }],
  },
})
const proxyPlace = { namespace: 'kube-system', name: 'kube-proxy' }

describe.skipIf('missing' in servers)(`manifests on a real kube-apiserver${'missing' in servers ? ` (${servers.missing})` : ''}`, () => {
  let server: RealKubeApiserver
  let client: KubeClient
  let kube: Kube
  let close = (): void => {}
  beforeAll(async () => {
    server = await startKubeApiserver()
    const transport = openTransport({
      config: value(await loadKubeConfig({ kubeconfigPath: server.kubeconfigPath('admin') })),
      clock: realClock,
      userAgent: 'ichor/test',
    })
    close = transport.close
    client = kubeClient(transport, { fieldManager: 'ichor-controller' })
    kube = openKube(client)
  }, 120_000)
  afterAll(async () => {
    close()
    await server?.stop()
  })

  const would = async (manifests: readonly Manifest[]) =>
    value(await kube.compareManifests(manifests)).map(one => [one.name, one.would, one.detail].filter(Boolean).join(': '))

  it('those of a whole cluster are created, and are the same from then on', async () => {
    const world = createWorld({ seed: 1, controlPlanes: 1, workers: 1 })
    const manifests = bootstrapManifests(world.site, world.machine('cp-1')).flatMap(({ objects }) => objects)
    expect(manifests.length).toBeGreaterThan(7)
    expect(new Set((await would(manifests)).map(one => one.split(': ')[1]))).toEqual(new Set(['create']))
    value(await kube.applyManifests(manifests))
    expect(new Set(value(await kube.compareManifests(manifests)).map(one => one.would))).toEqual(new Set(['same']))
    const set = value(await client.get(RESOURCE.daemonSet, proxyPlace))
    expect(JSON.stringify(at(set, 'metadata', 'managedFields'))).toContain('"manager":"talos","operation":"Apply"')
    value(await client.delete(RESOURCE.daemonSet, proxyPlace))
  })

  it("a new image is told by its field, is written over another's, and what others added stays", async () => {
    value(await client.create(RESOURCE.daemonSet, { namespace: 'kube-system' }, proxy('v1.36.1')))
    const added = { spec: { template: { spec: { priorityClassName: 'system-node-critical' } } } }
    value(await client.patch(RESOURCE.daemonSet, proxyPlace, added))
    expect(await would([proxy('v1.36.2')])).toEqual(['DaemonSet kube-system/kube-proxy: change: spec.template.spec.containers.0.image'])
    value(await kube.applyManifests([proxy('v1.36.2')]))
    expect(await would([proxy('v1.36.2')])).toEqual(['DaemonSet kube-system/kube-proxy: same'])
    const set = value(await client.get(RESOURCE.daemonSet, proxyPlace))
    expect(at(set, 'spec', 'template', 'spec', 'priorityClassName')).toBe('system-node-critical')
    expect(value(await kube.controlPlane()).kubeProxy).toMatchObject({ image: 'registry.k8s.io/kube-proxy:v1.36.2', isObserved: false })
  })

  it('[B120] what cannot be changed is told before, keeps no other manifest back, and is never made anew', async () => {
    const service = { group: '', version: 'v1', plural: 'services', kind: 'Service' }
    value(await kube.applyManifests([dns()]))
    const before = value(await client.get(service, dnsPlace))
    const another = text(at(before, 'spec', 'clusterIP')).replace(/\d+$/, last => (last === '77' ? '78' : '77'))
    const [refused] = value(await kube.compareManifests([dns(another)]))
    expect(refused).toMatchObject({ name: 'Service kube-system/kube-dns', would: 'refused', detail: expect.stringContaining('clusterIP') })
    expect(await kube.applyManifests([dns(another), proxy('v1.36.3')])).toMatchObject({
      ok: false,
      fault: { kind: 'invalid', message: expect.stringMatching(/^Service kube-system\/kube-dns: .*clusterIP/) },
    })
    expect(at(value(await client.get(RESOURCE.daemonSet, proxyPlace)), 'spec', 'template', 'spec', 'containers')).toMatchObject([
      { image: 'registry.k8s.io/kube-proxy:v1.36.3' },
    ])
    expect(at(value(await client.get(service, dnsPlace)), 'metadata', 'uid')).toBe(at(before, 'metadata', 'uid'))
  })

  it('what needs another manifest counts as new, and the words about a Secret quote nothing', async () => {
    const own = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'own' } }
    const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'own' }, data: { a: 'b' } }
    expect(await would([config, own])).toEqual(['Namespace own: create', 'ConfigMap own/c: create'])
    const secret = (key: string): Manifest => ({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' } },
      ...{ immutable: true, stringData: { key } },
    })
    value(await kube.applyManifests([secret('hunter1')]))
    expect(await would([secret('hunter1')])).toEqual(['Secret default/s: same'])
    expect(await would([secret('hunter2')])).toEqual(['Secret default/s: refused: the API server does not take it (invalid)'])
    expect(await would([{ apiVersion: 'nobody.example/v1', kind: 'Thing', metadata: { name: 't' } }])).toEqual([
      'Thing t: refused: the API server knows no Thing in nobody.example/v1',
    ])
  })

  describe("Talos' inventory", () => {
    const inventory = { namespace: 'kube-system', name: 'talos-bootstrap-manifests-inventory' }
    const owner = (object: object): unknown => at(object, 'metadata', 'annotations', 'config.k8s.io/owning-inventory')
    const keys = async () => Object.keys(record(value(await client.get(RESOURCE.configMap, inventory))['data'])).toSorted()
    const role = (name: string): Manifest => ({
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
      ...{ metadata: { name }, rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }] },
    })
    const config = (name: string): Manifest => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } },
      data: { a: 'b' },
    })
    const own = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'inventoried' } }
    const all = [role('system:old'), config('old'), config('helm'), config('taken'), config('foreign'), own, config('stays')]

    it('gets what is applied, where there is one, and the objects say so', async () => {
      value(await kube.applyManifests([config('before')]))
      value(await client.create(RESOURCE.configMap, { namespace: 'kube-system' }, { metadata: { name: inventory.name } }))
      value(await kube.applyManifests([config('before'), ...all]))
      expect(await keys()).toEqual([
        '_inventoried__Namespace',
        '_system__old_rbac.authorization.k8s.io_ClusterRole',
        ...['before', 'foreign', 'helm', 'old', 'stays', 'taken'].map(name => `default_${name}__ConfigMap`),
      ])
      expect(owner(value(await client.get(RESOURCE.configMap, { namespace: 'default', name: 'before' })))).toBe(inventory.name)
      expect(new Set((await would([config('before'), ...all])).map(one => one.split(': ')[1]))).toEqual(new Set(['same']))
    })

    it('tells what is left over, and what stays because somebody else has it', async () => {
      const patch = async (name: string, metadata: object) =>
        value(await client.patch(RESOURCE.configMap, { namespace: 'default', name }, { metadata }))
      await patch('helm', { annotations: { 'meta.helm.sh/release-name': 'platform' } })
      await patch('foreign', { annotations: { 'config.k8s.io/owning-inventory': 'another' } })
      const place = { namespace: 'default', name: 'taken' }
      value(await client.patch(RESOURCE.configMap, place, config('taken'), { type: 'apply', fieldManager: 'argocd', force: true }))
      value(await client.delete(RESOURCE.configMap, { namespace: 'default', name: 'before' }))
      const left = (await would([config('stays')])).filter(one => !one.endsWith('same')).toSorted()
      expect(left).toEqual([
        'ClusterRole system:old: leftover',
        'ConfigMap default/foreign: kept: it belongs to the inventory another',
        'ConfigMap default/helm: kept: Helm has taken it over',
        'ConfigMap default/old: leftover',
        'ConfigMap default/taken: kept: argocd has taken it over',
        'Namespace inventoried: kept: all that is in it would go with it',
      ])
    })

    it('loses what is pruned, of that what was named, and nothing else is deleted', async () => {
      value(await kube.pruneManifests([config('stays')], ['ClusterRole system:old', 'ConfigMap default/helm', 'ConfigMap default/nobody']))
      expect(await would([config('stays')])).toContain('ConfigMap default/old: leftover')
      expect(await keys()).not.toContain('_system__old_rbac.authorization.k8s.io_ClusterRole')
      value(await kube.pruneManifests([config('stays')], ['ConfigMap default/old']))
      expect((await would([config('stays')])).filter(one => one.includes('leftover'))).toEqual([])
      for (const name of ['helm', 'taken', 'foreign', 'stays']) value(await client.get(RESOURCE.configMap, { namespace: 'default', name }))
      expect(await client.get(RESOURCE.configMap, { namespace: 'default', name: 'old' })).toMatchObject({ fault: { kind: 'notFound' } })
      value(await kube.applyManifests([role('system:old')]))
      expect(await keys()).toContain('_system__old_rbac.authorization.k8s.io_ClusterRole')
    })
  })

  it('the metrics tell of deprecated APIs', async () => {
    expect(value(await kube.deprecatedApis())).toEqual([])
    value(await client.list({ group: '', version: 'v1', plural: 'componentstatuses', kind: 'ComponentStatus' }))
    expect(value(await kube.deprecatedApis())).toEqual([{ resource: 'v1 componentstatuses', removedIn: '' }])
  })
})

const dnsPlace = { namespace: 'kube-system', name: 'kube-dns' }
