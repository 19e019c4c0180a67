// ichor doctor as it is typed: against simulated machines and the simulated Kubernetes API with a controller at work, and against a real API server,
// whose access reviews, policies and stored types nobody has to imitate.
import { writeFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type KubeClient, type KubeObject } from '../../src/adapters/kube/client.ts'
import type { Resource } from '../../src/adapters/kube/resource.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { version } from '../../src/app/cli/version.ts'
import { CLUSTER, type ClusterOnTheWire, NAMESPACE, openClient, startCluster } from '../cluster-on-the-wire.ts'
import { type RealKubeApiserver, startKubeApiserver } from '../real/kube-apiserver.ts'
import { realParts } from '../real/parts.ts'
import { runIchor } from './bad-input/bench.ts'

const servers = await realParts('etcd', 'kube-apiserver')

type Finding = { readonly cluster?: string; readonly look: string; readonly severity: string; readonly message: string }
type Found = { readonly code: number; readonly findings: readonly Finding[]; readonly troubles: readonly string[] }

const doctor = async (kubeconfig: string, ...argv: readonly string[]): Promise<Found> => {
  const { code, out, err } = await runIchor(['--kubeconfig', kubeconfig, '-n', NAMESPACE, 'doctor', '-o', 'json', ...argv])
  if (out === '') throw new Error(err)
  const { findings } = JSON.parse(out) as { readonly findings: readonly Finding[] }
  const troubles = findings.flatMap(({ look, severity, message }) => (severity === 'ok' ? [] : [`${look}: ${severity}: ${message}`]))
  return { code, findings, troubles }
}
/** Long: a busy machine is to decide nothing. */
const LIMIT_MS = 300_000
vi.setConfig({ testTimeout: LIMIT_MS, hookTimeout: LIMIT_MS })
const eventually = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, { timeout: LIMIT_MS - 10_000, interval: 100 })

const must = async (what: Promise<{ readonly ok: boolean; readonly fault?: { readonly message: string } }>): Promise<void> => {
  const answer = await what
  if (!answer.ok) throw new Error(answer.fault?.message)
}

