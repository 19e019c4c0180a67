// The controller as a process of its own, between API servers (the simulated one, and a real one with a real etcd) and simulated machines on the wire.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { at, text } from '../../src/adapters/kube/json.ts'
import { RESOURCE, type Resource } from '../../src/adapters/kube/resource.ts'
import { writeKubeconfig } from '../../src/app/demo/credentials.ts'
import { flawsAfter } from '../../src/app/demo/outcome.ts'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire, type Process } from '../cluster-on-the-wire.ts'
import { realParts } from '../real/parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')
const ichor = join(import.meta.dirname, '..', '..', 'bin', 'ichor')

const SPEED = 150
const LONG = 120_000
const eventually = <T>(check: () => T | Promise<T>, timeout = LONG - 5_000) => vi.waitFor(check, { timeout, interval: 20 })

let cluster: ClusterOnTheWire
const said = ({ log }: Process): readonly string[] => log().map(({ msg }) => msg)

const completed = (name: string) =>
  eventually(async () => {
    const status = await cluster.status(name)
    expect([status?.phase, status?.failureReason, status?.message]).toEqual(['Completed', undefined, expect.any(String)])
  })

/** From now on: entries of the world's journal, so that one cluster can be upgraded again and again. */
const chapter = () => {
  const from = cluster.world.journal.entries().length
  const entries = (what: string) =>
    cluster.world.journal
      .entries()
      .slice(from)
      .filter(entry => entry.what === what)
  return {
    entries,
    until: (what: string, count = 1) => eventually(() => expect(entries(what).length, `${what}, so far`).toBeGreaterThanOrEqual(count)),
  }
}

/** Whatever happened to the controller meanwhile. */
const expectEachUpgradedOnce = (version: string, { entries }: ReturnType<typeof chapter>) => {
  const { world } = cluster
  expect(
    entries('boot')
      .map(({ machine }) => machine)
      .toSorted(),
  ).toEqual(world.machines.map(({ name }) => name).toSorted())
  expect(entries('quorum-lost')).toEqual([])
  const flaws = flawsAfter(world, version).filter(flaw => !/was booted \d+ times/.test(flaw))
  expect(flaws).toEqual([])
  expect(cluster.faults).toEqual([])
}

const leaderLease = async () => {
  const lease = await cluster.client.get(RESOURCE.lease, { namespace: NAMESPACE, name: 'ichor-controller' })
  return lease.ok ? text(at(lease.value, 'spec', 'holderIdentity')) : undefined
}

const isHealthy = () =>
  eventually(async () => {
    const found = await cluster.client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
    const { machines, conditions } = (found.ok ? found.value['status'] : {}) as {
      machines?: { summary?: string }
      conditions?: { status: string; message: string }[]
    }
    const all = cluster.world.machines.length
    expect([conditions?.[0]?.status, machines?.summary]).toEqual(['True', `${all}/${all}`])
  })

describe('the controller and a simulated API server', () => {
  beforeAll(async () => {
    cluster = await startCluster({ controlPlanes: 3, workers: 1, from: 'v1.13.5', speed: SPEED })
  }, LONG)
  afterAll(() => cluster?.close())

  it(
    'carries an upgrade through, over an outage of the API and two kill -9 of the controller',
    async () => {
      await cluster.register()
      const first = await cluster.startController({ identity: 'ichor-0' })
      await isHealthy()
      const story = chapter()
      await cluster.upgrade('up', 'v1.13.9')
      await story.until('install-began')
      await first.kill('SIGKILL')
      // The same identity, given by hand: it need not wait for its own lease to run out.
      const second = await cluster.startController({ identity: 'ichor-0' })
      await story.until('boot')
      cluster.world.apiOutage(2_000)
      await story.until('reboot-requested', 3)
      await second.kill('SIGKILL')
      await cluster.startController({ identity: 'ichor-0' })
      await completed('up')
      expectEachUpgradedOnce('v1.13.9', story)
    },
    LONG,
  )
})

