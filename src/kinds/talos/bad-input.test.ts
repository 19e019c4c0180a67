// Whatever is wrong with what was asked, or with the cluster, is told at once, before any machine is written to and without the cluster lock. That nothing
// was touched and no lock is held is asserted of every refusal by what always holds.
import { describe, expect, it } from 'vitest'
import { play, type Case } from '../../../test/field-cases/play.ts'
import { API_VERSION } from '../../api/names.ts'
import { CLUSTER, createStory, NAMESPACE } from '../../storm/story.ts'
import type { World } from '../../world/cluster.ts'
import { RESOURCE, change, ensure } from '../../world/objects.ts'
import { registerCluster, writeTalosconfig } from '../../world/ports/connections.ts'
import { ICHOR } from '../../world/ports/home.ts'
import { requestReboot } from '../../world/reboot.ts'

const talos = { version: 'v1.13.9' }
const key = { namespace: NAMESPACE }

const ghostNode = ({ store }: World): void =>
  void ensure(store, RESOURCE.nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'ghost' },
    spec: {},
    status: {
      addresses: [{ type: 'InternalIP', address: '10.5.0.77' }],
      nodeInfo: { kubeletVersion: 'v1.36.2', bootID: 'x' },
      conditions: [],
    },
  })

/** A Secret whose data is not what it should be. */
const spoilSecret = ({ store }: World, data: object): void =>
  void change(store, RESOURCE.secrets, NAMESPACE, 'talosconfig', secret => ({ ...secret, data }))

/** A second TalosCluster, with a talosconfig of its own. */
const otherCluster = (world: World, facts: Parameters<typeof writeTalosconfig>[2] | undefined): void => {
  registerCluster(world, { ...key, name: 'other' }, { talosconfigSecretRef: { name: 'other', key: 'talosconfig' } })
  if (facts) writeTalosconfig(world, { ...key, name: 'other' }, facts)
}

type Row = Omit<Case, 'drive'> & {
  readonly refused: Readonly<Record<string, RegExp>>
}

