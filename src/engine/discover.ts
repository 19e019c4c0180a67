import { ANNOTATION } from '../api/names.ts'
import type { Condition } from '../api/schema.ts'
import { isFinished } from '../api/phases.ts'
import type { TalosCluster, TalosClusterStatus } from '../api/talos-cluster.ts'
import type { TalosMachine, TalosMachineStatus } from '../api/talos-machine.ts'
import type { OperationStatus, Target } from '../api/talos-operation.ts'
import { isHalfWay } from '../core/decision.ts'
import { peerHost } from '../core/etcd-members.ts'
import { withoutLeft } from '../core/left.ts'
import { iso, openTargets, targetsOf } from '../core/ledger.ts'
import { heldOperation } from '../core/lock-claim.ts'
import { nodeNameOf } from '../core/machine-steps/target.ts'
import { ofRecorded } from '../core/recorded-machine.ts'
import { sameValue } from '../core/same-value.ts'
import { versionSpan } from '../core/versions.ts'
import { nodeOf } from '../core/world.ts'
import type { Clock } from '../ports/clock.ts'
import type { Connections } from '../ports/connections.ts'
import type { Fault, Result } from '../ports/fault.ts'
import type { Home, Key, Lease } from '../ports/home.ts'
import type { ClusterAddons, Kube, NodeFacts } from '../ports/kube.ts'
import type { ClusterMember, EtcdView, MachineFacts, Talos } from '../ports/talos.ts'
import { freeLock, readLock } from './cluster-lock.ts'
import { condition } from './conditions.ts'
import { besideReady, credentialExpiring } from './credential-warning.ts'
import type { Log } from './log.ts'
import type { Next } from './queue.ts'
import { kept, registered, type Seen, withoutTwins } from './registration.ts'

export type Discoverer = {
  readonly home: Home
  readonly connections: Connections
  readonly clock: Clock
  readonly log: Log
  readonly discoverMs: number
}

/** Looks at one cluster: which machines it has, what runs on them, and writes that down. It changes nothing on the cluster itself. */
export const discover = async (engine: Discoverer, key: Key): Promise<Next> => {
  const found = await engine.home.cluster(key)
  if (!found.ok) {
    if (found.fault.kind !== 'notFound' || (await isListed(engine, key))) return { failed: true }
    engine.connections.forget(key)
    return {}
  }
  const cluster = found.value
  const talos = await engine.connections.talos(cluster)
  if (!talos.ok) return notReachable(engine, cluster, talos.fault)
  const members = await membersOf(talos.value)
  if (!members.ok) return notReachable(engine, cluster, members.fault)

  const clusterID = await clusterIDOf(talos.value, members.value)
  const twin = clusterID ? await twinOf(engine, cluster, clusterID) : undefined
  if (clusterID && twin) return report(engine, cluster, await duplicate(engine, cluster, clusterID, twin))

  const known = await engine.home.machines(key)
  if (!known.ok) return { failed: true }
  const kube = await engine.connections.kube(cluster)
  const [nodes, addons] = kube.ok ? await Promise.all([kube.value.nodes(), kube.value.addons()]) : [kube, kube]

  // One that does not answer costs its whole deadline: all are asked at once.
  const answers = await Promise.all(members.value.map(member => registered(engine, cluster, known.value, member, talos.value)))
  const listed = answers.filter(one => one !== undefined)
  const others = known.value.filter(m => !listed.some(s => s.machine.metadata.name === m.metadata.name))
  const unlisted = await Promise.all(
    others.map(async machine => ({
      machine: await kept(engine.home, machine, machine.spec),
      facts: await talos.value.machine(machine.spec.address),
    })),
  )
  const seen = withoutTwins([...listed, ...unlisted].map(({ machine, facts }) => ({ machine, facts: ofRecorded(machine, facts) })))
  const controlPlane = seen.find(s => s.machine.spec.role === 'controlplane' && s.facts.ok)
  const etcd = controlPlane ? await talos.value.etcd(controlPlane.machine.spec.address) : undefined
  for (const { machine, facts } of seen) await describe(engine, machine, facts, { nodes, etcd, isOwn: machine === controlPlane?.machine })
  if (kube.ok && nodes.ok) await sweepCordons(engine, cluster, kube.value, nodes.value)
  await freeLock(engine.home, engine.clock, cluster.metadata)
  return report(engine, cluster, await summary(engine, cluster, talos.value, seen, nodes, addons, etcd))
}

