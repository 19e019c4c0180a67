import { describe, expect, it } from 'vitest'
import { ANNOTATION, API_VERSION, LABEL, leaseName, operationHolder } from '../api/names.ts'
import type { TalosMachineStatus } from '../api/talos-machine.ts'
import { CLUSTER, NAMESPACE, createStory } from '../storm/story.ts'
import type { Machine } from '../world/machine.ts'
import { RESOURCE } from '../world/objects.ts'
import { registerCluster, writeTalosconfig } from '../world/ports/connections.ts'
import { ICHOR } from '../world/ports/home.ts'

const DAY = 24 * 3_600_000

type Cluster = {
  readonly status?: {
    readonly clusterID?: string
    readonly machines?: { readonly summary: string }
    readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message: string }[]
  }
}

const clusterIn = (story: ReturnType<typeof createStory>, name: string): Cluster =>
  story.world.store.get(ICHOR.clusters, NAMESPACE, name) as unknown as Cluster

it('writes a TalosMachine for each member, and what was seen into the TalosCluster', async () => {
  const story = createStory()
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  expect(
    story.world.store
      .list(ICHOR.machines)
      .items.map(m => (m['status'] as { hostname: string }).hostname)
      .sort(),
  ).toEqual(['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2'])
})

it('does not miss a machine that a reset has taken out of the cluster, though its TalosMachine is still there', async () => {
  const story = createStory()
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  story.create({ name: 'op', spec: { kind: 'node', node: { action: 'reset', machine: 'wk-2' } } })
  await story.until('it is reset', () => story.operation('op')?.status.phase === 'Completed')
  await story.until('it is no more', () => clusterIn(story, CLUSTER).status?.machines?.summary === '4/4')
  expect(clusterIn(story, CLUSTER).status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ reason: 'Healthy' })
  expect(story.world.store.list(ICHOR.machines).items).toHaveLength(5)
})

it('looks again at a cluster that is listed, although the server once answered that it is not there', async () => {
  const story = createStory()
  const { calls, schedule } = story.world
  const begin = schedule.now()
  // As a server that does not serve the type yet.
  calls.intercept(({ name, target }) =>
    name === 'cluster' && schedule.now() - begin < 60_000
      ? { do: 'fail', when: 'before', fault: { kind: 'notFound', message: `${target}: 404 page not found` } }
      : undefined,
  )
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  expect(schedule.now() - begin).toBeGreaterThanOrEqual(60_000)
})

it('finds the machines of a TalosCluster that was deleted again under another name, with what people wrote on them', async () => {
  const story = createStory()
  const { store } = story.world
  const holds = (): readonly string[] =>
    store
      .list(ICHOR.machines)
      .items.flatMap(({ metadata, ...m }) =>
        (m['spec'] as { clusterRef: { name: string } }).clusterRef.name === 'renamed' && metadata.annotations?.[ANNOTATION.upgradeHold]
          ? [`${metadata.labels?.[LABEL.cluster]}: ${metadata.annotations[ANNOTATION.upgradeHold]}`]
          : [],
      )
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  const [first] = store.list(ICHOR.machines).items
  if (!first) throw new Error('there is no machine')
  store.update(ICHOR.machines, {
    ...first,
    metadata: { ...first.metadata, annotations: { ...first.metadata.annotations, [ANNOTATION.upgradeHold]: 'until its disk is new' } },
  })
  store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
  registerCluster(story.world, { namespace: NAMESPACE, name: 'renamed' })
  await story.until('it is described', () => clusterIn(story, 'renamed').status?.machines?.summary === '5/5')
  expect(holds()).toEqual(['renamed: until its disk is new'])
})

it('writes the etcd member of each control plane into its TalosMachine, and none into those of workers', async () => {
  const story = createStory()
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  const { etcd, machines } = story.world
  const told = story.world.store.list(ICHOR.machines).items.map(m => m['status'] as TalosMachineStatus)
  expect(etcd.members()).toHaveLength(3)
  for (const machine of machines)
    expect(told.find(({ hostname }) => hostname === machine.name)?.etcdMemberID).toBe(etcd.memberOf(machine)?.id)
})

