// Our client against real machines: what it reads, what it sets, and what it makes of refusals.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createTalosCa } from '../../src/adapters/pki/talos-pki.ts'
import { type TalosConnection, talosConnection } from '../../src/adapters/talos/connection.ts'
import { strangerSight } from '../../src/app/doctor/sights.ts'
import { clusterLooks } from '../../src/core/looks/cluster-looks.ts'
import { lookAt } from '../../src/core/looks/look.ts'
import { kubernetesVersion, type Place, talosVersion } from '../conformance/talos/answers.ts'
import { realClock } from '../scripted-talos.ts'
import { addresses, controlPlanes, longCall, officialTalosconfig, realPlace, refused, talosconfig, talosctl, valueOf } from './cluster.ts'

const worker = addresses['wk-1']
const everyone = [...controlPlanes, worker]
const installer = `ghcr.io/siderolabs/installer:${talosVersion}`

const open: TalosConnection[] = []
function connect(text: string): TalosConnection {
  const connection = talosConnection({ talosconfig: text, clock: realClock })
  if (!connection.ok) throw new Error(connection.fault.message)
  open.push(connection.value)
  return connection.value
}
let talos: TalosConnection
let place: Place
beforeAll(async () => {
  talos = connect(officialTalosconfig())
  place = await realPlace()
})
afterAll(async () => {
  for (const connection of open) connection.destroy()
  await rm(place.home, { recursive: true, force: true })
})
describe('our client reads real machines', () => {
  test('the talosconfig that talosctl made', () => {
    expect(talos.endpoints).toEqual(controlPlanes)
    expect(talos.roles).toEqual(['os:admin'])
    expect(talos.credentialExpires).toBeGreaterThan(Date.now() + 300 * 24 * 3_600_000)
  })

  test('members, the same from every machine', async () => {
    const lists = await Promise.all(everyone.map(async address => valueOf(await talos.members(address))))
    const inOrder = lists.map(list => list.toSorted((a, b) => (a.hostname < b.hostname ? -1 : 1)))
    expect(inOrder[0]).toEqual(
      (['cp-1', 'cp-2', 'cp-3', 'wk-1'] as const).map(hostname => ({
        hostname,
        nodeID: expect.stringMatching(/^\w{40,50}$/) as string,
        role: hostname === 'wk-1' ? 'worker' : 'controlplane',
        addresses: [addresses[hostname]],
        operatingSystem: `Talos (${talosVersion})`,
      })),
    )
    for (const list of inOrder) expect(list).toEqual(inOrder[0])
  })

  test('what ichor doctor looks at, where no Kubernetes API is to be asked', async () => {
    for (const address of everyone) {
      expect(Math.abs(valueOf(await talos.clockAhead(address)))).toBeLessThan(3_000)
      expect(valueOf(await talos.virtualAddresses(address))).toEqual([])
    }
    const key = { namespace: 'ichor-system', name: 'home' }
    const sight = await strangerSight({ kubeconfigPath: join(place.home, 'nowhere') }, 'test', { key, talosconfig: officialTalosconfig() })
    const found = Object.fromEntries(
      lookAt(clusterLooks, sight).map(({ look, findings }) => [look, findings.map(({ severity, message }) => `${severity}: ${message}`)]),
    )
    expect(found).toMatchObject({
      talosconfig: ['ok: Role os:admin.'],
      clocks: ['ok: 5 agree to 1 s.'],
      machines: ['ok: 4 machines, all running and ready.'],
      etcd: [expect.stringMatching(/^ok: 3 members, cp-\d leads, 1 may fail; \d+ MiB of 2048 MiB\.$/)],
      certificates: [expect.stringMatching(/^ok: Of 2 the first to end is the client certificate of the talosconfig/)],
    })
    expect(found['endpoints']?.[0]).toMatch(/^ok: /)
  })

  test('the facts of a control plane and of a worker', async () => {
    const facts = {
      uuid: '',
      nodeID: expect.stringMatching(/^\w{40,50}$/) as string,
      clusterID: expect.stringMatching(/^[\w+/=-]{40,50}$/) as string,
      clusterName: 'home',
      version: talosVersion,
      platform: 'container',
      arch: 'amd64',
      secureBoot: false,
      bootID: expect.stringMatching(/^[\da-f-]{36}$/) as string,
      stage: 'running',
      ready: true,
      unmet: [],
      ...{ schematic: '', factory: '', extensions: [], installImage: installer, fallbackArmed: false },
    }
    expect(valueOf(await talos.machine(controlPlanes[0]!))).toEqual({
      ...facts,
      ...{ address: controlPlanes[0], hostname: 'cp-1', nodename: 'cp-1', role: 'controlplane', etcdQuotaBytes: 2 * 1024 ** 3 },
    })
    expect(valueOf(await talos.machine(worker))).toEqual({
      ...facts,
      ...{ address: worker, hostname: 'wk-1', nodename: 'wk-1', role: 'worker', etcdQuotaBytes: 0 },
    })
  })

  test('boot ids: one for each machine, the same as long as it runs', async () => {
    const read = () => Promise.all(everyone.map(async address => valueOf(await talos.machine(address)).bootID))
    const first = await read()
    expect(new Set(first).size).toBe(4)
    expect(await read()).toEqual(first)
    expect(await talosctl(place, '-n', worker, 'read', '/proc/sys/kernel/random/boot_id')).toBe(`${first[3]}\n`)
  })

  test('etcd, which all three see alike', async () => {
    const views = await Promise.all(controlPlanes.map(async address => valueOf(await talos.etcd(address))))
    const members = views[0]!.members.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    expect(members).toEqual(
      (['cp-1', 'cp-2', 'cp-3'] as const).map(name => ({
        id: expect.stringMatching(/^[\da-f]{16}$/) as string,
        name,
        peerURLs: [`https://${addresses[name]}:2380`],
        isLearner: false,
      })),
    )
    for (const [at, view] of views.entries()) {
      expect(view.service).toEqual({ state: 'Running', healthy: true })
      expect(view.members.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(members)
      expect(view.alarms).toEqual([])
      expect(view.status).toMatchObject({ memberID: members[at]!.id, leader: views[0]!.status.leader, errors: [], isLearner: false })
      expect(view.status.raftAppliedIndex).toBeGreaterThan(0n)
      expect(view.status.dbSize).toBeGreaterThanOrEqual(view.status.dbSizeInUse)
    }
    expect(await talos.etcd(worker)).toMatchObject(refused('unsupported', 'no service etcd'))
  })
})

describe('our client acts on real machines', () => {
  const leader = async () => valueOf(await talos.etcd(controlPlanes[0]!)).status.leader
  const ownerOf = async (id: string): Promise<string> => {
    const { members } = valueOf(await talos.etcd(controlPlanes[0]!))
    return addresses[members.find(member => member.id === id)!.name as 'cp-1']
  }

  test('leadership is given away by the leader, and by nobody else', async () => {
    const was = await leader()
    const owner = await ownerOf(was)
    const other = controlPlanes.find(address => address !== owner)!
    expect(await talos.forfeitLeadership(other)).toEqual({ ok: true, value: undefined })
    expect(await leader()).toBe(was)
    expect(await talos.forfeitLeadership(owner)).toEqual({ ok: true, value: undefined })
    await vi.waitFor(async () => expect(await leader()).not.toBe(was), 10_000)
    expect(await talos.forfeitLeadership(worker)).toMatchObject(refused('unsupported', 'only available on control plane nodes'))
  })

  test('the install image is set without a reboot, and nothing else', async () => {
    const [address] = controlPlanes as [string]
    const config = async () => talosctl(place, '-n', address, 'get', 'machineconfig', 'v1alpha1', '-o', 'jsonpath={.spec}')
    const versions = async () => talosctl(place, '-n', address, 'get', 'machineconfig')
    const documents = (text: string): unknown[] => parseAllDocuments(text).map(document => document.toJS() as unknown)
    const before = { facts: valueOf(await talos.machine(address)), config: await config() }
    const image = 'factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.12.2'

    expect(await talos.setInstallImage(address, image)).toEqual({ ok: true, value: undefined })
    expect(valueOf(await talos.machine(address))).toEqual({ ...before.facts, installImage: image })
    expect(await config()).toBe(before.config.replace(`image: ${installer}`, `image: ${image}`))

    const set = await versions()
    expect(await talos.setInstallImage(address, image)).toEqual({ ok: true, value: undefined })
    expect(await versions()).toBe(set)

    await talosctl(place, '-n', address, 'patch', 'mc', '--mode', 'staged', '-p', '{"machine":{"nodeLabels":{"example.org/staged":"yes"}}}')
    expect(await talos.setInstallImage(address, installer)).toMatchObject(refused('precondition', 'is staged there'))
    expect(await config()).toContain(image)
    await talosctl(place, '-n', address, 'patch', 'mc', '--mode', 'no-reboot', '-p', `{"machine":{"install":{"image":"${installer}"}}}`)
    // talosctl writes it without the comments that another of its commands may have put there.
    expect(documents(await config())).toEqual(documents(before.config))
    expect(await talos.setInstallImage(address, installer)).toEqual({ ok: true, value: undefined })
  })

  test('what a container does not do is refused, and what 1.12 does not know', async () => {
    for (const address of [controlPlanes[1]!, worker]) {
      for (const mode of ['default', 'powercycle', 'force'] as const)
        expect(await talos.reboot(address, mode)).toMatchObject(refused('precondition', 'MachineService.Reboot', 'container mode'))
      expect(await talos.upgrade(address, { image: installer, preserve: true, rebootMode: 'default' })).toMatchObject(
        refused('precondition', 'MachineService.Upgrade', 'container mode'),
      )
      expect(await talos.install(address, installer, longCall)).toMatchObject(refused('unsupported', 'LifecycleService'))
      expect(valueOf(await talos.machine(address))).toMatchObject({ stage: 'running', ready: true })
    }
  })

  test('an image is pulled, and one that there is not is not found', async () => {
    const pause = 'registry.k8s.io/pause:3.10'
    expect(await talos.pull(worker, pause, longCall)).toEqual({ ok: true, value: pause })
    expect(await talos.pull(worker, 'registry.k8s.io/pause:0', longCall)).toMatchObject(refused('notFound', 'ImagePull', 'pause:0'))
  })
})

describe('real machines and credentials', () => {
  const [address] = controlPlanes as [string]

  test('a reader sees members and etcd, but cannot prove a reboot', async () => {
    const reader = connect(await talosconfig({ role: 'os:reader' }))
    expect(valueOf(await reader.members(address))).toHaveLength(4)
    expect(valueOf(await reader.etcd(address)).members).toHaveLength(3)
    expect(await reader.machine(address)).toMatchObject(refused('forbidden', 'needs the role os:admin'))
    expect(await reader.forfeitLeadership(address)).toMatchObject(refused('forbidden', 'not authorized'))
    expect(await reader.setInstallImage(address, installer)).toMatchObject(refused('forbidden', 'not authorized'))
    expect(await reader.reboot(address, 'default')).toMatchObject(refused('forbidden', 'not authorized'))
  })

  test('an operator may ask for a reboot, but not read the configuration', async () => {
    const operator = connect(await talosconfig({ role: 'os:operator' }))
    expect(valueOf(await operator.etcd(address)).members).toHaveLength(3)
    expect(await operator.reboot(address, 'default')).toMatchObject(refused('precondition', 'container mode'))
    expect(await operator.setInstallImage(address, installer)).toMatchObject(refused('forbidden', 'not authorized'))
    expect(await operator.machine(address)).toMatchObject(refused('forbidden'))
  })

  test('who may only back up etcd sees nothing of the machine', async () => {
    const backup = connect(await talosconfig({ role: 'os:etcd:backup' }))
    expect(await backup.machine(address)).toMatchObject(refused('forbidden', 'not authorized'))
    expect(await backup.members(address)).toMatchObject(refused('forbidden', 'not authorized'))
    expect(await backup.etcd(address)).toMatchObject(refused('forbidden', 'not authorized'))
  })

  test('a role that there is not', async () => {
    const nobody = connect(await talosconfig({ role: 'os:nobody' }))
    expect(await nobody.members(address)).toMatchObject(refused('forbidden', 'not authorized'))
  })

  test('a credential that talosctl made for us', async () => {
    await talosctl(place, '-n', address, 'config', 'new', '--roles', 'os:reader', '--crt-ttl', '1h', 'reader-of-talosctl')
    const reader = connect(readFileSync(join(place.home, 'reader-of-talosctl'), 'utf8'))
    expect(reader.roles).toEqual(['os:reader'])
    expect(reader.credentialExpires - Date.now()).toBeLessThan(3_660_000)
    expect(valueOf(await reader.members(address))).toHaveLength(4)
  })

  test('another authority: theirs is not ours, and ours is not theirs', async () => {
    const foreign = await createTalosCa({ from: new Date(Date.now() - 3_600_000) })
    const stranger = connect(await talosconfig({ role: 'os:admin', signedBy: foreign }))
    expect(await stranger.machine(address)).toMatchObject(refused('wrongPeer', 'certificate'))
    const theirs = await talosconfig({ role: 'os:admin' })
    const ca = /^ *ca: (\S+)$/m
    const intruder = connect((await talosconfig({ role: 'os:admin', signedBy: foreign })).replace(ca, ca.exec(theirs)![0]))
    const answer = await intruder.machine(address)
    expect(answer).toMatchObject({ ok: false, fault: { message: expect.stringMatching(/client certificate/) as string } })
  })
})

test('every machine runs the Kubernetes that was asked for', async () => {
  const nodes = await promisify(execFile)('kubectl', ['get', 'nodes', '-o', 'jsonpath={.items[*].status.nodeInfo.kubeletVersion}'])
  expect(nodes.stdout.split(' ')).toEqual(everyone.map(() => kubernetesVersion))
})