/** No event would tell of a cluster that was there all the time, where a server answered once that it is not. */
const isListed = async ({ home }: Discoverer, { namespace, name }: Key): Promise<boolean> => {
  const all = await home.clusters(namespace)
  return !all.ok || all.value.some(({ metadata }) => metadata.name === name)
}

/** The id that the cluster has for Talos, from a member that answers. One that does not costs its whole deadline, so then all are asked at once, at any address. */
const clusterIDOf = async (talos: Talos, members: readonly ClusterMember[]): Promise<string | undefined> => {
  const [first, ...others] = members.flatMap(({ addresses }) => addresses.slice(0, 1))
  const facts = first === undefined ? undefined : await talos.machine(first)
  if (facts?.ok || first === undefined) return (facts?.ok && facts.value.clusterID) || undefined
  const answers = await Promise.all([...others, ...members.flatMap(({ addresses }) => addresses.slice(1))].map(talos.machine))
  return answers.flatMap(answer => (answer.ok && answer.value.clusterID ? [answer.value.clusterID] : []))[0]
}

/**
 * A cordon that was left by an operation which no longer exists is nobody's, and one that has ended, or is done with the machine, wants none any more:
 * one that it powered off has been started again. It is lifted where the Node is Ready, and the mark of one that somebody has lifted already is taken off.
 */
const sweepCordons = async (engine: Discoverer, cluster: TalosCluster, kube: Kube, nodes: readonly NodeFacts[]): Promise<void> => {
  const marked = nodes.filter(n => n.annotations[ANNOTATION.cordonedBy] !== undefined && n.ready)
  if (marked.length === 0) return
  const operations = await engine.home.operations(cluster.metadata.namespace)
  if (!operations.ok) return
  // The list may be older than an operation that works already; the lock and its holder are read by themselves, and who cordons holds it.
  const lock = await readLock(engine.home, cluster.metadata.namespace, cluster.metadata.name)
  if (!lock.ok) return
  const held = lock.value && heldOperation(lock.value.holder)
  const holder = held && (await engine.home.operation(held))
  if (holder && !holder.ok && holder.fault.kind !== 'notFound') return
  const known = [...operations.value, ...(holder?.ok ? [holder.value] : [])]
  /** Whoever has cordoned it; or another, who took the machine over as he found it. */
  const isWorking = ({ name, annotations }: NodeFacts): boolean =>
    known.some(({ metadata, status }) => {
      if (isFinished(status.phase) && isSaid(status)) return false
      const own = targetsOf(status).filter(target => nodeNameOf({ target }) === name)
      return metadata.uid === annotations[ANNOTATION.cordonedBy] ? !isDoneWith(own) : own.some(({ phase }) => phase === 'Running')
    })
  for (const node of marked) {
    if (isWorking(node)) continue
    const lifted = await kube.uncordon(node)
    const told =
      node.cordonedBy === undefined ? 'took the mark of an operation that is over off a Node' : 'uncordoned a Node whose operation is over'
    if (lifted.ok) engine.log.info(told, { node: node.name, cluster: cluster.metadata.name })
  }
}

/** With all machines of one Node: another that was installed in the place of one that is done has its name. */
const isDoneWith = (machines: readonly Target[]): boolean =>
  machines.some(({ phase }) => phase === 'Completed') && !machines.some(isHalfWay)

/** An end with a machine open was written by a hand, unless it was asked for. */
const isSaid = (status: OperationStatus): boolean => status.phase !== 'Completed' || openTargets(status).length === 0

/** Asks the endpoints of the talosconfig one after the other: the first that answers knows all members. */
const membersOf = async (talos: Talos): Promise<Result<readonly ClusterMember[]>> => {
  let last: Result<readonly ClusterMember[]> = { ok: false, fault: { kind: 'invalid', message: 'the talosconfig names no endpoints' } }
  for (const endpoint of talos.endpoints) {
    last = await talos.members(endpoint)
    if (last.ok && last.value.length > 0) return last
  }
  return last.ok
    ? {
        ok: false,
        fault: {
          kind: 'unknown',
          message: 'Talos knows no members of the cluster: is cluster discovery switched off? Write TalosMachines by hand.',
        },
      }
    : last
}

const UNSEEN: Readonly<Partial<Record<Fault['kind'], string>>> = { wrongPeer: 'AnotherMachine', alreadyExists: 'SameMachine' }