it('labels each machine with its role, also one that was written by hand, and where the label was changed', async () => {
  const story = createStory()
  const { store } = story.world
  const spec = { clusterRef: { name: CLUSTER }, address: '10.99.0.7', role: 'worker' }
  store.create(ICHOR.machines, {
    apiVersion: API_VERSION,
    kind: 'TalosMachine',
    metadata: { name: 'by-hand', namespace: NAMESPACE, labels: { rack: '1' } },
    spec,
  })
  story.start()
  const role = 'ichor.maesh.dev/role'
  const isTrue = (): boolean => {
    const { items } = store.list(ICHOR.machines)
    return items.length === 6 && items.every(({ metadata, ...m }) => metadata.labels?.[role] === (m['spec'] as { role: string }).role)
  }
  await story.until('all are labelled', isTrue)
  const object = () => store.get(ICHOR.machines, NAMESPACE, 'by-hand')!
  expect(object().metadata.labels).toEqual({ rack: '1', [role]: 'worker' })
  store.update(ICHOR.machines, { ...object(), spec: { ...spec, role: 'controlplane' } })
  await story.until('the label follows', isTrue)
  store.update(ICHOR.machines, { ...object(), metadata: { ...object().metadata, labels: {} } })
  await story.until('it is set again', isTrue)
})

it('refuses a second TalosCluster of the same cluster, and registers nothing for it', async () => {
  const story = createStory()
  story.start()
  await story.until('the first is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  story.world.store.create(ICHOR.clusters, {
    apiVersion: API_VERSION,
    kind: 'TalosCluster',
    metadata: { name: 'again', namespace: NAMESPACE },
    spec: { talosconfigSecretRef: { name: 'talosconfig', key: 'talosconfig' } },
  })
  await story.until('it is refused', () => clusterIn(story, 'again').status?.conditions?.[0]?.reason === 'DuplicateCluster')
  expect(clusterIn(story, 'again').status?.conditions?.[0]?.message).toContain(`TalosCluster ${NAMESPACE}/${CLUSTER} is the same cluster`)
  expect(story.world.store.list(ICHOR.machines).items).toHaveLength(5)
  expect(clusterIn(story, CLUSTER).status?.conditions?.[0]?.reason).toBe('Healthy')
})

it('lifts a cordon whose operation no longer exists, and no other', async () => {
  const story = createStory()
  const mark = (node: string, annotations: Record<string, string>): void => {
    const object = story.world.store.get('nodes', '', node)
    if (!object) throw new Error(`there is no Node ${node}`)
    story.world.store.update('nodes', { ...object, metadata: { ...object.metadata, annotations }, spec: { unschedulable: true } })
  }
  const isCordoned = (node: string): boolean =>
    (story.world.store.get('nodes', '', node)?.['spec'] as { unschedulable?: boolean } | undefined)?.unschedulable === true
  mark('wk-1', { [ANNOTATION.cordonedBy]: 'an-operation-that-is-gone' })
  mark('wk-2', {})
  story.start()
  await story.until(
    'the mark is gone',
    () => story.world.store.get('nodes', '', 'wk-1')?.metadata.annotations?.[ANNOTATION.cordonedBy] === undefined,
  )
  expect([isCordoned('wk-1'), isCordoned('wk-2')]).toEqual([false, true])
})

it('leaves the cordon of whoever holds the cluster lock, though the list of operations does not have it yet', async () => {
  const story = createStory({
    wrap: ports => ({ ...ports, home: { ...ports.home, operations: () => Promise.resolve({ ok: true, value: [] }) } }),
  })
  const { store, schedule } = story.world
  const { name } = story.create({ name: 'new', spec: { kind: 'talos', paused: true, talos: { version: 'v1.13.9' } } })
  const uid = story.operation(name)?.metadata.uid ?? ''
  const node = store.get('nodes', '', 'wk-1')
  if (!node) throw new Error('there is no Node wk-1')
  const mark = { [ANNOTATION.cordonedBy]: uid }
  store.update('nodes', { ...node, metadata: { ...node.metadata, annotations: mark }, spec: { unschedulable: true } })
  store.create(RESOURCE.leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: leaseName(CLUSTER), namespace: NAMESPACE, annotations: { [ANNOTATION.holderUid]: uid } },
    spec: { holderIdentity: operationHolder(NAMESPACE, name), acquireTime: new Date(schedule.now()).toISOString() },
  })
  story.start()
  const isMarked = (): boolean => store.get('nodes', '', 'wk-1')?.metadata.annotations?.[ANNOTATION.cordonedBy] !== undefined
  await story.pass(10 * 60_000)
  expect(isMarked()).toBe(true)
  story.remove(name)
  await story.until('the lock is free, and the mark is gone', () => !isMarked() && story.holder() === '')
})

