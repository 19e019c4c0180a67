// A controller process, a real API server, and an operation that waits for an object of the cluster.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { API_VERSION } from '../../src/api/names.ts'
import { CLUSTER, NAMESPACE, type ClusterOnTheWire } from '../cluster-on-the-wire.ts'
import { realParts } from '../real/parts.ts'
import { eventually, LIMIT_MS, startStage, untilDiscovered } from './chaos/stage.ts'

const servers = await realParts('etcd', 'kube-apiserver')

describe.skipIf('missing' in servers)(`a health gate on the wire${'missing' in servers ? ` (${servers.missing})` : ''}`, () => {
  let cluster: ClusterOnTheWire
  const place = { namespace: NAMESPACE, name: 'hands-off' }
  const gate = {
    name: 'switch',
    objectRef: { apiVersion: 'v1', kind: 'ConfigMap', ...place },
    expr: 'object.data.maintenance == "allowed"',
    stableFor: '2s',
  }
  const must = async (what: Promise<{ readonly ok: boolean; readonly fault?: { readonly message: string } }>): Promise<void> => {
    const answer = await what
    if (!answer.ok) throw new Error(answer.fault?.message)
  }
  const setGates = (healthGates: readonly object[]) =>
    must(cluster.client.patch(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER }, { spec: { healthGates } }))
  const reboot = (name: string) =>
    must(
      cluster.client.create(
        RESOURCE.talosOperation,
        { namespace: NAMESPACE },
        {
          apiVersion: API_VERSION,
          kind: 'TalosOperation',
          metadata: { name },
          spec: { clusterRef: { name: CLUSTER }, kind: 'node', node: { machine: 'wk-1', action: 'reboot' } },
        },
      ),
    )
  const status = async (name: string) => (await cluster.status(name)) ?? {}

  beforeAll(async () => {
    cluster = await startStage({ from: 'v1.13.5', speed: 20 })
    await setGates([gate])
    await cluster.startController({ identity: 'ichor-1' })
    await untilDiscovered(cluster)
  }, LIMIT_MS)
  afterAll(() => cluster?.close())

  it(
    'holds an operation up until its object says yes, and tells what it says meanwhile',
    async () => {
      await reboot('patient')
      const says = (what: string) =>
        eventually(async () =>
          expect(await status('patient')).toMatchObject({ phase: 'Running', waiting: { for: `gate switch (${what}); wk-1 is next` } }),
        )
      await says(`ConfigMap ${NAMESPACE}/hands-off does not exist`)
      await must(cluster.client.create(RESOURCE.configMap, place, { metadata: { name: place.name }, data: { maintenance: 'no' } }))
      await says('no')
      expect((await status('patient')).gates).toMatchObject([{ name: 'switch', seen: 'no' }])
      expect(cluster.world.journal.of('reboot-requested')).toEqual([])
      await must(cluster.client.patch(RESOURCE.configMap, place, { data: { maintenance: 'allowed' } }))
      await eventually(async () => expect((await status('patient')).phase).toBe('Completed'))
      expect(cluster.world.journal.of('reboot-requested', 'wk-1')).toHaveLength(1)
      expect((await status('patient')).gates).toBeUndefined()
    },
    LIMIT_MS,
  )

  it(
    'that is mistaken refuses the operation',
    async () => {
      await setGates([{ ...gate, expr: 'object.data.maintenance = "allowed"' }])
      await reboot('mistaken')
      await eventually(async () => expect(await status('mistaken')).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused' }))
      expect((await status('mistaken')).message).toContain(
        `Health gate switch of TalosCluster ${CLUSTER}: its expression cannot be read: line 1, column 25`,
      )
      expect(cluster.faults).toEqual([])
    },
    LIMIT_MS,
  )
})