type Around = {
  readonly nodes: Result<readonly NodeFacts[]>
  readonly etcd: Result<EtcdView> | undefined
  /** Whether it is this machine's own etcd that was asked. */
  readonly isOwn?: boolean
}

const describe = async (
  engine: Discoverer,
  machine: TalosMachine,
  facts: Result<MachineFacts>,
  { nodes, etcd, isOwn = false }: Around,
): Promise<void> => {
  const now = engine.clock.now()
  const node = facts.ok && nodes.ok ? nodeOf(nodes.value, facts.value.nodename) : undefined
  const up = facts.ok && facts.value.stage === 'running' && facts.value.ready
  const reason = !facts.ok ? (UNSEEN[facts.fault.kind] ?? 'Unreachable') : up ? 'Running' : 'NotReady'
  const message = !facts.ok
    ? facts.fault.message
    : up
      ? 'Running and ready.'
      : `Stage ${facts.value.stage}${facts.value.unmet.length > 0 ? `; ${facts.value.unmet.join('; ')}` : ''}.`
  const { etcdMemberID: known, ...before } = machine.status
  const status: TalosMachineStatus = {
    ...before,
    ...optional('etcdMemberID', memberOf(machine, etcd, known, isOwn)),
    observedGeneration: machine.metadata.generation,
    ...(facts.ok
      ? {
          hostname: facts.value.hostname,
          nodeName: node?.name ?? facts.value.nodename,
          // Not while it boots and does not know them yet.
          ...(facts.value.uuid ? { uuid: facts.value.uuid } : {}),
          ...(facts.value.nodeID ? { nodeID: facts.value.nodeID } : {}),
          bootID: facts.value.bootID,
          talosVersion: facts.value.version,
          schematic: facts.value.schematic,
          stage: facts.value.stage,
          lastSeen: minute(now),
          ...(node ? { kubeletVersion: node.kubeletVersion } : {}),
        }
      : {}),
    conditions: [
      condition(machine.status.conditions, machine.metadata.generation, now, {
        status: facts.ok ? (up ? 'True' : 'False') : 'Unknown',
        ...{ reason, message },
      }),
    ],
  }
  if (sameValue(status, machine.status)) return
  const written = await engine.home.writeMachineStatus(machine, status)
  if (!written.ok && written.fault.kind !== 'conflict')
    engine.log.info('the status of a TalosMachine could not be written', { machine: machine.metadata.name, fault: written.fault.message })
}

/** Where etcd does not answer, it is what it was; and where its member has another address than the machine, as long as that is one. */
const memberOf = ({ spec }: TalosMachine, etcd: Around['etcd'], known: string | undefined, isOwn: boolean): string | undefined => {
  if (!etcd?.ok) return known
  const { members, status } = etcd.value
  if (isOwn) return status.memberID
  const there = members.find(m => m.peerURLs.some(url => peerHost(url) === spec.address.toLowerCase()))
  return (there ?? members.find(m => m.id === known))?.id
}

/** To the minute, so that a healthy machine is written once a minute and not at every look. */
const minute = (now: number): string => iso(Math.floor(now / 60_000) * 60_000)

const summary = async (
  engine: Discoverer,
  cluster: TalosCluster,
  talos: Talos,
  all: readonly Seen[],
  nodes: Result<readonly NodeFacts[]>,
  addons: Result<ClusterAddons>,
  etcd: Result<EtcdView> | undefined,
): Promise<TalosClusterStatus> => {
  const now = engine.clock.now()
  const lock = await readLock(engine.home, cluster.metadata.namespace, cluster.metadata.name)
  // One that a reset has taken out of the cluster is not missing from it.
  const staying = new Set(
    withoutLeft(
      all.map(({ machine }) => machine),
      lock.ok ? lock.value : undefined,
    ),
  )
  const seen = all.filter(({ machine }) => staying.has(machine))
  const facts = seen.flatMap(s => (s.facts.ok ? [s.facts.value] : []))
  const ready = facts.filter(f => f.stage === 'running' && f.ready).length
  const clusterID = facts[0]?.clusterID
  const range = (versions: readonly string[]): { lowest: string; highest: string } | undefined =>
    versionSpan(versions.filter(v => v !== ''))
  const allUp = ready === seen.length
  const [status, reason, message] = !nodes.ok
    ? (['False', 'KubernetesUnreachable', nodes.fault.message] as const)
    : allUp
      ? (['True', 'Healthy', `All ${seen.length} machines are running and ready.`] as const)
      : (['False', 'MachinesNotReady', `${seen.length - ready} of ${seen.length} machines are not ready.`] as const)
  const { lock: _, ...rest } = cluster.status
  return {
    ...rest,
    ...heldBy(lock),
    observedGeneration: cluster.metadata.generation,
    ...(clusterID ? { clusterID } : {}),
    ...optional('talos', range(facts.map(f => f.version))),
    ...optional('kubernetes', nodes.ok ? range(nodes.value.map(n => n.kubeletVersion)) : undefined),
    ...optional('etcd', etcd?.ok ? range([etcd.value.status.protocolVersion]) : undefined),
    ...(addons.ok
      ? {
          ...optional('cilium', addons.value.cilium?.version),
          kubeProxy: addons.value.kubeProxy ? ('enabled' as const) : ('disabled' as const),
        }
      : {}),
    machines: {
      total: seen.length,
      controlPlanes: seen.filter(s => s.machine.spec.role === 'controlplane').length,
      ready,
      summary: `${ready}/${seen.length}`,
    },
    ...optional('etcdMembers', etcd?.ok ? etcd.value.members.length : undefined),
    credentialExpires: iso(talos.credentialExpires),
    conditions: [
      condition(cluster.status.conditions, cluster.metadata.generation, now, { status, reason, message }),
      ...credentialExpiring(engine, cluster, talos),
    ],
  }
}

