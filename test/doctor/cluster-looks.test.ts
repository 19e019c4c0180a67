// Each thing that can be wrong with a cluster, done to the invented one: its look finds it and says what to do, the other looks stay calm, and it is found
// no more when it is mended.
import { describe, expect, it } from 'vitest'
import { leaseName } from '../../src/api/names.ts'
import type { StoryOptions } from '../../src/storm/story.ts'
import { CLUSTER, NAMESPACE } from '../../src/storm/story.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { writeTalosconfig } from '../../src/world/ports/connections.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { type Clinic, openClinic } from './clinic.ts'

const DAY = 24 * 3_600_000
const VIP = '10.5.0.99'

type Trouble = {
  readonly what: string
  readonly look: string
  readonly options?: StoryOptions
  readonly wrong: (clinic: Clinic) => unknown
  readonly finds: RegExp
  /** What it says to do, remedy and command together. */
  readonly says: RegExp
  /** Other looks that see it, too. */
  readonly also?: readonly string[]
  readonly mend: (clinic: Clinic) => unknown
}

const setLock = (clinic: Clinic, holder: string, uid?: string): void => {
  const { store } = clinic.world
  const [name, time] = [leaseName(CLUSTER), new Date(clinic.world.schedule.now() - 600_000).toISOString().replace('Z', '000Z')]
  const spec = { holderIdentity: holder, leaseDurationSeconds: 100, acquireTime: time, renewTime: time, leaseTransitions: 1 }
  const annotations: Record<string, string> = uid === undefined ? {} : { 'ichor.maesh.dev/holder-uid': uid }
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace: NAMESPACE, annotations }, spec }
  if (!store.create(RESOURCE.leases, lease).ok) store.update(RESOURCE.leases, { ...store.get(RESOURCE.leases, NAMESPACE, name)!, ...lease })
}
const operation = (clinic: Clinic, status: object, spec: object = {}): void => {
  clinic.controller.kill()
  clinic.create({ name: 'up', spec: { kind: 'talos', talos: { version: 'v1.13.9' } } })
  clinic.rewrite(ICHOR.operations, 'up', object => {
    Object.assign(object.spec, spec)
    object.status = status
  })
}
const uidOf = (clinic: Clinic, name: string): string => clinic.operation(name)?.metadata.uid ?? ''
const member = (clinic: Clinic, name: string) => clinic.world.member(name)