describe('ichor doctor on the wire', () => {
  let cluster: ClusterOnTheWire
  const look = (...argv: readonly string[]) => doctor(cluster.kubernetes.kubeconfigPath, ...argv)
  /** What is found anew when something is done to the world. */
  const untilFound = (what: RegExp) => eventually(async () => expect((await look()).troubles).toContainEqual(expect.stringMatching(what)))
  const untilWell = () => eventually(async () => expect((await look()).troubles).toEqual([]))

  beforeAll(async () => {
    cluster = await startCluster({ controlPlanes: 3, workers: 2, from: 'v1.13.5', speed: 50 })
  })
  afterAll(() => cluster?.close())

  it('before anything is there, says what comes first', async () => {
    const { code, troubles } = await look()
    expect([code, troubles]).toEqual([
      3,
      [
        `controller: error: There is no Deployment ichor-controller in namespace ${NAMESPACE}.`,
        `leader: error: Nobody has ever led in namespace ${NAMESPACE}.`,
      ],
    ])
  })

  it('finds nothing wrong with a cluster that was added and looked at', async () => {
    const added = await runIchor([
      ...['--kubeconfig', cluster.kubernetes.kubeconfigPath, '-n', NAMESPACE],
      ...['cluster', 'add', CLUSTER, '--talosconfig', cluster.talosconfigPath],
    ])
    expect([added.code, added.err.split('\n').length]).toEqual([0, 3])
    await cluster.startController({ identity: 'ichor-1' })
    await untilWell()
    const { code, findings } = await look()
    expect(code).toBe(0)
    const said = (name: string) => findings.filter(one => one.cluster === CLUSTER && one.look === name).map(({ message }) => message)
    expect(said('machines')).toEqual(['5 machines, all running and ready.'])
    expect(said('nodes')).toEqual(['5 Nodes, each with its machine.'])
    expect(said('clocks')).toEqual([expect.stringMatching(/^7 agree to \d s\.$/)])
    expect(said('etcd')).toEqual([expect.stringMatching(/^3 members, cp-\d leads, 1 may fail/)])
    expect(findings.find(one => one.look === 'leader')?.message).toBe('ichor-1 leads.')
    expect(findings.find(one => one.look === 'certificates' && !one.cluster)?.message).toMatch(
      /^Of 3 the first to end is the certificate of the API server/,
    )
  })

  it('finds a clock that is wrong, an alarm of etcd, and a machine that is off; and nothing when they are mended', async () => {
    const { world } = cluster
    world.setClock('wk-2', -120_000)
    // Before the certificate of the client begins, by its own clock.
    await untilFound(/^machines: error: wk-2 \(.*\) does not answer: .*certificate"; it answers through [\d.]+, so it runs$/)
    const { out } = await runIchor(['--kubeconfig', cluster.kubernetes.kubeconfigPath, '-n', NAMESPACE, 'doctor'])
    expect(out).toMatch(/What is shown as a certificate of another time is often a wrong clock\.\n +\$ talosctl -e [\d.]+ -n [\d.]+ time\n/)
    world.setClock('wk-2', -12_000)
    await untilFound(/^clocks: warning: The clock of wk-2 is 1[123]s behind\.$/)
    world.setClock('wk-2', 0)
    world.etcd.raiseAlarm(world.member('cp-2').id, 'NOSPACE')
    await untilFound(/^etcd: error: etcd condition 6 on cp-2: etcd has raised the alarm NOSPACE/)
    world.etcd.disarm()
    world.powerOff('wk-1')
    await untilFound(/^machines: error: wk-1 \(.*\) does not answer/)
    world.powerOn('wk-1')
    await untilWell()
  })

  it('looks at the machines where the Kubernetes API does not answer, and where there is no kubeconfig', async () => {
    const gone = join(cluster.folder, 'gone')
    writeFileSync(
      gone,
      readFileSync(cluster.kubernetes.kubeconfigPath, 'utf8').replace(/https:\/\/127\.0\.0\.1:\d+/, 'https://127.0.0.1:1'),
    )
    for (const [kubeconfig, code] of [
      [gone, 3],
      [join(cluster.folder, 'nowhere'), 1],
    ] as const) {
      const found = await doctor(kubeconfig, '--talosconfig', cluster.talosconfigPath)
      expect(found.code).toBe(code)
      expect(found.findings.filter(({ look: name }) => name === 'machines' || name === 'etcd').map(({ severity }) => severity)).toEqual([
        'ok',
        'ok',
      ])
      expect(found.troubles.find(one => one.startsWith('nodes: unknown: '))).toBeDefined()
    }
    const alone = await runIchor(['--kubeconfig', gone, 'doctor'])
    expect(alone.code).toBe(3)
    expect(alone.out).toContain('does not answer: 127.0.0.1:1: ')
    expect(alone.out).toContain('$ ichor doctor --talosconfig FILE')
  })
})

describe.skipIf('missing' in servers)(`ichor doctor and a real API server${'missing' in servers ? ` (${servers.missing})` : ''}`, () => {
  const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' }
  const ROLE_BINDING: Resource = { ...RBAC, plural: 'rolebindings', kind: 'RoleBinding' }
  const POLICY: Resource = {
    ...{ group: 'admissionregistration.k8s.io', version: 'v1' },
    ...{ plural: 'validatingadmissionpolicies', kind: 'ValidatingAdmissionPolicy' },
  }
  /** No pod runs here, so none of it is available. */
  const UNAVAILABLE = 'controller: error: None of its 2 replicas is available.'
  const CRD = 'talosmachines.ichor.maesh.dev'
  const ACCOUNT = `system:serviceaccount:${NAMESPACE}:ichor-controller`
  let server: RealKubeApiserver
  let client: KubeClient & { readonly close: () => void }
  const look = (user = 'admin') => doctor(server.kubeconfigPath(user as 'admin'))
  const install = async () => {
    const args = ['--kubeconfig', server.kubeconfigPath('admin'), '-n', NAMESPACE, 'install', '--no-wait']
    const said = await runIchor([...args, '--image', `registry.example.org/ichor:${version}`])
    if (said.code !== 0) throw new Error(said.err)
  }
  const untilTroubles = (wanted: readonly RegExp[]) =>
    eventually(async () => expect((await look()).troubles).toEqual(wanted.map(one => expect.stringMatching(one))))
  /** As the controller does it: once the policy is at work, which is some moment after the install, nobody else may. */
  const beat = async () => {
    const spec = { holderIdentity: 'ichor-1', leaseDurationSeconds: 3_600, renewTime: new Date().toISOString().replace('Z', '000Z') }
    const lease: KubeObject = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'ichor-controller' }, spec }
    const controller = await openClient(server.kubeconfigPath(ACCOUNT))
    // Its rights, too, are at work only some moment after the install.
    await eventually(() => must(controller.create(RESOURCE.lease, { namespace: NAMESPACE }, lease))).finally(controller.close)
  }

  beforeAll(async () => {
    server = await startKubeApiserver({ users: { weak: [], looker: [], [ACCOUNT]: [] } })
    client = await openClient(server.kubeconfigPath('admin'))
  })
  afterAll(async () => {
    client?.close()
    await server?.stop()
  })

  it('says in one line that nothing is installed', async () => {
    const { code, troubles } = await look()
    expect([code, troubles]).toEqual([3, ['installation: error: Ichor is not installed here.']])
  })

  it('finds what ichor install writes to be right: types, policies, and each single right of the controller', async () => {
    await install()
    await beat()
    await untilTroubles([new RegExp(`^${UNAVAILABLE}$`)])
    const { findings } = await look()
    const said = (name: string) => findings.filter(one => one.look === name).map(({ severity, message }) => `${severity}: ${message}`)
    expect(said('CRDs')).toEqual(['ok: 4 types, as this program has them.'])
    expect(said("controller's rights")).toEqual(['ok: It may do all that it does.'])
    expect(said('policies')).toEqual(['ok: They hold, for the controller system:serviceaccount:ichor-system:ichor-controller.'])
    expect(said('leader')).toEqual(['ok: ichor-1 leads.'])
    expect(said('clocks')).toEqual(['ok: 2 agree to 1 s.'])
  })

  it('finds rights that were taken away, until they are given again', async () => {
    await must(client.delete(ROLE_BINDING, { namespace: NAMESPACE, name: 'ichor-controller' }))
    await untilTroubles([
      /^controller's rights: error: It may not get talosclusters\.ichor\.maesh\.dev in ichor-system, .* things more\.$/,
      /^controller: /,
    ])
    await install()
    await untilTroubles([/^controller: /])
  })

  it('finds a policy that was narrowed, until it is whole again', async () => {
    const change = { spec: { matchConstraints: { objectSelector: { matchLabels: { strict: 'yes' } } } } }
    await must(client.patch(POLICY, { name: 'ichor-operations' }, change))
    await untilTroubles([/^policies: error: ValidatingAdmissionPolicy ichor-operations is not the one of this version/, /^controller: /])
    await install()
    await untilTroubles([/^controller: /])
  })

  it('finds a type of another version, until it is the one of this', async () => {
    const path = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/newer'
    await must(client.patch(RESOURCE.crd, { name: CRD }, [{ op: 'add', path, value: { type: 'string' } }], { type: 'json' }))
    await untilTroubles([
      /^CRDs: warning: talosmachines\.ichor\.maesh\.dev is of another version of Ichor: it differs in spec\.newer\.$/,
      /^controller: /,
    ])
    await install()
    await untilTroubles([/^controller: /])
  })

  it('tells who may nothing that nothing could be seen, and a viewer what a viewer does not see', async () => {
    const weak = await look('weak')
    expect(weak.code).toBe(1)
    expect(weak.findings.filter(({ look: name }) => name === 'your rights').map(({ message }) => message)).toEqual([
      `You may do nothing with Ichor in namespace ${NAMESPACE}.`,
    ])
    for (const name of ['CRDs', 'policies', "controller's rights", 'controller', 'leader', 'cluster'])
      expect(
        weak.troubles.find(one => one.startsWith(`${name}: unknown: `)),
        name,
      ).toBeDefined()

    const subjects = [{ kind: 'User', apiGroup: RBAC.group, name: 'looker' }]
    const roleRef = { apiGroup: RBAC.group, kind: 'ClusterRole', name: 'ichor-viewer' }
    await must(client.create(ROLE_BINDING, { namespace: NAMESPACE }, { metadata: { name: 'looker' }, roleRef, subjects }))
    const viewer = await eventually(async () => {
      const found = await look('looker')
      expect(found.findings).toContainEqual(expect.objectContaining({ look: 'leader', severity: 'ok' }))
      return found
    })
    expect(viewer.code).toBe(1)
    expect(viewer.findings.find(({ look: name }) => name === 'your rights')?.message).toMatch(
      /^You may see operations, clusters and machines; not start and steer operations, .*read talosconfigs\.$/,
    )
    expect(viewer.troubles.every(one => one.includes(': unknown: '))).toBe(true)
  })
})
