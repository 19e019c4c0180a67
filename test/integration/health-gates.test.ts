// What health gates need of an API server, asked of a real one and of the simulated one: that mistakes in them are refused, and that any object
// can be read by its kind.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { kubeClient, type KubeClient, type KubeObject } from '../../src/adapters/kube/client.ts'
import { openKube } from '../../src/adapters/kube/kube.ts'
import { loadKubeConfig } from '../../src/adapters/kube/kubeconfig.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { openTransport } from '../../src/adapters/kube/transport.ts'
import { API_VERSION } from '../../src/api/names.ts'
import { toCrd } from '../../src/api/structural.ts'
import { talosCluster } from '../../src/api/talos-cluster.ts'
import { askExpression } from '../../src/core/gate-expression.ts'
import type { Result } from '../../src/ports/fault.ts'
import { startSimulated } from '../conformance/kubernetes/simulated.ts'
import { realClock } from '../kube/clocks.ts'
import { startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'

type Server = { readonly kubeconfigPath: (role: 'admin' | 'viewer') => string; readonly stop: () => Promise<void> }
const parts = await realParts('etcd', 'kube-apiserver')
const missing = 'missing' in parts ? parts.missing : undefined
const servers: readonly (readonly [string, string | undefined, () => Promise<Server>])[] = [
  [`a real kube-apiserver${missing ? ` (${missing})` : ''}`, missing, startKubeApiserver],
  ['the simulated API server', undefined, () => startSimulated([talosCluster])],
]

const value = <T>(result: Result<T>): T => {
  if (!result.ok) throw new Error(result.fault.message)
  return result.value
}
const eventually = <T>(check: () => Promise<T>) => vi.waitFor(check, { timeout: 20_000, interval: 20 })

const namespace = 'default'
const gate = {
  name: 'storage',
  objectRef: { apiVersion: 'storage.example/v1', kind: 'StorageCluster', namespace, name: 'main' },
  expr: 'object.status.health == "OK" && object.status.disks >= 3',
}
const withGates = (name: string, ...healthGates: object[]): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'TalosCluster',
  metadata: { name },
  spec: { talosconfigSecretRef: { name: 'talosconfig' }, healthGates },
})
const storageType = { group: 'storage.example', version: 'v1', plural: 'storageclusters', kind: 'StorageCluster' }
const storageCrd = {
  metadata: { name: 'storageclusters.storage.example' },
  spec: {
    group: 'storage.example',
    scope: 'Namespaced',
    names: { plural: 'storageclusters', singular: 'storagecluster', kind: 'StorageCluster', listKind: 'StorageClusterList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}

describe.each(servers)('health gates on %s', (_name, isMissing, start) => {
  let server: Server
  let client: KubeClient
  const closing: (() => void)[] = []
  const connect = async (role: 'admin' | 'viewer'): Promise<KubeClient> => {
    const config = value(await loadKubeConfig({ kubeconfigPath: server.kubeconfigPath(role) }))
    const transport = openTransport({ config, clock: realClock, userAgent: 'ichor/test' })
    closing.push(transport.close)
    return kubeClient(transport)
  }
  const create = (body: KubeObject) => client.create(RESOURCE.talosCluster, { namespace }, body)

  beforeAll(async () => {
    if (isMissing !== undefined) return
    server = await start()
    client = await connect('admin')
    const crd = await client.create(RESOURCE.crd, {}, toCrd(talosCluster) as KubeObject)
    if (!crd.ok && crd.fault.kind !== 'alreadyExists') throw new Error(crd.fault.message)
    await eventually(async () => value(await client.list(RESOURCE.talosCluster)))
  }, 120_000)
  afterAll(async () => {
    for (const close of closing) close()
    await server?.stop()
  })

  it.skipIf(isMissing !== undefined)('are taken, with a time for which they have to hold', async () => {
    const { spec } = value(await create(withGates('good', gate, { ...gate, name: 'other', stableFor: '0s', timeout: '2h' })))
    expect(spec).toMatchObject({
      healthGates: [
        { ...gate, stableFor: '1m' },
        { stableFor: '0s', timeout: '2h' },
      ],
    })
  })

  const { expr: _, ...without } = gate
  it.skipIf(isMissing !== undefined).each([
    ['of one name', [gate, gate], 'spec.healthGates[1]: Duplicate value'],
    [
      'over a Secret',
      [{ ...gate, objectRef: { apiVersion: 'v1', kind: 'Secret', namespace, name: 'x' } }],
      'a gate cannot look at a Secret',
    ],
    ['over a plural', [{ ...gate, objectRef: { ...gate.objectRef, kind: 'storageclusters' } }], 'must be a kind, for example CephCluster'],
    ['of no version', [{ ...gate, objectRef: { ...gate.objectRef, apiVersion: 'storage.example' } }], 'must be an API version'],
    ['with a name that is none', [{ ...gate, name: 'The storage' }], 'must be lower-case letters, digits and -'],
    ['without an expression', [without], 'spec.healthGates[0].expr: Required value'],
    ['with an empty expression', [{ ...gate, expr: '' }], 'spec.healthGates[0].expr'],
    ['with a timeout of no time', [{ ...gate, timeout: '0s' }], 'must be a duration with units and longer than zero'],
    ['with a time without unit', [{ ...gate, stableFor: '60' }], 'must be a duration with units'],
  ])('%s are refused', async (_what, gates, message) => {
    expect(await create(withGates('bad', ...gates))).toMatchObject({
      ok: false,
      fault: { kind: 'invalid', message: expect.stringContaining(message) as string },
    })
  })

  it.skipIf(isMissing !== undefined)('read any object by its kind, as it is now', async () => {
    const kube = openKube(client)
    expect(await kube.object(gate.objectRef)).toMatchObject({
      fault: { kind: 'unsupported', message: 'the API server knows no StorageCluster in storage.example/v1' },
    })
    value(await client.create(RESOURCE.crd, {}, storageCrd))
    await eventually(async () => expect(await kube.object(gate.objectRef)).toMatchObject({ fault: { kind: 'notFound' } }))
    const { apiVersion, kind, name } = gate.objectRef
    value(await client.create(storageType, { namespace }, { apiVersion, kind, metadata: { name } }))
    const ask = async () => askExpression(gate.expr, value(await kube.object(gate.objectRef)))
    expect(await ask()).toEqual({ is: 'error', why: 'it has no field status' })
    for (const [health, answer] of [
      ['WARN', { is: 'no', seen: 'health WARN, disks 3' }],
      ['OK', { is: 'yes', seen: 'health OK, disks 3' }],
    ] as const) {
      value(await client.patch(storageType, { namespace, name, subresource: 'status' }, { status: { health, disks: 3 } }))
      expect(await ask()).toEqual(answer)
    }
    // The simulated one has no roles for types that are not its own.
    if (start === startKubeApiserver) {
      expect(await openKube(await connect('viewer')).object(gate.objectRef)).toMatchObject({
        fault: { kind: 'forbidden', message: expect.stringContaining('cannot get resource "storageclusters"') as string },
      })
    }
    expect(await kube.object({ ...gate.objectRef, namespace: undefined })).toMatchObject({ fault: { kind: 'invalid' } })
    value(await client.create(RESOURCE.configMap, { namespace }, { metadata: { name: 'switch' }, data: { maintenance: 'allowed' } }))
    const map = value(await kube.object({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'switch' }))
    expect(askExpression('object.data.maintenance == "allowed"', map).is).toBe('yes')
  })

  it.skipIf(isMissing !== undefined)('as the page shows them are taken, the roles too', async () => {
    const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'health-gates.md'), 'utf8')
    const shown = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(([, text = '']) =>
      parseAllDocuments(text).map(d => d.toJS() as unknown),
    )
    const rbac = (plural: string, kind: string) => ({ group: 'rbac.authorization.k8s.io', version: 'v1', plural, kind })
    const types: Record<string, ReturnType<typeof rbac>> = {
      ClusterRole: rbac('clusterroles', 'ClusterRole'),
      ClusterRoleBinding: rbac('clusterrolebindings', 'ClusterRoleBinding'),
    }
    for (const one of shown) {
      if (Array.isArray(one)) value(await create(withGates('recipes', ...(one as object[]))))
      else {
        const body = one as KubeObject & { readonly kind: string; readonly metadata: { readonly name: string } }
        const type = types[body.kind]
        value(await (type ? client.create(type, {}, body) : create({ ...body, metadata: { name: body.metadata.name } })))
      }
    }
    expect(value(await client.list(RESOURCE.talosCluster, { namespace })).items).toHaveLength(3)
  })
})