const rows: Readonly<Record<string, Row>> = {
  'an older version': {
    spec: { talos: { version: 'v1.13.4' } },
    refused: { DowngradeRefused: /v1\.13\.4 is older than what runs: .*cp-1 v1\.13\.5.*Choose a version/ },
  },
  'a skipped minor': {
    cluster: { talos: 'v1.11.6', kubernetes: 'v1.34.1' },
    spec: { talos },
    refused: { TalosSkew: /1\.12/ },
  },
  'a version that is not in the table': { spec: { talos: { version: 'v1.15.0' } }, refused: { TalosUnknown: /1\.15/ } },
  'Kubernetes too new for it': {
    cluster: { talos: 'v1.12.4', kubernetes: 'v1.36.2' },
    spec: { talos: { version: 'v1.12.5' } },
    refused: { KubernetesSkew: /1\.36/ },
  },
  'machines in container mode': {
    cluster: { platform: 'container' },
    spec: { talos },
    refused: { ContainerMode: /container mode on cp-1, .*wk-2, where it upgrades nothing/ },
  },
  'an image with tag and digest': {
    spec: { talos: { ...talos, image: `ghcr.io/siderolabs/installer:v1.13.9@sha256:${'0'.repeat(64)}` } },
    refused: { ImageInvalid: /both a tag and a digest; name one of them/ },
  },
  'an image of another version': {
    spec: { talos: { ...talos, image: 'ghcr.io/siderolabs/installer:v1.13.8' } },
    refused: { ImageVersionMismatch: /v1\.13\.8.*v1\.13\.9|v1\.13\.9.*v1\.13\.8/ },
  },
  'an unknown cluster': {
    spec: { talos, clusterRef: { name: 'nowhere' } },
    refused: { UnknownCluster: /no TalosCluster nowhere in namespace ichor-system \(there are: home\)/ },
  },
  'a selector that selects nothing': {
    spec: { talos, machineSelector: { matchLabels: { zone: 'moon' } } },
    refused: {
      NoMachines: /spec\.machineSelector \(zone=moon\) matches none of the 5 machines of home\. .*ichor\.maesh\.dev\/role=worker/,
    },
  },
  'a Secret that is not there': {
    spec: { talos },
    arrange: ({ world }) => void world.store.remove(RESOURCE.secrets, NAMESPACE, 'talosconfig'),
    refused: { TalosconfigInvalid: /Secret ichor-system\/talosconfig not found.*role os:admin/ },
  },
  'a Secret without the key': {
    spec: { talos },
    arrange: ({ world }) => spoilSecret(world, { wrong: 'eA==' }),
    refused: { TalosconfigInvalid: /Secret ichor-system\/talosconfig has no key talosconfig/ },
  },
  'a talosconfig that does not parse': {
    spec: { talos },
    arrange: ({ world }) => spoilSecret(world, { talosconfig: 'eHl6' }),
    refused: { TalosconfigInvalid: /is not a talosconfig/ },
  },
  'a talosconfig of another cluster': {
    spec: { talos },
    arrange: ({ world }) => writeTalosconfig(world, key, { clusterID: 'somebody-elses' }),
    refused: { WrongCluster: /the CA of talosconfig is not the one of the machines/ },
  },
  'an expired talosconfig': {
    spec: { talos },
    arrange: ({ world }) => writeTalosconfig(world, key, { expires: world.schedule.now() - 1000 }),
    refused: { CredentialRejected: /expired.*fresh talosconfig.*os:admin/ },
  },
  'a talosconfig that may only read': {
    spec: { talos },
    arrange: ({ world }) => writeTalosconfig(world, key, { role: 'os:reader' }),
    refused: { PermissionDenied: /needs the role os:admin \(and 4 more machines\)/ },
  },
  'a cluster that could never be read, for want of its Secret': {
    spec: { talos, clusterRef: { name: 'other' } },
    arrange: async run => {
      otherCluster(run.world, undefined)
      await run.pass(60_000)
    },
    refused: { TalosUnreachable: /Secret ichor-system\/other not found; create it/ },
  },
  'a twin of a cluster': {
    spec: { talos, clusterRef: { name: 'other' } },
    arrange: async run => {
      await run.pass(5000)
      otherCluster(run.world, {})
      await run.pass(60_000)
    },
    refused: { DuplicateCluster: /is the same cluster/ },
  },
  'a machine that is off': {
    spec: { talos },
    arrange: ({ world }) => world.powerOff('wk-2'),
    allowed: { away: ['wk-2'] },
    refused: { MachineUnreachable: /^wk-2 \(10\.5\.0\.6\) does not answer: .*no route to host/ },
  },
  'a machine that is cut off': {
    spec: { talos },
    arrange: ({ world }) => world.blackHole('wk-1', true),
    allowed: { away: ['wk-1'] },
    refused: { MachineUnreachable: /^wk-1 \(10\.5\.0\.5\) does not answer: .*deadline/ },
  },
  'a machine that reboots just now': {
    cluster: { durations: { stopPods: [60_000, 60_000] } },
    spec: { talos },
    arrange: async run => {
      run.byHand(() => void requestReboot(run.world.site, run.world.machine('wk-1'), 'default'))
      await run.pass(5000)
    },
    allowed: { away: ['wk-1'] },
    refused: { MachineNotReady: /^wk-1 .*rebooting/ },
  },
  'two machines with one address': {
    spec: { talos },
    arrange: ({ world }) =>
      void world.store.create(ICHOR.machines, {
        apiVersion: API_VERSION,
        kind: 'TalosMachine',
        metadata: { name: 'a-second-one', namespace: NAMESPACE },
        spec: { clusterRef: { name: CLUSTER }, address: '10.5.0.6', role: 'worker' },
      }),
    refused: { MachineAmbiguous: /have the same address 10\.5\.0\.6/ },
  },
  'a Node without a machine': {
    spec: { talos },
    arrange: ({ world }) => ghostNode(world),
    refused: { UnknownNode: /Node ghost \(10\.5\.0\.77\) belongs to no TalosMachine.*delete the Node/ },
  },
  'one control plane, and no word on the outage': {
    cluster: { controlPlanes: 1 },
    spec: { talos },
    refused: { QuorumWouldBeLost: /cp-1.*one of 1 etcd member: .*acknowledge: \[api-outage\]/ },
  },
  'two control planes, and no word on the outage': {
    cluster: { controlPlanes: 2 },
    spec: { talos },
    refused: { QuorumWouldBeLost: /one of 2 etcd members: .*acknowledge: \[api-outage\]/ },
  },
  'two control planes on a Talos that takes none of two away': {
    cluster: { controlPlanes: 2, talos: 'v1.12.5', kubernetes: 'v1.35.1' },
    spec: { talos: { version: 'v1.12.9' }, acknowledge: ['api-outage'] },
    refused: { TwoControlPlanes: /cp-1 runs v1\.12\.5, .*Add a third control plane first/ },
  },
  'etcd has raised an alarm': {
    spec: { talos },
    arrange: ({ world }) => world.etcd.raiseAlarm(world.member('cp-2').id, 'NOSPACE'),
    refused: { EtcdAlarm: /on cp-2: .*NOSPACE.*talosctl etcd defrag/ },
  },
  'a member of etcd that does not vote yet': {
    cluster: { controlPlanes: 5, workers: 0 },
    spec: { talos },
    arrange: ({ world }) => {
      world.member('cp-3').isLearner = true
    },
    refused: { EtcdUnhealthy: /learner/ },
  },
  'a member of etcd without a machine': {
    spec: { talos },
    arrange: ({ world }) => void world.etcd.addMember('cp-9', 'https://10.5.0.99:2380', undefined),
    refused: { EtcdUnhealthy: /cp-9 .*10\.5\.0\.99.*runs on no known control plane.*talosctl etcd remove-member/ },
  },
  'a snapshot is required, and there is nowhere to put it': {
    spec: { talos: { ...talos, snapshot: 'required' } },
    refused: { SnapshotStorage: /no snapshot storage is configured/ },
  },
  'many things at once': {
    spec: { talos: { version: 'v1.13.4', snapshot: 'required' } },
    arrange: ({ world }) => {
      ghostNode(world)
      world.etcd.raiseAlarm(world.member('cp-1').id, 'CORRUPT')
    },
    refused: { UnknownNode: /ghost/, DowngradeRefused: /v1\.13\.4/, EtcdAlarm: /CORRUPT/, SnapshotStorage: /required/ },
  },
  'many things at once, and an override, which passes only the rules on versions': {
    spec: { talos: { version: 'v1.13.4', snapshot: 'required' }, override: true },
    arrange: ({ world }) => ghostNode(world),
    refused: { UnknownNode: /ghost/, SnapshotStorage: /required/ },
  },
}