describe.skipIf('missing' in servers)('the controller and a real API server', () => {
  const running: Process[] = []
  const start = async (identity: string, kubeconfigPath?: string): Promise<Process> => {
    const controller = await cluster.startController({ identity, ...(kubeconfigPath ? { kubeconfigPath } : {}) })
    running.push(controller)
    return controller
  }

  beforeAll(async () => {
    cluster = await startCluster({ controlPlanes: 3, workers: 1, from: 'v1.13.3', speed: SPEED, realApiServer: true })
  }, 120_000)
  afterEach(() => Promise.all(running.splice(0).map(controller => controller.kill('SIGTERM'))))
  afterAll(() => cluster?.close())

  it(
    'waits for the resource types and for the Secret, and says what is missing',
    async () => {
      const controller = await start('ichor-0')
      await eventually(() =>
        expect(said(controller)).toContainEqual(expect.stringMatching(/resource types are not installed.*ichor install --crds-only/)),
      )
      await promisify(execFile)(ichor, ['install', '--crds-only', '--kubeconfig', cluster.kubernetes.kubeconfigPath], {
        env: { ...process.env, ICHOR_SOURCE: '1' },
      })
      await eventually(() => expect(said(controller)).toContain('leading'))
      // The types come one after the other, and it may look in between: what is missing changes then, but nothing is said twice.
      const waits = said(controller).filter(line => line.startsWith('waiting:'))
      expect(waits.filter(line => !line.includes('ichor install --crds-only'))).toEqual([])
      expect(waits).toEqual([...new Set(waits)])

      await cluster.register({ withoutSecret: true })
      await eventually(async () => {
        const found = await cluster.client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
        const [ready] = ((found.ok ? at(found.value, 'status', 'conditions') : undefined) ?? []) as { status: string; message: string }[]
        expect(ready?.status).toBe('False')
        expect(ready?.message).toMatch(/Secret ichor-system\/home-talosconfig/)
      })
      await cluster.createSecret()
      await isHealthy()
    },
    LONG,
  )

  it(
    'names the rights that it lacks, and takes no part',
    async () => {
      const kubeconfigPath = await viewerKubeconfig()
      const controller = await start('viewer', kubeconfigPath)
      const refusal =
        /^waiting: this controller's credential may not .*create, patch leases in ichor-system.*update talosoperations\/status/
      await eventually(() => expect(said(controller)).toContainEqual(expect.stringMatching(refusal)))
      expect(said(controller)).not.toContain('leading')
      expect(controller.log().filter(({ level }) => level >= 40)).toHaveLength(1)
      expect(await leaderLease()).not.toBe('viewer')
      await controller.kill('SIGTERM')
      expect(await controller.exited).toBe(0)
    },
    LONG,
  )

  it(
    'changes leaders in the middle of an upgrade: by a crash, and in good order',
    async () => {
      const [first, second] = [await start('ichor-1'), await start('ichor-2')]
      await eventually(async () => expect(['ichor-1', 'ichor-2']).toContain(await leaderLease()))
      const [leader, follower] = (await leaderLease()) === 'ichor-1' ? [first, second] : [second, first]
      const story = chapter()
      await cluster.upgrade('by-two', 'v1.13.5')
      await story.until('install-began')
      await leader.kill('SIGKILL')
      await eventually(() => expect(said(follower)).toContain('leading'))
      expect(said(follower).filter(line => line === 'leading')).toHaveLength(1)

      const third = await start('ichor-3')
      await eventually(() => expect(said(third)).toContain('starting'))
      await story.until('install-began', story.entries('install-began').length + 1)
      await follower.kill('SIGTERM')
      expect(await follower.exited).toBe(0)
      // It gave its leadership up: nobody has to wait until it is overdue.
      await eventually(() => expect(said(third)).toContain('leading'), 10_000)
      await completed('by-two')
      expectEachUpgradedOnce('v1.13.5', story)
    },
    LONG,
  )

  it(
    'carries an upgrade through, over a kill -9 of the API server and two of the controller',
    async () => {
      const first = await start('ichor-0')
      const story = chapter()
      await cluster.upgrade('up', 'v1.13.9')
      await story.until('installed')
      await first.kill('SIGKILL')
      const second = await start('ichor-0')
      await story.until('boot')
      // The world's API server fails, and the real one is killed and started again with it.
      cluster.world.apiOutage(1_000)
      await story.until('api-up')
      await story.until('reboot-requested', 3)
      await second.kill('SIGKILL')
      await start('ichor-0')
      await completed('up')
      expectEachUpgradedOnce('v1.13.9', story)
    },
    LONG,
  )
})

/** A ServiceAccount that may read everything of Ichor's, and nothing else. */
const viewerKubeconfig = async (): Promise<string> => {
  const { client, folder, kubernetes } = cluster
  const rbac = (plural: string, kind: string): Resource => ({ group: 'rbac.authorization.k8s.io', version: 'v1', plural, kind })
  const account: Resource = { group: '', version: 'v1', plural: 'serviceaccounts', kind: 'ServiceAccount' }
  const create = async (type: Resource, place: { namespace?: string; name?: string; subresource?: string }, body: object) => {
    const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`
    const created = await client.create(type, place, { apiVersion, kind: type.kind, ...body })
    if (!created.ok) throw new Error(created.fault.message)
    return created.value
  }
  await create(account, { namespace: NAMESPACE }, { metadata: { name: 'viewer' } })
  const rules = [{ apiGroups: ['ichor.maesh.dev'], resources: ['*'], verbs: ['get', 'list', 'watch'] }]
  await create(rbac('clusterroles', 'ClusterRole'), {}, { metadata: { name: 'reads-ichor' }, rules })
  await create(
    rbac('clusterrolebindings', 'ClusterRoleBinding'),
    {},
    {
      metadata: { name: 'reads-ichor' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reads-ichor' },
      subjects: [{ kind: 'ServiceAccount', name: 'viewer', namespace: NAMESPACE }],
    },
  )

  const issued = await client.create(
    account,
    { namespace: NAMESPACE, name: 'viewer', subresource: 'token' },
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
  )
  if (!issued.ok) throw new Error(issued.fault.message)
  const path = join(folder, 'kubeconfig-viewer')
  const admin = JSON.parse(await readFile(kubernetes.kubeconfigPath, 'utf8')) as {
    clusters: { cluster: { 'certificate-authority-data': string } }[]
  }
  const caPem = Buffer.from(admin.clusters[0]!.cluster['certificate-authority-data'], 'base64').toString()
  const user = { name: 'viewer', token: text(at(issued.value, 'status', 'token')) }
  writeKubeconfig({ path, cluster: CLUSTER, namespace: NAMESPACE, url: kubernetes.url, caPem, user })
  return path
}
