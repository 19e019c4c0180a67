// The Kubernetes adapter against what it is made for: a real API server, also one that dies.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { kubeClient, type KubeClient } from '../../src/adapters/kube/client.ts'
import { kubeConnections } from '../../src/adapters/kube/connections.ts'
import { openHome, type OpenHome } from '../../src/adapters/kube/home.ts'
import { at, record, text } from '../../src/adapters/kube/json.ts'
import { openKube } from '../../src/adapters/kube/kube.ts'
import { loadKubeConfig } from '../../src/adapters/kube/kubeconfig.ts'
import { operationOf } from '../../src/adapters/kube/objects.ts'
import { startReflector } from '../../src/adapters/kube/reflector.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { openTransport, type RequestRecord } from '../../src/adapters/kube/transport.ts'
import { ANNOTATION, GROUP, VERSION } from '../../src/api/names.ts'
import { toCrd } from '../../src/api/structural.ts'
import { talosCluster } from '../../src/api/talos-cluster.ts'
import { talosMachine } from '../../src/api/talos-machine.ts'
import { talosOperation, type TalosOperation } from '../../src/api/talos-operation.ts'
import type { Result } from '../../src/ports/fault.ts'
import type { LeaseWrite } from '../../src/ports/home.ts'
import type { NodeFacts, PodFacts } from '../../src/ports/kube.ts'
import { realClock } from '../kube/clocks.ts'
import { startKubeApiserver, type RealKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')
const sample = {
  name: 'talos',
  block: 'talos',
  summary: 'Upgrades Talos.',
  spec: z.object({ version: z.string().max(64).meta({ description: 'The version.' }) }),
}
const definitions = [talosOperation([sample]), talosCluster, talosMachine]
const namespace = 'default'

const value = <T>(result: Result<T>): T => {
  if (!result.ok) throw new Error(result.fault.message)
  return result.value
}
const kindOf = (result: Result<unknown>): string => (result.ok ? 'ok' : result.fault.kind)
const eventually = <T>(check: () => T | Promise<T>, timeout = 20_000) => vi.waitFor(check, { timeout, interval: 20 })

describe.skipIf('missing' in servers)(
  `the Kubernetes adapter on a real kube-apiserver${'missing' in servers ? ` (${servers.missing})` : ''}`,
  () => {
    let server: RealKubeApiserver
    let client: KubeClient
    let home: OpenHome
    const records: RequestRecord[] = []
    const closing: (() => void)[] = []

    const connect = async (role: 'admin' | 'operator' | 'viewer' = 'admin'): Promise<KubeClient> => {
      const config = value(await loadKubeConfig({ kubeconfigPath: server.kubeconfigPath(role) }))
      const transport = openTransport({ config, clock: realClock, userAgent: 'ichor/test', onRequest: one => records.push(one) })
      closing.push(transport.close)
      return kubeClient(transport, { fieldManager: 'ichor-controller' })
    }
    const homeOf = (of: KubeClient): OpenHome => {
      const opened = openHome({ client: of, clock: realClock, random: Math.random, instance: 'ichor-0' })
      closing.push(opened.close)
      return opened
    }
    const newOperation = async (name: string, metadata: object = {}): Promise<TalosOperation> => {
      const body = {
        apiVersion: `${GROUP}/${VERSION}`,
        kind: 'TalosOperation',
        metadata: { name, ...metadata },
        spec: { clusterRef: { name: 'home' }, kind: 'talos', talos: { version: 'v1.13.9' } },
      }
      return operationOf(value(await client.create(RESOURCE.talosOperation, { namespace }, body)))
    }

    beforeAll(async () => {
      server = await startKubeApiserver()
      client = await connect()
      home = homeOf(client)
      expect(kindOf(await home.operations())).toBe('unsupported')
      for (const definition of definitions) value(await client.create(RESOURCE.crd, {}, toCrd(definition) as Record<string, unknown>))
      for (const resource of [RESOURCE.talosOperation, RESOURCE.talosCluster, RESOURCE.talosMachine])
        await eventually(async () => value(await client.list(resource)))
    }, 120_000)
    afterAll(async () => {
      for (const close of closing) close()
      await server?.stop()
    })

    describe('the client', () => {
      it('knows the server', async () => {
        expect(value(await client.version())).toMatch(/^v1\./)
        expect(value(await client.apiVersions())).toEqual(expect.arrayContaining(['v1', 'policy/v1', `${GROUP}/${VERSION}`]))
        expect(value(await client.serves(RESOURCE.talosOperation))).toBe(true)
        expect(value(await client.serves({ ...RESOURCE.talosOperation, group: 'absent.example' }))).toBe(false)
      })

      it('reads a list that is longer than a page, and all of it in a table', async () => {
        const names = Array.from({ length: 620 }, (_, i) => `many-${String(i).padStart(3, '0')}`)
        const labels = { set: 'many' }
        const create = async () => {
          for (let name = names.pop(); name !== undefined; name = names.pop())
            value(await client.create(RESOURCE.configMap, { namespace }, { metadata: { name, labels } }))
        }
        await Promise.all(Array.from({ length: 8 }, create))
        const before = records.length
        const listed = value(await client.list(RESOURCE.configMap, { namespace, labelSelector: 'set=many' }))
        expect(listed.items).toHaveLength(620)
        expect(new Set(listed.items.map(one => text(at(one, 'metadata', 'name')))).size).toBe(620)
        expect(records.slice(before)).toMatchObject([{ verb: 'list', resource: 'configmaps', code: 200 }, { code: 200 }])
        const table = value(await client.table(RESOURCE.configMap, { namespace, labelSelector: 'set=many' }))
        expect(table.rows).toHaveLength(620)
        expect(table.columns.map(({ name }) => name)).toEqual(['Name', 'Data', 'Age'])
      }, 60_000)

      it('has one word for each refusal', async () => {
        await newOperation('twice')
        const again = await client.create(
          RESOURCE.talosOperation,
          { namespace },
          { apiVersion: `${GROUP}/${VERSION}`, kind: 'TalosOperation', metadata: { name: 'twice' }, spec: {} },
        )
        expect(kindOf(again)).toBe('invalid')
        expect(again).toMatchObject({ fault: { message: expect.stringContaining('spec.clusterRef') } })
        expect(kindOf(await client.create(RESOURCE.namespace, {}, { metadata: { name: namespace } }))).toBe('alreadyExists')
        expect(kindOf(await client.get(RESOURCE.talosOperation, { namespace, name: 'absent' }))).toBe('notFound')
        expect(kindOf(await client.get(RESOURCE.etcdSnapshot, { namespace, name: 'any' }))).toBe('unsupported')
        const viewer = await connect('viewer')
        expect(await viewer.delete(RESOURCE.talosOperation, { namespace, name: 'twice' })).toMatchObject({
          fault: { kind: 'forbidden', message: expect.stringContaining('cannot delete resource "talosoperations"') },
        })
        const config = value(await loadKubeConfig({ kubeconfigPath: server.kubeconfigPath('admin') }))
        const stranger = openTransport({ config: { ...config, user: { token: 'wrong-token' } }, clock: realClock, userAgent: 'x' })
        closing.push(stranger.close)
        expect(kindOf(await kubeClient(stranger).list(RESOURCE.node))).toBe('unauthenticated')
        const mistaken = openTransport({ config: { ...config, cluster: {} }, clock: realClock, userAgent: 'x' })
        closing.push(mistaken.close)
        expect(kindOf(await kubeClient(mistaken).list(RESOURCE.node))).toBe('wrongPeer')
      })
    })

    describe('a Home', () => {
      it('writes status against the version that was read, and only that', async () => {
        const read = await newOperation('status')
        const written = value(await home.writeOperationStatus(read, { phase: 'Running', message: 'first' }))
        expect(written.status).toEqual({ phase: 'Running', message: 'first' })
        expect(kindOf(await home.writeOperationStatus(read, { phase: 'Paused' }))).toBe('conflict')
        const now = value(await home.operation({ namespace, name: 'status' }))
        expect(now).toEqual(written)
        expect(now.spec).toEqual(read.spec)
        expect(value(await home.writeOperationStatus(now, { phase: 'Completed' })).status).toEqual({ phase: 'Completed' })
        const raw = value(await client.get(RESOURCE.talosOperation, { namespace, name: 'status' }))
        expect(JSON.stringify(at(raw, 'metadata', 'managedFields'))).toContain('ichor-controller')
      })

      it('changes annotations and finalizers against the version that was read', async () => {
        const read = await newOperation('metadata', { annotations: { [ANNOTATION.retry]: 'true', theirs: 'stays' } })
        const changed = value(
          await home.changeOperation(read, {
            annotations: { [ANNOTATION.retry]: null, ours: 'new' },
            finalizers: [`${GROUP}/open-machine`],
          }),
        )
        expect(changed.metadata.annotations).toEqual({ theirs: 'stays', ours: 'new' })
        expect(kindOf(await home.changeOperation(read, { annotations: { late: 'x' } }))).toBe('conflict')
        expect(kindOf(await home.deleteOperation(read))).toBe('conflict')
        expect(kindOf(await home.deleteOperation(changed))).toBe('ok')
        const leaving = value(await home.operation({ namespace, name: 'metadata' }))
        expect(leaving.metadata.deletionTimestamp).toBeDefined()
        value(await home.changeOperation(leaving, { finalizers: [] }))
        expect(kindOf(await home.operation({ namespace, name: 'metadata' }))).toBe('notFound')
        expect(kindOf(await home.deleteOperation(leaving))).toBe('ok')
      })

      it('makes machines and changes their spec and status', async () => {
        const key = { namespace, name: 'cp-1' }
        const made = value(
          await home.createMachine(
            key,
            { clusterRef: { name: 'home' }, address: '10.0.0.1', role: 'worker', installImage: 'x/installer' },
            { labels: { a: 'b' }, annotations: { c: 'd' } },
          ),
        )
        expect(kindOf(await home.createMachine(key, made.spec, { labels: {}, annotations: {} }))).toBe('alreadyExists')
        const { installImage: _, ...rest } = made.spec
        const moved = value(await home.writeMachineSpec(made, { ...rest, address: '10.0.0.2' }, { e: 'f' }))
        expect(moved.spec).toEqual({ clusterRef: { name: 'home' }, address: '10.0.0.2', role: 'worker' })
        expect(moved.metadata).toMatchObject({ labels: { a: 'b', e: 'f' }, annotations: { c: 'd' } })
        expect(kindOf(await home.writeMachineSpec(made, made.spec, {}))).toBe('conflict')
        expect(value(await home.writeMachineStatus(moved, { stage: 'running' })).status).toEqual({ stage: 'running' })
        await eventually(async () =>
          expect(value(await home.machines({ namespace, name: 'home' })).map(({ status }) => status.stage)).toEqual(['running']),
        )
        expect(value(await home.machines({ namespace, name: 'other' }))).toEqual([])
      })

      const write = (holder: string): LeaseWrite => {
        const time = new Date().toISOString()
        return {
          holder,
          durationSeconds: 15,
          acquireTime: time,
          renewTime: time,
          transitions: 0,
          annotations: { [ANNOTATION.holderUid]: `uid-${holder}` },
        }
      }

      it('lets one of twenty contenders have a Lease that is not there, and one have it after', async () => {
        const key = { namespace, name: 'ichor-contended' }
        const first = await Promise.all(Array.from({ length: 20 }, (_, i) => home.createLease(key, write(`c-${i}`))))
        expect(first.map(kindOf).toSorted()).toEqual([...Array<string>(19).fill('alreadyExists'), 'ok'])
        const read = value(await home.lease(key))
        const second = await Promise.all(Array.from({ length: 20 }, (_, i) => home.replaceLease(read, write(`d-${i}`))))
        expect(second.map(kindOf).toSorted()).toEqual([...Array<string>(19).fill('conflict'), 'ok'])
        const now = value(await home.lease(key))
        expect(second).toContainEqual({ ok: true, value: now })
        expect(now.annotations).toEqual({ [ANNOTATION.holderUid]: `uid-${now.holder}` })
        expect(now.renewTime).toMatch(/\.\d{6}Z$/)
        const released = value(await home.replaceLease(now, { ...now, holder: '', annotations: {} }))
        expect([released.holder, released.annotations]).toEqual(['', {}])
      })

      it('reads a Secret as bytes', async () => {
        value(
          await client.create(
            RESOURCE.secret,
            { namespace },
            { metadata: { name: 'bytes' }, data: { raw: Buffer.from([0, 255, 10]).toString('base64') } },
          ),
        )
        expect([...(value(await home.secret({ namespace, name: 'bytes' }))['raw'] ?? [])]).toEqual([0, 255, 10])
      })

      it('writes an Event, and counts its repetitions in the same one', async () => {
        const operation = await newOperation('noisy')
        const regarding = { kind: 'TalosOperation', namespace, name: 'noisy', uid: operation.metadata.uid }
        for (let i = 0; i < 3; i++)
          await home.event({ regarding, type: 'Warning', reason: 'Overridden', message: 'rule x passed by override' })
        await home.event({ regarding, type: 'Normal', reason: 'Started', message: 'begun' })
        const events = value(
          await client.list(RESOURCE.event, { namespace, fieldSelector: `involvedObject.uid=${operation.metadata.uid}` }),
        ).items
        const counts = Object.fromEntries(events.map(one => [text(one['reason']), one['count']]))
        expect(counts).toEqual({ Overridden: 3, Started: 1 })
        expect(events).toHaveLength(2)
        expect(events[0]).toMatchObject({ reportingComponent: 'ichor-controller', source: { component: 'ichor-controller' } })
      })

      it('tells of everything that is there, and then of every change', async () => {
        const mine = homeOf(client)
        const heard: string[] = []
        const stop = mine.watch(['TalosOperation', 'Lease'], (what, key) => heard.push(`${what} ${key.namespace}/${key.name}`))
        await newOperation('watched-1')
        await eventually(() =>
          expect(heard).toEqual(expect.arrayContaining(['TalosOperation default/watched-1', 'Lease default/ichor-contended'])),
        )
        heard.length = 0
        value(await mine.writeOperationStatus(value(await mine.operation({ namespace, name: 'watched-1' })), { phase: 'Running' }))
        await eventually(() => expect(heard).toEqual(['TalosOperation default/watched-1']))
        // A Lease that is not ours does not wake anybody.
        value(
          await client.create(RESOURCE.lease, { namespace }, { metadata: { name: 'node-heartbeat' }, spec: { holderIdentity: 'kubelet' } }),
        )
        const late: string[] = []
        const stopLate = mine.watch(['TalosOperation'], (_, key) => late.push(key.name))
        await eventually(() => expect(late).toContain('watched-1'))
        stopLate()
        stop()
        await newOperation('unheard')
        await eventually(async () => expect(value(await mine.operations()).map(({ metadata }) => metadata.name)).toContain('unheard'))
        expect(heard.filter(one => /heartbeat|unheard/.test(one))).toEqual([])
        expect(late).not.toContain('unheard')
      })
    })

    describe('a Kube', () => {
      const kube = () => openKube(client)
      const node = async (name: string): Promise<NodeFacts> =>
        value(await kube().nodes()).find(one => one.name === name) ?? Promise.reject(new Error(`no Node ${name}`))
      const pod = async (name: string): Promise<PodFacts> =>
        value(await kube().podsOn('wk-1')).find(one => one.name === name) ?? Promise.reject(new Error(`no Pod ${name}`))
      const newPod = async (name: string, labels: object = {}) => {
        value(
          await client.create(
            RESOURCE.pod,
            { namespace },
            {
              metadata: { name, labels },
              spec: { nodeName: 'wk-1', terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
            },
          ),
        )
        const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }
        value(await client.patch(RESOURCE.pod, { namespace, name, subresource: 'status' }, { status }))
        return pod(name)
      }

      beforeAll(async () => {
        value(await client.create(RESOURCE.node, {}, { metadata: { name: 'wk-1', labels: { 'upgrade-order': '1' } } }))
        const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-02T03:04:05Z' }]
        const nodeInfo = {
          bootID: 'boot-1',
          systemUUID: 'uuid',
          kubeletVersion: 'v1.35.4',
          kernelVersion: '6.12',
          osImage: 'Talos (v1.13.5)',
          architecture: 'amd64',
          containerRuntimeVersion: 'c',
          kubeProxyVersion: '',
          machineID: 'm',
          operatingSystem: 'linux',
        }
        const addresses = [
          { type: 'InternalIP', address: '10.0.0.7' },
          { type: 'Hostname', address: 'wk-1' },
        ]
        value(await client.patch(RESOURCE.node, { name: 'wk-1', subresource: 'status' }, { status: { conditions, nodeInfo, addresses } }))
      })

      it('reads nodes', async () => {
        expect(await node('wk-1')).toMatchObject({
          controlPlane: false,
          ready: true,
          readySince: Date.UTC(2026, 0, 2, 3, 4, 5),
          bootID: 'boot-1',
          addresses: ['10.0.0.7'],
          kubeletVersion: 'v1.35.4',
          labels: { 'upgrade-order': '1' },
        })
        expect(value(await kube().version())).toMatch(/^v1\./)
      })

      it('cordons against what it read, with its mark, and lifts both', async () => {
        const free = await node('wk-1')
        expect(kindOf(await kube().cordon(free, 'uid-op'))).toBe('ok')
        expect(kindOf(await kube().cordon(free, 'uid-other'))).toBe('conflict')
        const cordoned = await node('wk-1')
        expect([cordoned.unschedulable, cordoned.annotations[ANNOTATION.cordonedBy]]).toEqual([true, 'uid-op'])
        expect(kindOf(await kube().uncordon(free))).toBe('conflict')
        expect(kindOf(await kube().uncordon(cordoned))).toBe('ok')
        const lifted = await node('wk-1')
        expect([lifted.unschedulable, lifted.annotations[ANNOTATION.cordonedBy]]).toEqual([false, undefined])
      })

      it('leaves a cordon that a person set in place of its own, and takes off the mark that kubectl left', async () => {
        const person = (unschedulable: true | null) =>
          client.patch(RESOURCE.node, { name: 'wk-1' }, { spec: { unschedulable } }, { fieldManager: 'kubectl' })
        expect(kindOf(await kube().cordon(await node('wk-1'), 'uid-op'))).toBe('ok')
        // One who cordons what is cordoned already changes nothing.
        expect(kindOf(await person(true))).toBe('ok')
        expect((await node('wk-1')).cordonedBy).toBe('uid-op')
        for (const unschedulable of [null, true] as const) expect(kindOf(await person(unschedulable))).toBe('ok')
        const theirs = await node('wk-1')
        expect([theirs.unschedulable, theirs.annotations[ANNOTATION.cordonedBy], theirs.cordonedBy]).toEqual([true, 'uid-op', undefined])
        expect(kindOf(await kube().uncordon(theirs))).toBe('ok')
        const left = await node('wk-1')
        expect([left.unschedulable, left.annotations[ANNOTATION.cordonedBy]]).toEqual([true, undefined])
        expect(kindOf(await person(null))).toBe('ok')
      })

      it('evicts a pod; one that is gone, or another of its name, is a success', async () => {
        const old = await newPod('evicted')
        expect(kindOf(await kube().evict(old))).toBe('ok')
        await eventually(async () => expect(value(await kube().podsOn('wk-1')).filter(({ name }) => name === 'evicted')).toEqual([]))
        expect(kindOf(await kube().evict(old))).toBe('ok')
        const next = await newPod('evicted')
        expect(next.uid).not.toBe(old.uid)
        expect(kindOf(await kube().evict(old))).toBe('ok')
        expect(kindOf(await kube().deletePod(old))).toBe('ok')
        expect((await pod('evicted')).uid).toBe(next.uid)
        expect(kindOf(await kube().deletePod(next))).toBe('ok')
      })

      const budget = async (name: string) =>
        value(
          await client.create(
            RESOURCE.budget,
            { namespace },
            {
              apiVersion: 'policy/v1',
              kind: 'PodDisruptionBudget',
              metadata: { name },
              spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
            },
          ),
        )

      it('is told by a budget that it has to wait, and by two that there are two', async () => {
        await budget('only-one')
        const guarded = await newPod('guarded', { app: 'guarded' })
        // No controller computes its status here, so nothing is allowed yet.
        const refused = await kube().evict(guarded)
        expect(refused).toMatchObject({ ok: false, fault: { kind: 'busy', message: expect.stringContaining('only-one') } })
        await budget('another')
        const twice = await kube().evict(guarded)
        expect(twice).toMatchObject({
          ok: false,
          fault: { kind: 'busy', message: expect.stringMatching(/more than one PodDisruptionBudget/) },
        })
        expect(value(await kube().budgets())).toEqual(
          expect.arrayContaining([{ namespace, name: 'only-one', disruptionsAllowed: 0, matchLabels: { app: 'guarded' } }]),
        )
        expect(kindOf(await kube().deletePod(guarded))).toBe('ok')
      })

      it('finds the volumes of a node', async () => {
        const attachment = (name: string, nodeName: string) => ({
          apiVersion: 'storage.k8s.io/v1',
          kind: 'VolumeAttachment',
          metadata: { name },
          spec: { attacher: 'a', nodeName, source: { persistentVolumeName: 'v' } },
        })
        for (const [name, on] of [
          ['va-1', 'wk-1'],
          ['va-2', 'wk-2'],
        ] as const)
          value(await client.create(RESOURCE.volumeAttachment, {}, attachment(name, on)))
        expect(value(await kube().volumeAttachments('wk-1'))).toEqual([{ name: 'va-1' }])
        value(
          await client.create(
            RESOURCE.persistentVolume,
            {},
            {
              metadata: { name: 'v' },
              spec: {
                accessModes: ['ReadWriteOnce'],
                capacity: { storage: '1Gi' },
                csi: { driver: 'a', volumeHandle: 'v' },
                claimRef: { namespace, name: 'db' },
              },
            },
          ),
        )
        expect(value(await kube().volumeAttachments('wk-1'))).toEqual([{ name: 'va-1', claim: `${namespace}/db` }])
      })

      it('finds Cilium and kube-proxy, or that they are not there', async () => {
        expect(value(await kube().addons())).toEqual({ cilium: undefined, kubeProxy: false })
        const daemonSet = (name: string, container: string, image: string) => ({
          apiVersion: 'apps/v1',
          kind: 'DaemonSet',
          metadata: { name, namespace: 'kube-system' },
          spec: {
            selector: { matchLabels: { app: name } },
            template: {
              metadata: { labels: { app: name } },
              spec: {
                containers: [
                  { name: 'side', image: 'x:v9' },
                  { name: container, image },
                ],
              },
            },
          },
        })
        await eventually(async () => value(await client.get(RESOURCE.namespace, { name: 'kube-system' })))
        value(
          await client.create(
            RESOURCE.daemonSet,
            { namespace: 'kube-system' },
            daemonSet('cilium', 'cilium-agent', `quay.io/cilium/cilium:v1.18.2@sha256:${'0'.repeat(64)}`),
          ),
        )
        expect(value(await kube().addons())).toEqual({ cilium: { version: '1.18.2', config: undefined }, kubeProxy: false })
        value(
          await client.create(
            RESOURCE.configMap,
            { namespace: 'kube-system' },
            { metadata: { name: 'cilium-config' }, data: { 'kube-proxy-replacement': 'true' } },
          ),
        )
        value(
          await client.create(
            RESOURCE.daemonSet,
            { namespace: 'kube-system' },
            daemonSet('kube-proxy', 'kube-proxy', 'registry.k8s.io/kube-proxy:v1.35.4'),
          ),
        )
        expect(value(await kube().addons())).toEqual({
          cilium: { version: '1.18.2', config: { 'kube-proxy-replacement': 'true' } },
          kubeProxy: true,
        })
      })

      it('comes by the kubeconfig in a Secret of the cluster', async () => {
        const { readFileSync } = await import('node:fs')
        const kubeconfig = readFileSync(server.kubeconfigPath('viewer'))
        value(
          await client.create(
            RESOURCE.secret,
            { namespace },
            { metadata: { name: 'remote' }, data: { kubeconfig: kubeconfig.toString('base64') } },
          ),
        )
        const connections = kubeConnections({ home, own: kube(), clock: realClock, userAgent: 'x' })
        closing.push(connections.close)
        const metadata = (await newOperation('connections')).metadata
        const cluster = {
          metadata,
          spec: { talosconfigSecretRef: { name: 't', key: 'talosconfig' }, kubeconfigSecretRef: { name: 'remote', key: 'kubeconfig' } },
          status: {},
        }
        expect(kindOf(await value(await connections.kube(cluster)).nodes())).toBe('forbidden')
      })
    })

    it('survives the death of the server, and misses nothing: a change, a deletion, another of the same name', async () => {
      for (const name of ['dies-stays', 'dies-goes', 'dies-again']) await newOperation(name)
      const old = value(await home.operation({ namespace, name: 'dies-again' }))
      const changes: string[] = []
      const problems: string[] = []
      const reflector = startReflector<TalosOperation>({
        source: {
          list: signal => client.list(RESOURCE.talosOperation, { signal }),
          watch: (watch, on) => client.watch(RESOURCE.talosOperation, watch, on),
        },
        parse: operationOf,
        clock: realClock,
        random: () => 0,
        changed: ({ type, object }) =>
          changes.push(`${type} ${object.metadata.name} ${object.metadata.uid === old.metadata.uid ? 'old' : 'it'}`),
        problem: ({ message }) => problems.push(message),
      })
      closing.push(reflector.stop)
      value(await reflector.ready())
      await eventually(() => expect(reflector.isHealthy()).toBe(true))
      changes.length = 0

      await server.kill()
      await eventually(() => expect(reflector.isHealthy()).toBe(false))
      // Nothing is held back while the server is away: the fault says so at once.
      // It watches for itself, and may hear of it a moment later.
      await eventually(async () => expect(kindOf(await home.operations())).toBe('unreachable'))
      expect(reflector.all().map(({ metadata }) => metadata.name)).toContain('dies-goes')
      await server.restart()

      // Meanwhile, as far as the reflector can tell.
      value(await home.deleteOperation(value(await home.operation({ namespace, name: 'dies-goes' }))))
      value(await home.deleteOperation(old))
      await newOperation('dies-again')
      value(await home.writeOperationStatus(value(await home.operation({ namespace, name: 'dies-stays' })), { phase: 'Running' }))

      await eventually(
        () =>
          expect(changes.toSorted()).toEqual([
            'added dies-again it',
            'changed dies-stays it',
            'deleted dies-again old',
            'deleted dies-goes it',
          ]),
        40_000,
      )
      await eventually(() => expect(reflector.isHealthy()).toBe(true))
      expect(problems.length).toBeGreaterThan(0)
      expect(record(reflector.get(`${namespace}/dies-stays`)?.status)).toEqual({ phase: 'Running' })
      await eventually(
        async () => expect(value(await home.operations()).map(({ metadata }) => metadata.name)).not.toContain('dies-goes'),
        40_000,
      )
    }, 120_000)

    it('counts every request, with what came of it', async () => {
      const read = await newOperation('counted')
      const before = records.length
      await home.writeOperationStatus(read, { phase: 'Running' })
      await home.writeOperationStatus(read, { phase: 'Paused' })
      const written = records.slice(before).filter(({ resource }) => resource === 'talosoperations/status')
      expect(written).toMatchObject([
        { verb: 'update', code: 200 },
        { verb: 'update', code: 409 },
      ])
    })
  },
)
