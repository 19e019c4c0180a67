import type { Command } from 'commander'
import { formatDuration } from '../../../api/duration.ts'
import { leaseName } from '../../../api/names.ts'
import type { TalosCluster } from '../../../api/talos-cluster.ts'
import type { TalosOperation } from '../../../api/talos-operation.ts'
import { clockTime, holderText } from '../../../core/summary.ts'
import type { Output } from '../output.ts'
import { outputOption, printValue } from '../output.ts'
import { CLUSTER, LEASE, OPERATION } from '../resource-types.ts'
import type { Session } from '../session.ts'
import { must, mustGet, operationOf } from '../session.ts'
import { faultStop } from '../stop.ts'
import { alignedLines } from '../table.ts'
import type { Shell } from './command.ts'
import { group, withExamples, works } from './command.ts'
import type { ReleaseOptions } from './lock-release.ts'
import { releaseLock } from './lock-release.ts'

type LockView = {
  readonly cluster: string
  readonly holder: string
  readonly since: string
  readonly queue: readonly { readonly name: string; readonly created: string }[]
}

export const lockCommand = (shell: Shell): Command => {
  const lock = group('lock', 'Show who holds the lock of a cluster, since when, and who waits for it')
    .argument('[cluster]', 'the TalosCluster (default: every one of the namespace)')
    .addOption(outputOption(['table', 'json', 'yaml']))
  withExamples(lock, shell, ['lock', 'lock home -o json', 'lock release home --force'])
  works<{ output: Output }>(lock, shell, (session, [cluster], { output }) => showLocks(session, cluster, output), CLUSTER)

  const release = group('release', 'Take the lock from a holder that is at work no more. Operations of Ichor never need it')
    .argument('<cluster>', 'the TalosCluster')
    .option('--force', 'needed: the holder is not asked')
    .option('--confirm <cluster>', 'the name of the cluster, instead of typing it')
  works<ReleaseOptions>(release, shell, (session, [cluster = ''], options) => releaseLock(session, cluster, options), CLUSTER)
  lock.addCommand(release)
  return lock
}

const showLocks = async (session: Session, cluster: string | undefined, output: Output): Promise<void> => {
  const { terminal, outside, api, namespace } = session
  const clusters =
    cluster === undefined ? must(session, await api.list(CLUSTER, namespace), 'list clusters') : [await mustGet(session, CLUSTER, cluster)]
  const operations = must(session, await api.list(OPERATION, namespace), 'list operations').map(operationOf)
  const views = await Promise.all(
    clusters.map(one => lockOf(session, one.metadata.name, one.status as TalosCluster['status'] | undefined, operations)),
  )
  if (output === 'json' || output === 'yaml') return printValue(outside, output, views)
  if (views.length === 0) return terminal.err(`There are no clusters in namespace ${namespace}.`)

  const now = terminal.now()
  const rows = views.map(({ cluster: name, holder, since, queue }) => [
    name,
    holder ? holderText(holder) : '(free)',
    since ? `${clockTime(since, now)} (${formatDuration(now - Date.parse(since))})` : '',
    queue.map((waiting, index) => `${index + 1}. ${waiting.name} (${formatDuration(now - Date.parse(waiting.created))})`).join(', '),
  ])
  for (const line of alignedLines(['CLUSTER', 'HOLDER', 'SINCE', 'WAITING'], rows)) terminal.out(line)
}

const lockOf = async (
  { api, namespace, server }: Session,
  cluster: string,
  status: TalosCluster['status'] | undefined,
  operations: readonly TalosOperation[],
): Promise<LockView> => {
  const lease = await api.get(LEASE, namespace, leaseName(cluster))
  const queue = operations
    .filter(
      ({ spec, status: { phase, failureReason } }) =>
        spec.clusterRef.name === cluster && phase === 'Paused' && failureReason === 'ClusterLockHeld' && !spec.paused,
    )
    .toSorted((a, b) => compare(a.metadata.creationTimestamp, b.metadata.creationTimestamp) || compare(a.metadata.uid, b.metadata.uid))
    .map(({ metadata }) => ({ name: metadata.name, created: metadata.creationTimestamp }))
  // Nobody has ever held it; or we may not read Leases, and take what the cluster's status tells.
  if (!lease.ok && lease.fault.kind === 'forbidden')
    return { cluster, holder: status?.lock?.holder ?? '', since: status?.lock?.since ?? '', queue }
  if (!lease.ok && lease.fault.kind !== 'notFound') throw faultStop(lease.fault, `read the lock of cluster ${cluster}`, server)
  const spec = lease.ok ? (lease.value.spec as { holderIdentity?: string; acquireTime?: string } | undefined) : undefined
  return { cluster, holder: spec?.holderIdentity ?? '', since: spec?.holderIdentity ? (spec.acquireTime ?? '') : '', queue }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