const TROUBLES: readonly Trouble[] = [
  {
    what: 'a talosconfig with too small a role',
    look: 'talosconfig',
    wrong: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }, { role: 'os:reader' }),
    finds: /^error: Its certificate has the role os:reader; Ichor needs os:admin\.$/,
    says: /Secret ichor-system\/talosconfig, key talosconfig.*talosctl --talosconfig ADMIN config new --roles os:admin FILE/,
    also: ['endpoints', 'clocks', 'versions', 'machines', 'nodes', 'etcd', 'controller'],
    mend: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }),
  },
  {
    what: 'no talosconfig at all',
    look: 'talosconfig',
    wrong: ({ world }) => world.store.remove(RESOURCE.secrets, NAMESPACE, 'talosconfig'),
    finds: /^error: Secret ichor-system\/talosconfig not found/,
    says: /Write a talosconfig/,
    also: ['endpoints', 'clocks', 'certificates', 'versions', 'machines', 'nodes', 'etcd', 'controller'],
    mend: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }),
  },
  {
    what: 'the talosconfig of another cluster',
    look: 'talosconfig',
    wrong: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }, { clusterID: 'another' }),
    finds: /^error: .*the CA of talosconfig is not the one of the machines/,
    says: /of this very cluster/,
    also: ['endpoints', 'clocks', 'certificates', 'versions', 'machines', 'nodes', 'etcd', 'controller'],
    mend: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }),
  },
  {
    what: 'a client certificate that ends in ten days [B107 home-operations/tuppr#138]',
    look: 'certificates',
    wrong: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }, { expires: world.schedule.now() + 10 * DAY }),
    finds: /^warning: The client certificate of the talosconfig expires in \d+d.*, on 2026-09-\d\d\.$/,
    says: /put it into Secret ichor-system\/talosconfig.*talosctl config new/,
    mend: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }),
  },
  {
    what: 'a CA of Talos that ends in four months',
    look: 'certificates',
    wrong: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }, { authorityExpires: world.schedule.now() + 120 * DAY }),
    finds: /^warning: The CA of the Talos API of home expires in 1(19|20)d/,
    says: /talosctl rotate-ca/,
    mend: ({ world }) => writeTalosconfig(world, { namespace: NAMESPACE }),
  },
  {
    what: 'an endpoint that is the virtual address',
    look: 'endpoints',
    options: { vip: VIP },
    wrong: clinic => (clinic.endpoints = [VIP, '10.5.0.2']),
    finds: /^warning: Endpoint 10\.5\.0\.99 is a virtual address/,
    says: /talosctl config endpoint 10\.5\.0\.2 10\.5\.0\.3 10\.5\.0\.4/,
    mend: clinic => (clinic.endpoints = undefined),
  },
  {
    what: 'an endpoint whose name is that of the virtual address',
    look: 'endpoints',
    options: { vip: VIP },
    wrong: clinic => {
      clinic.endpoints = ['api.home.example:50000', '10.5.0.2']
      clinic.resolved = { 'api.home.example:50000': [VIP] }
    },
    finds: /^warning: Endpoint api\.home\.example \(10\.5\.0\.99\) is a virtual address/,
    says: /talosctl config endpoint/,
    mend: clinic => (clinic.resolved = { 'api.home.example:50000': ['10.5.0.3'] }),
  },
  {
    what: 'a virtual address of IPv6, spelled in another way',
    look: 'endpoints',
    options: { vip: '2001:db8::10' },
    wrong: clinic => (clinic.endpoints = ['[2001:DB8:0:0::0010]:50000', '10.5.0.2']),
    finds: /^warning: Endpoint 2001:DB8:0:0::0010 is a virtual address/,
    says: /talosctl config endpoint/,
    mend: clinic => (clinic.endpoints = ['[2001:db8::11]:50000', '10.5.0.2']),
  },
  {
    what: 'a single endpoint',
    look: 'endpoints',
    wrong: clinic => (clinic.endpoints = ['10.5.0.3']),
    finds: /^warning: 10\.5\.0\.3 is the only endpoint/,
    says: /talosctl config endpoint 10\.5\.0\.2 10\.5\.0\.3 10\.5\.0\.4/,
    mend: clinic => (clinic.endpoints = undefined),
  },
  {
    what: 'no endpoint at all',
    look: 'endpoints',
    wrong: clinic => (clinic.endpoints = []),
    finds: /^error: The talosconfig names no endpoints: nobody can be asked which machines there are\.$/,
    says: /talosctl config endpoint 10\.5\.0\.2 10\.5\.0\.3 10\.5\.0\.4/,
    mend: clinic => (clinic.endpoints = undefined),
  },
  {
    what: 'endpoints at which nobody answers, though the machines do',
    look: 'endpoints',
    wrong: clinic => (clinic.endpoints = ['10.5.0.77', '10.5.0.78']),
    finds: /^unknown: No endpoint answers here: .*no route to host/,
    says: /The machines themselves do/,
    mend: clinic => (clinic.endpoints = undefined),
  },
  {
    what: 'a clock that is half a minute behind',
    look: 'clocks',
    wrong: ({ world }) => world.setClock('wk-2', -30_000),
    finds: /^warning: The clock of wk-2 is 30s behind\.$/,
    says: /machine\.time\.servers.*talosctl -n 10\.5\.0\.6 time/,
    mend: ({ world }) => world.setClock('wk-2', 0),
  },
  {
    what: 'a clock that is minutes behind',
    look: 'clocks',
    wrong: ({ world }) => world.setClock('wk-2', -300_000),
    finds: /^error: The clock of wk-2 is 5m behind/,
    says: /talosctl -n 10\.5\.0\.6 time/,
    mend: ({ world }) => world.setClock('wk-2', 0),
  },
  {
    what: 'the own clock, when all others agree on another time',
    look: 'clocks',
    wrong: ({ world }) => world.machines.forEach(({ index }) => world.setClock(index, -200_000)),
    finds: /^error: The clock of this computer is 3m 20s ahead/,
    says: /Set it by a time server/,
    mend: ({ world }) => world.machines.forEach(({ index }) => world.setClock(index, 0)),
  },
  {
    what: 'a machine that is off',
    look: 'machines',
    wrong: ({ world }) => world.powerOff('wk-1'),
    finds: /^error: wk-1 \(10\.5\.0\.5\) does not answer: .*no route to host/,
    says: /port 50000.*kubectl delete talosmachine wk-1-\w+ -n ichor-system/,
    also: ['controller'],
    mend: async clinic => {
      clinic.world.powerOn('wk-1')
      await clinic.pass(400_000)
    },
  },
  {
    what: 'a machine that is not ready',
    look: 'machines',
    wrong: async clinic => {
      clinic.world.machine('wk-1').services.get('kubelet')!.health = 'unhealthy'
    },
    finds: /^warning: wk-1 is not ready: stage running; services: .*kubelet/,
    says: /talosctl -n 10\.5\.0\.5 dmesg/,
    mend: clinic => {
      clinic.world.machine('wk-1').services.get('kubelet')!.health = 'healthy'
    },
  },
  {
    what: 'a member without a TalosMachine',
    look: 'machines',
    wrong: clinic => {
      clinic.controller.kill()
      clinic.world.store.remove(ICHOR.machines, NAMESPACE, machineObject(clinic, 'wk-2'))
    },
    finds: /^warning: wk-2 \(10\.5\.0\.6\) is a member of the cluster and has no TalosMachine/,
    says: /ichor cluster get home -n ichor-system/,
    also: ['nodes'],
    mend: async clinic => {
      clinic.start('ichor-1')
      await clinic.pass(120_000)
    },
  },
  {
    what: 'two TalosMachines of one address',
    look: 'machines',
    wrong: clinic => {
      clinic.controller.kill()
      clinic.rewrite(ICHOR.machines, machineObject(clinic, 'wk-2'), object => (object.spec.address = '10.5.0.5'))
    },
    finds: /same address 10\.5\.0\.5/,
    says: /^$/,
    also: ['nodes'],
    mend: clinic => clinic.rewrite(ICHOR.machines, machineObject(clinic, 'wk-2'), object => (object.spec.address = '10.5.0.6')),
  },
  {
    what: 'a machine without a Node',
    look: 'nodes',
    wrong: clinic => {
      clinic.world.fault('wk-1', { kubeletNeverRegisters: true })
      clinic.world.userDeleteNode('wk-1')
    },
    finds: /^warning: wk-1 has no Node: its kubelet has not registered wk-1/,
    says: /talosctl -n 10\.5\.0\.5 service kubelet/,
    also: ['machines'],
    mend: async clinic => {
      clinic.world.fault('wk-1', { kubeletNeverRegisters: false })
      clinic.world.powerOff('wk-1')
      clinic.world.powerOn('wk-1')
      await clinic.pass(600_000)
    },
  },
  {
    what: 'a Node without a machine',
    look: 'nodes',
    wrong: ({ world }) => {
      const { metadata, ...rest } = world.store.get(RESOURCE.nodes, '', 'wk-1')!
      world.store.create(RESOURCE.nodes, { ...rest, metadata: { name: 'wk-9', labels: metadata.labels } })
    },
    finds: /^error: Node wk-9 \(.*\) belongs to no TalosMachine/,
    says: /^$/,
    mend: ({ world }) => world.store.remove(RESOURCE.nodes, '', 'wk-9'),
  },
  {
    what: 'the Nodes of another cluster, where no hardware tells of itself',
    look: 'nodes',
    wrong: clinic => {
      clinic.told = facts => ({ ...facts, uuid: '' })
      for (const { name } of clinic.world.machines)
        clinic.rewrite(RESOURCE.nodes, name, node => Object.assign(node.status.nodeInfo, { bootID: `another-${name}`, systemUUID: '' }))
    },
    finds: /^error: The Nodes of this Kubernetes \(cp-1, cp-2, cp-3\) are none of the machines of the talosconfig/,
    says: /--managed-kubeconfig/,
    mend: clinic => {
      clinic.told = undefined
      for (const { name, bootID } of clinic.world.machines)
        clinic.rewrite(RESOURCE.nodes, name, node => (node.status.nodeInfo.bootID = bootID))
    },
  },
  {
    what: 'the Nodes of another cluster, even where they have the same names',
    look: 'nodes',
    wrong: clinic => {
      for (const { name } of clinic.world.machines)
        clinic.rewrite(RESOURCE.nodes, name, node => {
          node.status.nodeInfo.bootID = `another-${name}`
          node.status.nodeInfo.systemUUID = `another-${name}`
        })
    },
    finds: /^error: The Nodes of this Kubernetes \(cp-1, cp-2, cp-3\) are none of the machines of the talosconfig/,
    says: /--managed-kubeconfig/,
    mend: clinic => {
      for (const { name, uuid } of clinic.world.machines)
        // Its kubelet does not tell the new boot yet.
        clinic.rewrite(RESOURCE.nodes, name, node => (node.status.nodeInfo.systemUUID = uuid.toUpperCase()))
    },
  },
  {
    what: 'Talos that is too old',
    look: 'versions',
    wrong: clinic => (clinic.told = facts => ({ ...facts, version: 'v1.7.6' })),
    finds: /^error: Talos v1\.7\.6 is not one that this Ichor knows \(1\.9 to 1\.14\)\. It is too old/,
    says: /Upgrade to 1\.9 with talosctl/,
    mend: clinic => (clinic.told = undefined),
  },
  {
    what: 'Talos that is too new',
    look: 'versions',
    wrong: clinic => (clinic.told = facts => ({ ...facts, version: 'v1.19.0' })),
    finds: /^warning: Talos v1\.19\.0 is not one that this Ichor knows/,
    says: /newer Ichor/,
    mend: clinic => (clinic.told = undefined),
  },
  {
    what: 'an upgrade that has not come to its end',
    look: 'versions',
    wrong: clinic =>
      (clinic.told = (facts: { hostname?: string }) => (facts.hostname === 'wk-2' ? { ...facts, version: 'v1.12.6' } : facts)),
    finds: /^warning: Machines run Talos v1\.12\.6 to v1\.13\.5/,
    says: /ichor upgrade talos v1\.13\.5 --cluster home --plan/,
    mend: clinic => (clinic.told = undefined),
  },
  {
    what: 'a Kubernetes that this Talos does not know',
    look: 'versions',
    wrong: clinic => (clinic.told = facts => ({ ...facts, version: 'v1.10.8' })),
    finds: /^warning: .*Talos 1\.10 accepts Kubernetes 1\.28 to 1\.33/,
    says: /docs\/compatibility\.md/,
    mend: clinic => (clinic.told = undefined),
  },
  {
    what: 'an alarm of etcd',
    look: 'etcd',
    wrong: clinic => clinic.world.etcd.raiseAlarm(member(clinic, 'cp-2').id, 'NOSPACE'),
    finds: /^error: etcd condition 6 on cp-2: etcd has raised the alarm NOSPACE .*No control plane is touched meanwhile\.$/,
    says: /talosctl etcd alarm disarm/,
    mend: clinic => clinic.world.etcd.disarm(),
  },
  {
    what: 'a member of etcd that is a learner',
    look: 'etcd',
    wrong: clinic => (member(clinic, 'cp-2').isLearner = true),
    finds: /^error: etcd condition 4 on cp-2: .*still a learner/,
    says: /^$/,
    mend: clinic => (member(clinic, 'cp-2').isLearner = false),
  },
  {
    what: 'a database of etcd that is nearly full',
    look: 'etcd',
    wrong: clinic => (member(clinic, 'cp-3').dbSize = 1_800 * 1024 ** 2),
    finds: /^warning: The database of etcd on cp-3 has 1800 MiB of 2048 MiB/,
    says: /Defragment it.*ichor node etcd-defrag cp-3 --cluster home -n ichor-system/,
    mend: clinic => (member(clinic, 'cp-3').dbSize = member(clinic, 'cp-3').dbSizeInUse),
  },
  {
    what: 'a database of etcd that is mostly air',
    look: 'etcd',
    wrong: clinic => (member(clinic, 'cp-3').dbSize = 600 * 1024 ** 2),
    finds: /^warning: Of the 600 MiB of etcd's database on cp-3 only \d+ MiB are in use/,
    says: /ichor node etcd-defrag cp-3/,
    mend: clinic => (member(clinic, 'cp-3').dbSize = member(clinic, 'cp-3').dbSizeInUse),
  },
  {
    what: 'a controller that sees no machine',
    look: 'controller',
    wrong: clinic => {
      clinic.controller.kill()
      clinic.rewrite(ICHOR.clusters, CLUSTER, object =>
        Object.assign(object.status.conditions[0], { status: 'False', reason: 'TalosUnreachable', message: '10.5.0.2: no route to host' }),
      )
    },
    finds: /^error: The controller says: 10\.5\.0\.2: no route to host$/,
    says: /ichor cluster get home -n ichor-system/,
    mend: async clinic => {
      clinic.start('ichor-1')
      await clinic.pass(120_000)
    },
  },
  {
    what: 'the younger TalosCluster of the same cluster',
    look: 'controller',
    wrong: clinic => {
      clinic.controller.kill()
      clinic.rewrite(ICHOR.clusters, CLUSTER, object =>
        Object.assign(object.status.conditions[0], {
          status: 'False',
          reason: 'DuplicateCluster',
          message: 'TalosCluster ichor-system/first is the same cluster',
        }),
      )
    },
    finds: /^error: The controller says: TalosCluster ichor-system\/first is the same cluster$/,
    says: /home can go, .*kubectl delete taloscluster home -n ichor-system/,
    mend: async clinic => {
      clinic.start('ichor-1')
      await clinic.pass(120_000)
    },
  },
  {
    what: 'no controller that has looked',
    look: 'controller',
    wrong: clinic => {
      clinic.controller.kill()
      clinic.rewrite(ICHOR.clusters, CLUSTER, object => (object.status = {}))
    },
    finds: /^warning: No controller has looked at this cluster yet/,
    says: /look after this namespace/,
    mend: async clinic => {
      clinic.start('ichor-1')
      await clinic.pass(120_000)
    },
  },
  {
    what: 'a controller of one replica',
    look: 'drain',
    wrong: clinic => (clinic.controllerNodes = ['wk-1']),
    finds: /^warning: All of the controller runs on wk-1: whenever that machine is drained/,
    says: /kubectl scale deployment ichor-controller --replicas 2 -n ichor-system/,
    mend: clinic => (clinic.controllerNodes = ['wk-1', 'wk-2']),
  },
  {
    what: 'a controller of two replicas on the one machine that is drained next',
    look: 'drain',
    wrong: clinic => {
      operation(clinic, { phase: 'Running', machines: [{ name: 'w', role: 'worker', phase: 'Pending', node: 'wk-1' }] })
      clinic.controllerNodes = ['wk-1', 'wk-1']
    },
    finds: /^warning: All of the controller runs on wk-1, which operation up is to drain/,
    says: /two replicas/,
    mend: clinic => (clinic.controllerNodes = ['cp-1', 'wk-1']),
  },
  {
    what: 'a lock of somebody else',
    look: 'lock',
    wrong: clinic => setLock(clinic, 'somebody/else'),
    finds: /^warning: Held by .*somebody\/else.* for 10m.*none of Ichor's/,
    says: /ichor lock release home --force -n ichor-system/,
    mend: clinic => setLock(clinic, ''),
  },
  {
    what: 'a lock that somebody else has made without a time',
    look: 'lock',
    wrong: clinic => {
      setLock(clinic, 'somebody/else')
      clinic.rewrite(RESOURCE.leases, leaseName(CLUSTER), lease => delete lease.spec.acquireTime)
    },
    finds: /^warning: Held by .*somebody\/else[^0-9]*, which is none of Ichor's\.$/,
    says: /ichor lock release home --force -n ichor-system/,
    mend: clinic => setLock(clinic, ''),
  },
  {
    what: 'a lock of somebody else for which an operation waits',
    look: 'lock',
    wrong: clinic => {
      operation(clinic, { phase: 'Paused', failureReason: 'ClusterLockHeld' })
      setLock(clinic, 'somebody/else')
    },
    finds: /^error: Held by .*somebody\/else.* for \d+m.*none of Ichor's; 1 operation waits for it\.$/,
    says: /ichor lock release home --force -n ichor-system/,
    mend: clinic => setLock(clinic, ''),
  },
  {
    what: 'a lock of an operation that is gone',
    look: 'lock',
    wrong: clinic => {
      clinic.controller.kill()
      setLock(clinic, 'ichor-controller/op/ichor-system/gone', 'uid')
    },
    finds: /^warning: Held by .*gone.*does not exist any more/,
    says: /A controller at work frees it.*ichor lock release home --force/,
    mend: async clinic => {
      clinic.start('ichor-1')
      await clinic.pass(120_000)
    },
  },
  {
    what: 'a lock of an operation that is over',
    look: 'lock',
    wrong: clinic => {
      operation(clinic, { phase: 'Completed' })
      setLock(clinic, 'ichor-controller/op/ichor-system/up', uidOf(clinic, 'up'))
    },
    finds: /^warning: Held by .*up.*which is over/,
    says: /ichor lock release/,
    mend: clinic => setLock(clinic, ''),
  },
  {
    what: 'a lock of an operation that a person paused',
    look: 'lock',
    wrong: clinic => {
      operation(clinic, { phase: 'Paused' }, { paused: true })
      setLock(clinic, 'ichor-controller/op/ichor-system/up', uidOf(clinic, 'up'))
    },
    finds: /^warning: Held by .*which a person has paused/,
    says: /ichor operation resume up -n ichor-system/,
    also: ['operations'],
    mend: clinic => {
      clinic.rewrite(ICHOR.operations, 'up', object => {
        object.spec.paused = false
        object.status = { phase: 'Running' }
      })
    },
  },
  {
    what: 'an operation whose step failed',
    look: 'operations',
    wrong: clinic =>
      operation(clinic, {
        phase: 'Paused',
        failureReason: 'InstallFailed',
        message: 'wk-1: no space left on device',
        lastFailure: { reason: 'InstallFailed', message: 'no space left', machine: 'wk-1', step: 'install', at: '2026-09-01T08:00:00Z' },
      }),
    finds: /^error: Operation up waits for a person: /,
    says: /Mend the cause.*ichor operation get up -n ichor-system/,
    mend: clinic => clinic.rewrite(ICHOR.operations, 'up', object => (object.status = { phase: 'Running' })),
  },
  {
    what: 'an operation that was refused',
    look: 'operations',
    wrong: clinic => operation(clinic, { phase: 'Paused', failureReason: 'PreflightRefused', message: 'v1.13.9 is older' }),
    finds: /^warning: Operation up waits for a person: /,
    says: /ichor operation get up/,
    mend: clinic => clinic.remove('up'),
  },
  {
    what: 'an operation that a person paused',
    look: 'operations',
    wrong: clinic => operation(clinic, { phase: 'Paused' }, { paused: true }),
    finds: /^warning: Operation up waits for a person: /,
    says: /ichor operation resume up -n ichor-system/,
    mend: clinic =>
      clinic.rewrite(ICHOR.operations, 'up', object => {
        object.spec.paused = false
        object.status = { phase: 'Running' }
      }),
  },
  {
    what: 'an operation that no controller has looked at',
    look: 'operations',
    wrong: async clinic => {
      operation(clinic, {})
      await clinic.pass(90_000)
    },
    finds: /^warning: Operation up has not been looked at: /,
    says: /Is a controller at work\?/,
    mend: clinic => clinic.rewrite(ICHOR.operations, 'up', object => (object.status = { phase: 'Running' })),
  },
  {
    what: 'a machine that was left half done',
    look: 'operations',
    wrong: clinic =>
      operation(clinic, {
        phase: 'Cancelled',
        machines: [
          { name: 'w', hostname: 'wk-1', role: 'worker', phase: 'Failed', step: 'reboot', committed: '2026-09-01T08:00:00Z' },
          { name: 'x', hostname: 'wk-2', role: 'worker', phase: 'Cancelled' },
        ],
      }),
    finds: /^error: wk-1 was left half done by operation up \(reboot\)\.$/,
    says: /then delete that operation/,
    mend: clinic => clinic.remove('up'),
  },
]