it('takes nothing that another machine says at a recorded address for a fact of the recorded one [B035 siderolabs/talos#11645]', async () => {
  const story = createStory()
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  const machines = story.world.machines as Machine[]
  const [gone, other] = machines.slice(-2)
  if (!gone || !other) throw new Error('there are no workers')
  const [address = ''] = gone.addresses
  const recorded = () =>
    story.world.store.list(ICHOR.machines).items.find(m => (m['status'] as TalosMachineStatus | undefined)?.nodeID === gone.nodeID)?.[
      'status'
    ] as TalosMachineStatus | undefined
  const before = recorded()
  // The one machine is gone for good, and its address went to the other.
  machines.splice(machines.indexOf(gone), 1)
  other.addresses = [...other.addresses, address]
  await story.until('it is noticed', () => recorded()?.conditions?.[0]?.reason === 'AnotherMachine')
  expect(recorded()).toMatchObject({ hostname: gone.hostname, bootID: before?.bootID, uuid: gone.uuid })
  expect(recorded()?.conditions?.[0]?.message).toContain(`${address} is answered by ${other.hostname} (Talos node id ${other.nodeID})`)
})

it('says 30 days before that the credential expires [B107]', async () => {
  const heard: string[] = []
  const story = createStory({ hear: (level, message) => void (level === 'warn' && heard.push(message)) })
  const expiring = () => clusterIn(story, CLUSTER).status?.conditions?.find(c => c.type === 'CredentialExpiring')
  const expires = story.world.schedule.now() + 31 * DAY
  writeTalosconfig(story.world, { namespace: NAMESPACE }, { expires })
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  expect(expiring()).toBeUndefined()
  // As if a day had passed.
  writeTalosconfig(story.world, { namespace: NAMESPACE }, { expires: expires - DAY })
  await story.until('it is told', () => expiring() !== undefined)
  await story.pass(10 * 60_000)
  const day = new Date(expires - DAY).toISOString().slice(0, 10)
  expect(expiring()?.message).toMatch(new RegExp(`expires on ${day}T.*put it into Secret ${NAMESPACE}/`))
  expect(heard.filter(message => message.includes('expires on'))).toHaveLength(1)
  writeTalosconfig(story.world, { namespace: NAMESPACE }, { expires: expires + 365 * DAY })
  await story.until('it is over', () => expiring() === undefined)
})

it('gives no warning of a short-lived credential that Talos renews in time, and gives it where it does not', async () => {
  const story = createStory()
  const expiring = () => clusterIn(story, CLUSTER).status?.conditions?.find(c => c.type === 'CredentialExpiring')
  // As the Secret of one of Talos' own ServiceAccounts: six hours, written anew when one is left.
  const hours = (left: number): void => {
    const expires = story.world.schedule.now() + left * 3_600_000
    writeTalosconfig(story.world, { namespace: NAMESPACE }, { begins: expires - 6 * 3_600_000, expires })
  }
  hours(1)
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  expect(expiring()).toBeUndefined()
  hours(0.5)
  await story.until('it is told', () => expiring() !== undefined)
})

type Registered = {
  readonly spec: { readonly address: string }
  readonly status?: TalosMachineStatus
  readonly metadata: { readonly name: string }
}

const registeredIn = (story: ReturnType<typeof createStory>): readonly Registered[] =>
  story.world.store.list(ICHOR.machines).items as unknown as readonly Registered[]

