import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTalosCa, createTalosClient, validFor } from '../../../src/adapters/pki/talos-pki.ts'
import { writeTalosconfig } from '../../../src/adapters/talos/talosconfig.ts'
import { createStore } from '../../../src/world/store.ts'
import type { Bench, KubernetesApi } from './bench.ts'
import {
  addCluster,
  addHome,
  CLOSED_NAMESPACE,
  CLUSTER,
  eventually,
  NAMESPACE,
  RESOURCE,
  refusalsOf,
  runIchor,
  startBench,
  startKubernetes,
  upgradeTo,
} from './bench.ts'

// Processes and real waits, on computers that do other things as well.
vi.setConfig({ testTimeout: 30_000 })

let bench: Bench
beforeAll(async () => {
  bench = await startBench()
  await addHome(bench)
}, 60_000)
afterAll(() => bench?.close())

const upgrade = (...args: string[]) => bench.ichor('upgrade', 'talos', 'v1.13.9', '--yes', ...args)
const count = async (type: (typeof RESOURCE)['secret'], namespace: string) => {
  const listed = await bench.kubernetes.client.list(type, { namespace })
  return listed.ok ? listed.value.items.length : listed.fault.message
}
const address = (index: number) => bench.machines.address(index)

/** A wrong Secret, by the name of its namespace; what is said of it; and what `cluster add` says of the file, or finds with it, where there is one. */
type Wrong = {
  readonly secret?: Readonly<Record<string, string>>
  readonly refusal: string
  readonly added?: string
  readonly found?: string
}

const certificate =
  "the machine's certificate is not what this address and the talosconfig's ca call for; a machine without a configuration (maintenance mode) looks like this too (self-signed certificate in certificate chain)"

const wrongs = async (): Promise<Readonly<Record<string, Wrong>>> => {
  const good = await bench.talosconfig()
  const otherCa = await createTalosCa({ from: new Date() })
  const stranger = await createTalosClient({ ca: otherCa, roles: ['os:admin'], validity: validFor(new Date(), 24) })
  const put = (namespace: string) =>
    `Put a talosconfig with the role os:admin into the Secret ${namespace}/home-talosconfig, key talosconfig, that TalosCluster home refers to.`
  return {
    'no-secret': {
      refusal: `TalosconfigInvalid: Secret no-secret/home-talosconfig does not exist; TalosCluster home takes its talosconfig from there. ${put('no-secret')}`,
    },
    'no-key': {
      secret: { config: good },
      refusal: `TalosconfigInvalid: Secret no-key/home-talosconfig has no key talosconfig; it has config. ${put('no-key')}`,
    },
    'not-parsed': {
      secret: { talosconfig: 'contexts: [' },
      refusal: `TalosconfigInvalid: Secret not-parsed/home-talosconfig, key talosconfig: talosconfig is not YAML: line 1 cannot be read. ${put('not-parsed')}`,
      added: 'talosconfig is not YAML: line 1 cannot be read',
    },
    'wrong-ca': {
      secret: { talosconfig: await bench.talosconfig({ signedBy: otherCa }) },
      refusal: `WrongCluster: ${address(0)}: MachineService.Version: ${certificate} (and 4 more machines). Put the talosconfig of this very cluster into the Secret wrong-ca/home-talosconfig, key talosconfig, that TalosCluster home refers to, or correct the address of the TalosMachine.`,
      found: `The machines do not take it: ADDRESS: State.List Members.cluster.talos.dev: ${certificate}`,
    },
    'another-ca-signed-it': {
      secret: {
        talosconfig: writeTalosconfig({
          contextName: CLUSTER,
          endpoints: [address(0)],
          caPem: bench.machines.ca.crt,
          crtPem: stranger.crt,
          keyPem: stranger.key,
        }),
      },
      refusal: `MachineUnreachable: None of the 5 machines of home answers; cp-1 (${address(0)}): ${address(0)}: MachineService.Version: the machine closed the connection right after the TLS handshake; it may not accept the client certificate of the talosconfig. Their port 50000 has to be reachable from where Ichor runs, and the talosconfig has to be of this cluster.`,
    },
    expired: {
      secret: { talosconfig: await bench.talosconfig({ hours: -1 }) },
      refusal:
        'CredentialRejected: Secret expired/home-talosconfig, key talosconfig: the client certificate of context "home" expired on TIME. Write a fresh talosconfig with the role os:admin into the Secret expired/home-talosconfig, key talosconfig, that TalosCluster home refers to (`talosctl config new --roles os:admin`).',
      added: 'the client certificate of context "home" expired on TIME',
    },
    'reader-only': {
      secret: { talosconfig: await bench.talosconfig({ roles: ['os:reader'] }) },
      refusal:
        'PermissionDenied: Secret reader-only/home-talosconfig: the client certificate of its talosconfig has only the role os:reader; it needs os:admin (`talosctl config new --roles os:admin`).',
      found: 'Its certificate has the role os:reader; Ichor needs os:admin.',
    },
  }
}