const machineObject = (clinic: Clinic, hostname: string): string =>
  clinic.world.store.list(ICHOR.machines).items.find(({ status }) => (status as { hostname?: string }).hostname === hostname)?.metadata
    .name ?? ''

describe('a look at a cluster', () => {
  it('finds nothing where nothing is wrong, and says what is well', async () => {
    const clinic = await openClinic({ vip: VIP })
    expect(await clinic.troubles()).toEqual([])
    expect(await clinic.finds('machines')).toEqual(['ok: 5 machines, all running and ready.'])
    expect(await clinic.finds('nodes')).toEqual(['ok: 5 Nodes, each with its machine.'])
    expect(await clinic.finds('etcd')).toEqual([expect.stringMatching(/^ok: 3 members, cp-\d leads, 1 may fail; \d+ MiB of 2048 MiB\.$/)])
    expect(await clinic.finds('lock')).toEqual(['ok: Free.'])
  })

  it.each(TROUBLES)('finds $what, and no more when it is mended', async ({ look, options, wrong, finds, says, also = [], mend }) => {
    const clinic = await openClinic(options)
    const before = await clinic.troubles()
    expect(before).toEqual([])

    await wrong(clinic)
    const found = await clinic.findings(look)
    const it = found.find(({ severity, message }) => finds.test(`${severity}: ${message}`))
    expect(it, JSON.stringify(found)).toBeDefined()
    expect([it?.remedy, it?.command].filter(Boolean).join(' ')).toMatch(says)
    const lookers = (await clinic.troubles()).map(trouble => trouble.slice(0, trouble.indexOf(':')))
    expect(lookers.filter(looker => ![look, ...also].includes(looker))).toEqual([])

    await mend(clinic)
    expect((await clinic.finds(look)).filter(one => finds.test(one))).toEqual([])
  })

  it('says of nothing that it is well where no machine answers', async () => {
    const clinic = await openClinic({ homeOutside: true })
    for (const { name } of clinic.world.machines) clinic.world.blackHole(name, true)
    const troubles = await clinic.troubles()
    for (const look of ['clocks', 'versions', 'machines', 'nodes', 'etcd'])
      expect(
        troubles.find(one => one.startsWith(`${look}: unknown: `)),
        look,
      ).toBeDefined()
    expect(await clinic.finds('lock')).toEqual(['ok: Free.'])
  })

  it('looks at the machines while the Kubernetes API is away', async () => {
    const clinic = await openClinic({ homeOutside: true })
    clinic.world.apiOutage(600_000)
    const troubles = await clinic.troubles()
    expect(troubles.find(one => one.startsWith('nodes: unknown: The Nodes cannot be seen: kubernetes: 503'))).toBeDefined()
    expect(await clinic.finds('etcd')).toEqual([expect.stringMatching(/^ok: 3 members/)])
    expect(await clinic.finds('machines')).toEqual(['ok: 5 machines, all running and ready.'])
  })

  it('does not blame an operation that is at work for what it does to the machine that it has open', async () => {
    const clinic = await openClinic({ kubernetes: 'v1.35.4' })
    const open = (role: string, name: string, node: string) =>
      operation(clinic, { phase: 'Running', machines: [{ name, role, phase: 'Running', node, step: 'reboot' }] })
    open('controlplane', machineObject(clinic, 'cp-2'), 'cp-2')
    clinic.told = (facts: { hostname?: string }) => (facts.hostname === 'cp-1' ? { ...facts, version: 'v1.12.6' } : facts)
    clinic.world.powerOff('cp-2')
    await clinic.pass(120_000)
    expect(await clinic.finds('machines')).toEqual(['warning: cp-2 is away while operation up is at work on it.'])
    const message = '1 of 5 machines are not ready.'
    clinic.controller.kill()
    clinic.rewrite(ICHOR.clusters, CLUSTER, object =>
      Object.assign(object.status.conditions[0], { status: 'False', reason: 'MachinesNotReady', message }),
    )
    expect(await clinic.finds('controller')).toEqual([`warning: The controller says: ${message} Operation up is at work.`])
    expect(await clinic.finds('nodes')).toEqual(['ok: 5 Nodes, each with its machine.'])
    expect(await clinic.finds('versions')).toEqual(['ok: Talos v1.12.6, v1.13.5, Kubernetes v1.35.4.'])
    expect(await clinic.finds('etcd')).toEqual([expect.stringMatching(/^warning: etcd condition 1 on cp-2: .* Operation up is at work/)])
    clinic.rewrite(ICHOR.operations, 'up', object => (object.status.phase = 'Cancelled'))
    expect(await clinic.finds('controller')).toEqual([`error: The controller says: ${message}`])
    for (const look of ['machines', 'etcd']) expect((await clinic.finds(look))[0]).toMatch(/^error: /)
    for (const look of ['nodes', 'versions']) expect((await clinic.finds(look))[0]).toMatch(/^warning: /)
  })

  it('knows a machine by more than how its name is spelled [B027 siderolabs/cluster-api-control-plane-provider-talos#185]', async () => {
    const clinic = await openClinic({ hostnames: index => (index < 3 ? `CP-${index + 1}` : `wk-${index - 2}`) })
    expect(await clinic.troubles()).toEqual([])
  })
})