describe('two machines behind one address', () => {
  it('are told apart, and each is found at an address where it answers itself', async () => {
    const story = createStory()
    const [first, second] = (story.world.machines as Machine[]).slice(-2)
    if (!first || !second) throw new Error('there are no workers')
    const [shared = ''] = first.addresses
    const [own = ''] = second.addresses
    second.addresses = [shared, own]
    story.start()
    await story.until('all are described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
    const at = (machine: Machine) => registeredIn(story).find(m => m.status?.nodeID === machine.nodeID)?.spec.address
    expect([at(first), at(second)]).toEqual([shared, own])
  })

  it('and nowhere else: the one that does not answer is listed, and said to be hidden by the other', async () => {
    const story = createStory()
    const [first, second] = (story.world.machines as Machine[]).slice(-2)
    if (!first || !second) throw new Error('there are no workers')
    const [shared = ''] = first.addresses
    second.addresses = [shared]
    story.start()
    await story.until('the rest is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '4/5')
    await story.pass(120_000)
    expect(registeredIn(story)).toHaveLength(5)
    const hidden = registeredIn(story).find(m => m.status?.conditions?.[0]?.reason === 'AnotherMachine')
    expect(hidden?.metadata.name).toMatch(/^wk-2-/)
    expect(hidden?.status?.nodeID).toBeUndefined()
    expect(hidden?.status?.conditions?.[0]?.message).toContain(`${shared} is answered by wk-1 (Talos node id ${first.nodeID})`)
  })
})

it('one machine behind two addresses is one machine', async () => {
  const story = createStory()
  const machine = (story.world.machines as Machine[]).at(-1)
  if (!machine) throw new Error('there is no worker')
  const [own = ''] = machine.addresses
  machine.addresses = [own, '10.99.0.7']
  story.world.store.create(ICHOR.machines, {
    apiVersion: API_VERSION,
    kind: 'TalosMachine',
    metadata: { name: 'by-hand', namespace: NAMESPACE, labels: { 'ichor.maesh.dev/cluster': CLUSTER } },
    spec: { clusterRef: { name: CLUSTER }, address: '10.99.0.7', role: 'worker' },
  })
  story.start()
  await story.until('it is told', () => registeredIn(story).some(m => m.status?.conditions?.[0]?.reason === 'SameMachine'))
  await story.pass(60_000)
  const told = registeredIn(story).filter(m => m.status?.conditions?.[0]?.reason === 'SameMachine')
  expect(told.map(m => m.metadata.name)).toEqual(['by-hand'])
  const [twin] = registeredIn(story).filter(m => m.status?.nodeID === machine.nodeID)
  expect(told[0]?.status?.conditions?.[0]?.message).toBe(
    `10.99.0.7 is another address of the machine of TalosMachine ${twin?.metadata.name} (${own}, Talos node id ${machine.nodeID}). Delete one of the two.`,
  )
  expect(clusterIn(story, CLUSTER).status?.machines?.summary).toBe('5/6')
})

it('where Talos cannot be reached, tells of the lock as it is, and of no machine that it is well', async () => {
  const story = createStory()
  const { store } = story.world
  story.start()
  await story.until('the cluster is described', () => clusterIn(story, CLUSTER).status?.machines?.summary === '5/5')
  story.create({ name: 'op', spec: { kind: 'node', node: { action: 'restart-service', machine: 'wk-1', service: 'kubelet' } } })
  const lock = () => (store.get(ICHOR.clusters, NAMESPACE, CLUSTER)?.['status'] as { lock?: { holder: string } } | undefined)?.lock
  story.world.calls.intercept(({ name }) => (name === 'restartService' ? { do: 'silence', when: 'before' } : undefined))
  await story.until('it has the lock', () => lock() !== undefined)
  store.remove(RESOURCE.secrets, NAMESPACE, 'talosconfig')
  await story.until('nobody is seen', () => clusterIn(story, CLUSTER).status?.conditions?.[0]?.reason === 'TalosUnreachable')
  // As a person does who wants to be rid of it.
  const operation = store.get(ICHOR.operations, NAMESPACE, 'op')!
  store.update(ICHOR.operations, { ...operation, metadata: { ...operation.metadata, finalizers: [] } })
  store.remove(ICHOR.operations, NAMESPACE, 'op')
  await story.until('its lock is no more told of', () => lock() === undefined)
  const ready = store.list(ICHOR.machines).items.map(m => (m['status'] as TalosMachineStatus).conditions?.[0]?.status)
  expect(new Set(ready)).toEqual(new Set(['Unknown']))
})

it('finds the id of a cluster whose first member does not answer by asking all others at once', async () => {
  const story = createStory({ workers: 6 })
  const { calls, schedule } = story.world
  const [last] = story.world.machine('wk-6').addresses
  const fault = { kind: 'unreachable', message: 'deadline of 10s exceeded' } as const
  calls.intercept(({ name, target }) =>
    name === 'machine' && target !== last ? { do: 'fail', when: 'before', fault, afterMs: 10_000 } : undefined,
  )
  story.start()
  const began = schedule.now()
  await story.until('its id is known', () => clusterIn(story, CLUSTER).status?.clusterID !== undefined)
  // Twice the deadline of a call, and what discovery itself takes.
  expect(schedule.now() - began).toBeLessThan(60_000)
})