/** What differs from run to run. */
// Whether a machine that refuses our certificate is heard to close the connection, or to reset it, is a race below TLS.
const steady = (text: string) =>
  text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
    .replace(/do not take it: [\d.]+:/, 'do not take it: ADDRESS:')
    .replaceAll(
      'read ECONNRESET',
      'the machine closed the connection right after the TLS handshake; it may not accept the client certificate of the talosconfig',
    )

describe('a talosconfig that is wrong', () => {
  let known: Readonly<Record<string, Wrong>>
  beforeAll(async () => {
    known = await wrongs()
  })

  it.each(['no-secret', 'no-key', 'not-parsed', 'wrong-ca', 'another-ca-signed-it', 'expired', 'reader-only'])('%s', async name => {
    const { secret, refusal, added, found } = known[name]!
    const machines = bench.machines.world.machines.map(({ name: machine, index, role }) => [machine, address(index), role] as const)
    await addCluster(bench, name, { ...(secret ? { secret } : {}), machines })

    const { code, out, err } = await upgrade('-n', name)
    const [first, second, third, ...rest] = steady(err).trimEnd().split('\n')
    expect([code, out, first, second, rest]).toEqual([
      3,
      '',
      'error: the checks refuse talos v1.13.9 on cluster home; nothing was started',
      `  ${refusal}`,
      [],
    ])
    expect(third).toMatch(/^ {2}--plan shows the whole plan\.$|^ {2}--no-plan leaves the checks to the controller/)
    expect(await count(RESOURCE.talosOperation, name)).toBe(0)

    const status = await bench.operate(name, 'up', upgradeTo({ version: 'v1.13.9' }))
    expect([status.phase, status.failureReason, status.lock]).toEqual(['Paused', 'PreflightRefused', undefined])
    expect(refusalsOf(status).map(steady)).toEqual([refusal])
    expect(steady(status.message ?? '')).toBe(refusal.replace(/^\w+: /, ''))
    expect(bench.traces()).toEqual([])

    if (added === undefined && found === undefined) return
    const path = bench.write(`talosconfig-${name}`, secret!['talosconfig']!)
    const refused = await bench.ichor('cluster', 'add', 'another', '--talosconfig', path)
    const cure =
      '    Write a talosconfig of this very cluster with the role os:admin; one that has it makes another.\n    $ talosctl --talosconfig ADMIN config new --roles os:admin FILE'
    expect([refused.code, refused.out, steady(refused.err)]).toEqual(
      found === undefined
        ? [1, '', `error: ${path}: ${added}\n`]
        : [3, '', `error: the checks refuse to add cluster another; nothing was created\n  talosconfig: ${found}\n${cure}\n`],
    )
    expect([await count(RESOURCE.secret, NAMESPACE), await count(RESOURCE.talosCluster, NAMESPACE)]).toEqual([1, 1])
  })

  it('without any machine found by then, the cluster says why', async () => {
    await addCluster(bench, 'bare', {})
    const because = 'Secret bare/home-talosconfig does not exist; TalosCluster home takes its talosconfig from there'
    await eventually(async () => {
      const cluster = await bench.kubernetes.client.get(RESOURCE.talosCluster, { namespace: 'bare', name: CLUSTER })
      const status = (cluster.ok ? cluster.value['status'] : undefined) as
        | { conditions?: { reason: string; message: string }[] }
        | undefined
      return status?.conditions?.some(({ reason, message }) => reason === 'TalosUnreachable' && message === because) || undefined
    }, 'the cluster says that its Secret is missing')
    const refusal = `TalosUnreachable: The machines of TalosCluster home cannot be discovered: ${because}. Mend that first; they are then discovered by themselves.`
    const said = await upgrade('-n', 'bare')
    expect([said.code, said.err.split('\n')[1]]).toEqual([3, `  ${refusal}`])
    const status = await bench.operate('bare', 'up', upgradeTo({ version: 'v1.13.9' }))
    expect(refusalsOf(status)).toEqual([refusal])
    expect(bench.traces()).toEqual([])
  })

  it('a Secret that the controller may not read', async () => {
    await addCluster(bench, CLOSED_NAMESPACE, {
      secret: { talosconfig: await bench.talosconfig() },
      machines: [['cp-1', address(0), 'controlplane']],
    })
    const status = await bench.operate(CLOSED_NAMESPACE, 'up', upgradeTo({ version: 'v1.13.9' }))
    expect(status.failureReason).toBe('PreflightRefused')
    expect(refusalsOf(status).map(text => text.replace(/127\.0\.0\.1:\d+/, 'PEER'))).toContain(
      'PermissionDenied: Secret closed/home-talosconfig cannot be read: PEER: get secrets closed/home-talosconfig: secrets "home-talosconfig" is forbidden: User "controller" cannot get resource "secrets" in API group "" in the namespace "closed"; TalosCluster home takes its talosconfig from there.',
    )
    expect(bench.traces()).toEqual([])
  })
})