const heldBy = (lock: Result<Lease | undefined>): Pick<TalosClusterStatus, 'lock'> =>
  lock.ok && lock.value && lock.value.holder !== '' ? { lock: { holder: lock.value.holder, since: lock.value.acquireTime } } : {}

/** What was last known of it, but for the lock, which passes on whether or not the cluster can be seen. */
const knownLast = async ({ home }: Discoverer, { metadata, status }: TalosCluster): Promise<TalosClusterStatus> => {
  const { lock: _, ...rest } = status
  const lock = await readLock(home, metadata.namespace, metadata.name)
  return lock.ok ? { ...rest, ...heldBy(lock) } : status
}

const duplicate = async (engine: Discoverer, cluster: TalosCluster, clusterID: string, twin: string): Promise<TalosClusterStatus> => ({
  ...(await knownLast(engine, cluster)),
  observedGeneration: cluster.metadata.generation,
  clusterID,
  conditions: [
    notReady(
      engine,
      cluster,
      'DuplicateCluster',
      `TalosCluster ${twin} is the same cluster (Talos cluster id ${clusterID}). Delete one of the two.`,
    ),
    ...besideReady(cluster),
  ],
})

/** The older TalosCluster of the same Talos cluster, if there is one. */
const twinOf = async (engine: Discoverer, cluster: TalosCluster, clusterID: string): Promise<string | undefined> => {
  const all = await engine.home.clusters()
  if (!all.ok) return undefined
  const twin = all.value.find(c => c.metadata.uid !== cluster.metadata.uid && c.status.clusterID === clusterID && age(c) < age(cluster))
  return twin && `${twin.metadata.namespace}/${twin.metadata.name}`
}

/** Nobody sees its machines, so none of them is known to be well. */
const notReachable = async (engine: Discoverer, cluster: TalosCluster, fault: Fault): Promise<Next> => {
  await freeLock(engine.home, engine.clock, cluster.metadata)
  const unseen = { ok: false, fault } as const
  const machines = await engine.home.machines(cluster.metadata)
  for (const machine of machines.ok ? machines.value : []) await describe(engine, machine, unseen, { nodes: unseen, etcd: undefined })
  return report(engine, cluster, {
    ...(await knownLast(engine, cluster)),
    observedGeneration: cluster.metadata.generation,
    conditions: [notReady(engine, cluster, 'TalosUnreachable', fault.message), ...besideReady(cluster)],
  })
}

const notReady = ({ clock }: Discoverer, { metadata, status }: TalosCluster, reason: string, message: string): Condition =>
  condition(status.conditions, metadata.generation, clock.now(), { status: 'False', reason, message })

const report = async (engine: Discoverer, cluster: TalosCluster, status: TalosClusterStatus): Promise<Next> => {
  if (!sameValue(status, cluster.status)) {
    const written = await engine.home.writeClusterStatus(cluster, status)
    if (!written.ok && written.fault.kind !== 'conflict') return { failed: true }
  }
  return { againMs: engine.discoverMs }
}

const optional = <K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } =>
  value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: T })

const age = ({ metadata }: TalosCluster): string => `${metadata.creationTimestamp}/${metadata.uid}`
