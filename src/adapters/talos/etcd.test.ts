import { status } from '@grpc/grpc-js'
import { expect, onTestFinished, test } from 'vitest'
import { EtcdMemberAlarm_AlarmType as AlarmType, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { type Handlers, newTalosCa, realClock, Refusal, serve, startTalos, talosconfigFor } from '../../../test/scripted-talos.ts'
import { talosConnection } from './connection.ts'

const ca = await newTalosCa()
const admin = await talosconfigFor(ca)

async function etcdOf(handlers: Handlers<typeof MachineService>) {
  const server = await startTalos({ ca, services: [serve(MachineService, handlers)] })
  onTestFinished(server.stop)
  const opened = talosConnection({ talosconfig: admin, clock: realClock })
  if (!opened.ok) throw new Error(opened.fault.message)
  onTestFinished(opened.value.destroy)
  return opened.value.etcd(server.address)
}

const service = (state: string, health: { healthy: boolean; unknown?: boolean }, msg = '') => ({
  messages: [
    {
      services: [
        { id: 'apid', state: 'Running' },
        { id: 'etcd', state, health, events: { events: [{ msg }] } },
      ],
    },
  ],
})
const members = [
  { id: 0x0a1b2c3d4e5f6071n, hostname: 'cp1', peerUrls: ['https://10.5.0.2:2380'] },
  { id: 0xffffffffffffffffn, hostname: '', peerUrls: ['https://10.5.0.3:2380'], isLearner: true },
]
const running: Handlers<typeof MachineService> = {
  serviceList: () => service('Running', { healthy: true }),
  etcdMemberList: request => ({ messages: [{ members: request.queryLocal ? members : [] }] }),
  etcdStatus: () => ({
    messages: [
      {
        memberStatus: {
          memberId: 0x0a1b2c3d4e5f6071n,
          leader: 0n,
          raftTerm: 7n,
          raftIndex: 1000n,
          raftAppliedIndex: 999n,
          dbSize: 5_000_000n,
          dbSizeInUse: 4_000_000n,
          errors: ['etcdserver: no leader'],
          protocolVersion: '3.6.5',
          storageVersion: '3.6.0',
        },
      },
    ],
  }),
  etcdAlarmList: () => ({
    messages: [
      {
        memberAlarms: [
          { memberId: 1n, alarm: AlarmType.NOSPACE },
          { memberId: 2n, alarm: AlarmType.NONE },
        ],
      },
    ],
  }),
}

test('the whole view, ids as 16 hexadecimal digits', async () => {
  expect(await etcdOf(running)).toEqual({
    ok: true,
    value: {
      service: { state: 'Running', healthy: true },
      members: [
        { id: '0a1b2c3d4e5f6071', name: 'cp1', peerURLs: ['https://10.5.0.2:2380'], isLearner: false },
        { id: 'ffffffffffffffff', name: '', peerURLs: ['https://10.5.0.3:2380'], isLearner: true },
      ],
      status: {
        memberID: '0a1b2c3d4e5f6071',
        leader: '',
        raftTerm: 7n,
        raftIndex: 1000n,
        raftAppliedIndex: 999n,
        dbSize: 5_000_000,
        dbSizeInUse: 4_000_000,
        errors: ['etcdserver: no leader'],
        isLearner: false,
        protocolVersion: '3.6.5',
        storageVersion: '3.6.0',
      },
      alarms: [{ memberID: '0000000000000001', alarm: 'NOSPACE' }],
    },
  })
})

test('health that nobody has looked at yet is not health', async () => {
  const view = await etcdOf({ ...running, serviceList: () => service('Running', { healthy: true, unknown: true }) })
  expect(view).toMatchObject({ ok: true, value: { service: { healthy: false } } })
})

test('etcd that does not run is told at once, not by calls that hang', async () => {
  const hang = () => new Promise<never>(() => {})
  const view = await etcdOf({
    serviceList: () => service('Preparing', { healthy: false, unknown: true }, 'Running pre state'),
    etcdMemberList: hang,
    etcdStatus: hang,
    etcdAlarmList: hang,
  })
  expect(view).toMatchObject({ ok: false, fault: { kind: 'busy' } })
  expect(!view.ok && view.fault.message).toContain('the service is Preparing: Running pre state')
})

test('a worker', async () => {
  const view = await etcdOf({ serviceList: () => ({ messages: [{ services: [{ id: 'kubelet', state: 'Running' }] }] }) })
  expect(view).toMatchObject({ ok: false, fault: { kind: 'unsupported' } })
})

test('one part that fails fails the view', async () => {
  const view = await etcdOf({
    ...running,
    etcdStatus: () => {
      throw new Refusal(status.UNKNOWN, 'failed to get etcd status: context deadline exceeded')
    },
  })
  expect(view).toMatchObject({ ok: false, fault: { kind: 'busy' } })
})

test('a member with several addresses, and what etcd makes of them where it cannot start [B087 siderolabs/talos#11257]', async () => {
  const peerUrls = ['https://10.5.0.2:2380', 'https://[fd00::2]:2380']
  const view = await etcdOf({
    ...running,
    etcdMemberList: () => ({ messages: [{ members: [{ id: 1n, hostname: 'cp1', peerUrls }] }] }),
  })
  expect(view).toMatchObject({ ok: true, value: { members: [{ id: '0000000000000001', peerURLs: peerUrls }] } })
  // The call that began it was accepted long ago; only the service tells how it went.
  const words = 'bad URL scheme in https://10.5.0.2,fd00::2:2380'
  const failing = await etcdOf({ ...running, serviceList: () => service('Failed', { healthy: false }, words) })
  expect(failing).toMatchObject({ ok: false, fault: { kind: 'busy', message: expect.stringContaining(`the service is Failed: ${words}`) } })
})