describe('machines that are not what they should be', () => {
  const refusedAs = async (name: string, refusal: string | RegExp) => {
    const said = await upgrade()
    expect([said.code, said.out]).toEqual([3, ''])
    expect(said.err.split('\n')[1]).toMatch(refusal instanceof RegExp ? refusal : `  ${refusal}`)
    const status = await bench.operate(NAMESPACE, name, upgradeTo({ version: 'v1.13.9' }))
    expect([status.phase, status.failureReason, status.lock]).toEqual(['Paused', 'PreflightRefused', undefined])
    const told = refusalsOf(status)
    expect(told).toHaveLength(1)
    expect(`  ${told[0]}`).toMatch(refusal instanceof RegExp ? refusal : `  ${refusal}`)
    await bench.kubernetes.client.delete(RESOURCE.talosOperation, { namespace: NAMESPACE, name })
    expect(await count(RESOURCE.talosOperation, NAMESPACE)).toBe(0)
    expect(bench.traces()).toEqual([])
  }

  it('a Node with no machine', async () => {
    const status = { addresses: [{ type: 'InternalIP', address: '10.9.9.9' }], nodeInfo: { kubeletVersion: 'v1.35.4' } }
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'stranger' }, status }
    await bench.kubernetes.client.create(RESOURCE.node, {}, node)
    await refusedAs(
      'stranger',
      'UnknownNode: Node stranger (10.9.9.9) belongs to no TalosMachine: its machine would be left behind. Write a TalosMachine for it, or delete the Node if its machine is gone.',
    )
    await bench.kubernetes.client.delete(RESOURCE.node, { name: 'stranger' })
  })

  it('two machines with one address', async () => {
    const spec = { clusterRef: { name: CLUSTER }, address: address(4), role: 'worker' }
    await bench.create(RESOURCE.talosMachine, NAMESPACE, 'twin', { spec })
    await refusedAs(
      'twin',
      /^ {2}MachineAmbiguous: TalosMachines twin and wk-2-\w+ have the same address [\d.]+\. Delete the one that is wrong\.$/,
    )
    await bench.kubernetes.client.delete(RESOURCE.talosMachine, { namespace: NAMESPACE, name: 'twin' })
  })

  it('a machine that cannot be reached', async () => {
    bench.machines.world.powerOff('wk-2')
    await refusedAs(
      'unreachable',
      /^ {2}MachineUnreachable: wk-2 \([\d.]+\) does not answer: [\d.]+: MachineService\.(Version|Read \S+): .+\. Bring it back first; if it is gone for good, take it out of the cluster and delete its TalosMachine\.$/,
    )
    bench.machines.world.powerOn('wk-2')
    await eventually(async () => (await bench.ichor('upgrade', 'talos', 'v1.13.9', '--plan')).code === 0 || undefined, 'wk-2 is back')
  })
})

