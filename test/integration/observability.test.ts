// What the controller says of itself while it works, as Prometheus and a kubelet ask it.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { CLUSTER, NAMESPACE, startCluster, type ClusterOnTheWire, type Process } from '../cluster-on-the-wire.ts'

const LONG = 120_000
const eventually = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { timeout: LONG - 5_000, interval: 50 })

describe('a controller with --listen', () => {
  let cluster: ClusterOnTheWire
  let leader: Process
  let standby: Process
  let address: string
  const listening = (process: Process): Promise<string> =>
    eventually(() => {
      const found = process.log().find(({ msg }) => msg === 'listening')?.['address']
      if (typeof found !== 'string') throw new Error('it does not listen')
      return found
    })
  const get = async (path: string, at = address): Promise<readonly [number, string]> => {
    const response = await fetch(`${at}${path}`)
    return [response.status, await response.text()]
  }
  const value = async (series: string, at = address): Promise<number | undefined> => {
    const [, text] = await get('/metrics', at)
    const line = text.split('\n').find(one => one.startsWith(`${series} `))
    return line === undefined ? undefined : Number(line.slice(series.length + 1))
  }

  beforeAll(async () => {
    cluster = await startCluster({ controlPlanes: 1, workers: 1, from: 'v1.13.5', speed: 150 })
    leader = await cluster.startController({ identity: 'ichor-0', options: ['--listen', '127.0.0.1:0'] })
    address = await listening(leader)
    await eventually(async () => expect(await value('ichor_leader')).toBe(1))
    standby = await cluster.startController({ identity: 'ichor-1', options: ['--listen', '127.0.0.1:0'] })
  }, LONG)
  afterAll(() => cluster?.close())

  it(
    'is ready, counts what it asks of others, and tells of an upgrade from its beginning to its end',
    async () => {
      await eventually(async () => expect(await get('/readyz')).toEqual([200, 'ok']))
      expect(await get('/healthz')).toEqual([200, 'ok'])
      await cluster.register()
      await eventually(async () =>
        expect(await value(`ichor_cluster_last_seen_timestamp_seconds{namespace="${NAMESPACE}",cluster="${CLUSTER}"}`)).toBeGreaterThan(0),
      )
      await cluster.upgrade('up', 'v1.13.9', { acknowledge: ['api-outage'] })
      await eventually(async () => expect(await value('ichor_operations_finished_total{kind="talos",phase="Completed"}')).toBe(1))
      expect(await value('ichor_operations{kind="talos",phase="Completed",reason=""}')).toBe(1)
      expect(await value('ichor_step_duration_seconds_count{kind="talos",step="reboot",result="done"}')).toBe(2)
      expect(await value('ichor_talos_calls_total{method="machine.MachineService/Reboot",code="OK"}')).toBe(2)
      expect(await value('ichor_kubernetes_requests_total{verb="update",resource="talosoperations/status",code="200"}')).toBeGreaterThan(10)
      expect(await value('ichor_pass_duration_seconds_count{of="operation",result="done"}')).toBeGreaterThan(10)
      expect(await value('process_resident_memory_bytes')).toBeGreaterThan(1_000_000)
    },
    LONG,
  )

  it('logs every act with operation, machine and step, and every Event', () => {
    const about = { namespace: NAMESPACE, operation: 'up', kind: 'talos' }
    const acts = leader.log().filter(line => line['step'] === 'reboot' && line['machine'] !== undefined)
    expect(new Set(acts.map(({ machine }) => machine)).size).toBe(2)
    for (const act of acts) expect(act).toMatchObject(about)
    const events = leader.log().filter(({ msg }) => msg === 'event')
    expect(events.map(({ reason }) => reason)).toEqual(expect.arrayContaining(['Accepted', 'LockTaken', 'Started', 'Completed']))
    for (const event of events) expect(event).toMatchObject(about)
  })

  it(
    'is ready as a standby without lists, and says nothing of operations that the leader tells of',
    async () => {
      const at = await listening(standby)
      await eventually(async () => expect(await get('/readyz', at)).toEqual([200, 'ok']))
      expect(await value('ichor_leader', at)).toBe(0)
      const [, text] = await get('/metrics', at)
      expect(text).not.toMatch(/^ichor_operations\{/m)
    },
    LONG,
  )
})