describe('is refused, and says what was found and what would be right', () => {
  it.each(Object.entries(rows))('%s', async (_, { refused, ...told }) => {
    const { run, end } = await play(told)
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    const standing = (run.status().preflight?.refusals ?? []).filter(r => !r.overridden)
    expect([...new Set(standing.map(r => r.rule))].toSorted()).toEqual(Object.keys(refused).toSorted())
    for (const [rule, message] of Object.entries(refused)) {
      expect(
        standing
          .filter(r => r.rule === rule)
          .map(r => r.message)
          .join('\n'),
      ).toMatch(message)
      expect(run.status().message).toMatch(message)
    }
    expect(run.status().machines).toBeUndefined()
  })
})

describe('is refused where it is created', () => {
  it.each([
    ['no v', { version: '1.13.9' }],
    ['a typo', { version: 'v1.13' }],
    ['a pre-release', { version: 'v1.14.0-rc.1' }],
    ['leading zeros', { version: 'v1.013.9' }],
    ['half a schematic', { version: 'v1.13.9', schematic: 'abc' }],
    ['a schematic in capitals', { version: 'v1.13.9', schematic: 'A'.repeat(64) }],
    ['an unknown reboot mode', { version: 'v1.13.9', rebootMode: 'force' }],
  ])('%s', (_, block) => {
    const story = createStory()
    expect(() => story.create({ name: 'up', spec: { kind: 'talos', talos: block } })).toThrow()
    expect(story.world.store.list(ICHOR.operations).items).toEqual([])
  })
})

describe('is found out before anything is lost', () => {
  it('a schematic that no factory knows: nothing but a pull was tried', async () => {
    const { run, end } = await play({
      spec: { talos: { ...talos, schematic: 'c'.repeat(64) } },
      cluster: { factory: 'factory.talos.dev', schematic: 'a'.repeat(64) },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'ImageNotFound' })
    expect(run.status().message).toMatch(
      /installer image factory\.talos\.dev\/metal-installer\/c{64}:v1\.13\.9 does not exist.*Nothing was changed/,
    )
    expect(run.world.journal.of('install-began')).toEqual([])
    expect(run.world.journal.of('cordon')).toEqual([])
  })

  it('an override of the rules on versions goes through, and the Warning names who and which', async () => {
    const { run, end } = await play({
      cluster: { talos: 'v1.11.6', kubernetes: 'v1.34.1', workers: 1 },
      spec: { talos, override: true },
    })
    expect(end.phase).toBe('Completed')
    const warnings = run.world.store.list(RESOURCE.events).items.filter(e => e['reason'] === 'Overridden')
    expect(warnings.map(e => e['message']).join()).toMatch(/overrode .*TalosSkew/)
  })
})