describe('a Kubernetes API that does not help', () => {
  let bare: KubernetesApi
  beforeAll(async () => {
    bare = await startKubernetes({ store: createStore({ now: Date.now, random: Math.random }), resources: [], folder: bench.folder })
  })
  const everywhere: string[][] = [
    ['upgrade', 'talos', 'v1.13.9', '--yes'],
    ['upgrade', 'talos', 'v1.13.9', '--plan', '--cluster', 'home'],
    ['operation', 'list'],
    ['operation', 'get', 'talos-1-13-9'],
    ['machine', 'list'],
    ['lock'],
  ]

  it.each(everywhere)('the resource types are not installed: %s %s', async (...args) => {
    expect(await runIchor(['--kubeconfig', bare.kubeconfig('admin'), ...args])).toEqual({
      code: 1,
      out: '',
      err: `error: Ichor's resource types are not installed on ${bare.url}\n  docs/install.md tells how to install Ichor; for a controller that you run yourself: ichor install --no-controller --kubeconfig ${bare.kubeconfig('admin')}\n`,
    })
    expect(bare.requests.filter(({ method, path }) => method !== 'GET' && !path.includes('selfsubjectreviews'))).toEqual([])
  })

  it.each(everywhere)('the API server is not there: %s %s', async (...args) => {
    const path = bare.kubeconfig('admin')
    await bare.close()
    expect(await runIchor(['--kubeconfig', path, ...args])).toEqual({
      code: 1,
      out: '',
      err: `error: cannot reach the Kubernetes API server at ${bare.url}: connection refused: nothing listens there (ECONNREFUSED)\n  Is it running, and is it the right one? --context and --kubeconfig choose another.\n`,
    })
  })

  const roles = { nobody: 'ichor-viewer, ichor-operator or ichor-admin', viewer: 'ichor-operator or ichor-admin' }
  const where = 'in API group "ichor.maesh.dev" in the namespace "ichor-system"'
  it.each([
    [
      'nobody',
      ['upgrade', 'talos', 'v1.13.9', '--yes'],
      'list clusters',
      `talosclusters.ichor.maesh.dev is forbidden: User "nobody" cannot list resource "talosclusters" ${where}`,
    ],
    [
      'nobody',
      ['operation', 'list'],
      'list operations',
      `talosoperations.ichor.maesh.dev is forbidden: User "nobody" cannot list resource "talosoperations" ${where}`,
    ],
    [
      'viewer',
      ['upgrade', 'talos', 'v1.13.9', '--yes'],
      'create operation talos-1-13-9',
      `talosoperations.ichor.maesh.dev is forbidden: User "viewer" cannot create resource "talosoperations" ${where}`,
    ],
  ] as const)('RBAC forbids %s: %s', async (user, args, tried, sentence) => {
    expect(await bench.ichorAs(user, ...args)).toEqual({
      code: 1,
      out: '',
      err: `error: cannot ${tried}: ${sentence}\n  Ask an administrator for one of the ClusterRoles ${roles[user]}.\n`,
    })
    expect(await count(RESOURCE.talosOperation, NAMESPACE)).toBe(0)
    expect(bench.traces()).toEqual([])
  })

  it('who may not read the Secret gets no plan, and is not told that the upgrade is refused', async () => {
    const hidden =
      /secrets "home-talosconfig" is forbidden: User "nosy" cannot get resource "secrets" in API group "" in the namespace "ichor-system"/
    const plan = await bench.ichorAs('nosy', 'upgrade', 'talos', 'v1.13.9', '--plan')
    expect([plan.code, plan.out]).toEqual([1, ''])
    expect(plan.err).toMatch(/^error: cannot plan: /)
    expect(plan.err).toMatch(hidden)
    const started = await bench.ichorAs('nosy', 'upgrade', 'talos', 'v1.13.9', '--yes')
    expect(started.code).toBe(1)
    expect(started.err).toMatch(
      /^No plan from here \(.*\); the controller makes the checks\.\nerror: cannot create operation talos-1-13-9: /,
    )
  })
})

describe('a kubeconfig that does not help, as the program itself is started', () => {
  const program = join(import.meta.dirname, '..', '..', '..', 'bin', 'ichor')
  const run = (env: Readonly<Record<string, string>>, ...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise(resolve => {
      const environment = { PATH: process.env['PATH'], HOME: bench.folder, ICHOR_SOURCE: '1', NO_COLOR: '1', ...env }
      execFile(program, args, { env: environment }, (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }))
    })

  it('is missing', async () => {
    const nowhere = join(bench.folder, 'nowhere')
    const [named, listed, absent] = await Promise.all([
      run({}, '--kubeconfig', nowhere, 'upgrade', 'talos', 'v1.13.9', '--yes'),
      run({ KUBECONFIG: nowhere }, 'operation', 'list'),
      run({}, 'operation', 'list'),
    ])
    expect(named).toEqual({
      code: 1,
      out: '',
      err: `error: kubeconfig not found: --kubeconfig names ${nowhere}, and there is no such file\n`,
    })
    expect(listed).toEqual({
      code: 1,
      out: '',
      err: `error: kubeconfig not found: KUBECONFIG names ${nowhere}, and there is no such file\n`,
    })
    expect(absent).toEqual({
      code: 1,
      out: '',
      err: `error: no cluster is configured: give --kubeconfig FILE, set KUBECONFIG, or put a kubeconfig at ${join(bench.folder, '.kube', 'config')}\n`,
    })
  })

  it('is empty, no YAML, or without the context', async () => {
    const said = (path: string, ...args: string[]) => runIchor(['--kubeconfig', path, ...args, 'operation', 'list'])
    const [empty, junk] = [bench.write('empty', ''), bench.write('junk', 'a: [')]
    const good = bench.kubernetes.kubeconfig('admin')
    expect((await said(empty)).err).toBe(`error: ${empty} is empty; it must be a kubeconfig with clusters, users and contexts\n`)
    expect((await said(junk)).err).toBe(`error: ${junk} is not YAML (line 1, column 5); it must be a kubeconfig\n`)
    expect(await said(good, '--context', 'other')).toEqual({
      code: 1,
      out: '',
      err: `error: ${good} has no context "other"; it has admin@home\n`,
    })
  })
})
