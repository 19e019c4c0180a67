import { formatDuration } from '../../../api/duration.ts'
import { ANNOTATION, API_VERSION, leaseName } from '../../../api/names.ts'
import { isFinished } from '../../../api/phases.ts'
import { RESOURCE } from '../../../adapters/kube/resource.ts'
import { heldOperation } from '../../../core/lock-claim.ts'
import { clockTime, holderText } from '../../../core/summary.ts'
import type { KubeObject } from '../api.ts'
import { CLUSTER, LEASE, OPERATION } from '../resource-types.ts'
import type { Session } from '../session.ts'
import { nextCommand } from '../typed.ts'
import { confirmName, must, mustBeNamed, mustGet, operationOf, whoAmI } from '../session.ts'
import { Stop } from '../stop.ts'

export type ReleaseOptions = { readonly force?: boolean; readonly confirm?: string }

/**
 * Takes the lock of a cluster from whoever holds it, where that is certain not to be at work any more. The write applies only to the Lease that was
 * shown: a holder that came since then keeps it. An Event on the TalosCluster says who did it.
 */
export const releaseLock = async (session: Session, cluster: string, { force, confirm }: ReleaseOptions): Promise<void> => {
  const { terminal, api, namespace } = session
  const about = await mustGet(session, CLUSTER, cluster)
  const found = await api.get(LEASE, namespace, leaseName(cluster))
  const lease = !found.ok && found.fault.kind === 'notFound' ? undefined : must(session, found, `read the lock of cluster ${cluster}`)
  const spec = (lease?.spec ?? {}) as { holderIdentity?: string; acquireTime?: string }
  const holder = spec.holderIdentity ?? ''
  if (confirm !== undefined) mustBeNamed(cluster, confirm)
  if (!lease || holder === '') return terminal.out(`the lock of cluster ${cluster} is free already`)

  const now = terminal.now()
  const since = spec.acquireTime ? ` since ${clockTime(spec.acquireTime, now)} (${formatDuration(now - Date.parse(spec.acquireTime))})` : ''
  const held = `The lock of cluster ${cluster} is held by ${holderText(holder)}${since}.`
  const advice = await adviceOn(session, lease, holder)
  if (!force)
    throw new Stop('usage', 'a lock is taken from its holder only with --force. Nothing was done.', [
      held,
      ...advice,
      `If it is at work no more: ${nextCommand(session, `lock release ${cluster} --force -n ${namespace}`)}`,
    ])
  terminal.err(held)
  for (const line of advice) terminal.err(line)
  await confirmName(terminal, 'Whoever waits for it starts at once.', cluster, confirm)

  const time = new Date(terminal.now()).toISOString().replace('Z', '000Z')
  const change = {
    metadata: { resourceVersion: lease.metadata.resourceVersion, annotations: { [ANNOTATION.holderUid]: null } },
    spec: { holderIdentity: null, acquireTime: time, renewTime: time },
  }
  must(session, await api.patch(LEASE, namespace, lease.metadata.name, change), `release the lock of cluster ${cluster}`)
  terminal.out(`the lock of cluster ${cluster} is free`)
  await tell(session, about, `${await whoAmI(session)} took the cluster lock from ${holder} by force.`)
}

/** What is better than force, where the holder is an operation that is there. */
const adviceOn = async (session: Session, lease: KubeObject, holder: string): Promise<readonly string[]> => {
  const { api, namespace } = session
  const named = heldOperation(holder)
  const found = named && (await api.get(OPERATION, named.namespace, named.name))
  if (!found?.ok || found.value.metadata.uid !== lease.metadata.annotations?.[ANNOTATION.holderUid]) return []
  const { metadata, status } = operationOf(found.value)
  if (isFinished(status.phase)) return []
  return [
    `That operation is ${status.phase ?? 'Pending'}. It takes the lock again while one of its machines is open, and waits for it else.`,
    `To end it well: ${nextCommand(session, `operation cancel ${metadata.name} -n ${namespace}`)}`,
  ]
}

/** Best effort: the lock is free all the same. */
const tell = async ({ api, namespace, terminal, outside, server }: Session, about: KubeObject, message: string): Promise<void> => {
  const now = terminal.now()
  const time = `${new Date(now).toISOString().slice(0, 19)}Z`
  const { name, uid } = about.metadata
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name.slice(0, 200)}.${now.toString(16)}`, namespace },
    involvedObject: { apiVersion: API_VERSION, kind: CLUSTER.kind, namespace, name, uid },
    type: 'Warning',
    reason: 'LockForced',
    message: message.slice(0, 1024),
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component: 'ichor' },
    reportingComponent: 'ichor',
    reportingInstance: `ichor/${outside.version}`.slice(0, 128),
  }
  const written = await api.create(RESOURCE.event, namespace, event)
  if (!written.ok) terminal.err(`The Event about it could not be written at ${server}: ${written.fault.message}`)
}
