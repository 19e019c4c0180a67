import { formatDuration } from '../../api/duration.ts'
import { ANNOTATION } from '../../api/names.ts'
import { isFinished } from '../../api/phases.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Lease } from '../../ports/home.ts'
import { holderNamed, waitsForLock } from '../lock-claim.ts'
import { holderText } from '../summary.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { inNamespace } from './cluster-sight.ts'
import { fine, type Finding, type Look, plural, seen, warning, wrong } from './look.ts'

/** Whether somebody holds the cluster lock who is at work no more (spec 6). */
export const lock: Look<ClusterSight> = {
  name: 'lock',
  look: sight =>
    seen('The cluster lock', sight.lock, lease =>
      seen('Who holds the cluster lock', sight.operations, operations =>
        !lease || lease.holder === '' ? [fine('Free.')] : held(sight, lease, operations),
      ),
    ),
}

const held = (sight: ClusterSight, lease: Lease, operations: readonly TalosOperation[]): readonly Finding[] => {
  const { now, cluster, machines } = sight.world
  // Who makes one by hand may leave the time out.
  const since = Date.parse(lease.acquireTime)
  const who = `Held by ${holderText(lease.holder)}${Number.isNaN(since) ? '' : ` for ${formatDuration(now - since)}`}`
  const queue = operations.filter(waitsForLock).length
  const waiting = queue === 0 ? '' : `; ${plural(queue, 'operation waits', 'operations wait')} for it`
  // Whoever waits is held up.
  const told = queue === 0 ? warning : wrong
  const release = { command: inNamespace(sight, `ichor lock release ${cluster.metadata.name} --force`) }
  const holder = holderNamed(lease.holder)
  if (!holder)
    return [told(`${who}, which is none of Ichor's${waiting}.`, { remedy: 'If it is at work no more, take the lock from it.', ...release })]
  const isIt = ({ metadata }: Pick<TalosOperation, 'metadata'>): boolean =>
    metadata.namespace === holder.namespace && metadata.name === holder.name
  const uid = lease.annotations[ANNOTATION.holderUid]
  const object = holder.sort === 'op' ? operations.find(isIt) : holder.sort === 'machine' ? machines.find(isIt) : [cluster].find(isIt)
  const free = { remedy: 'A controller at work frees it within a minute; where none is, it stays.', ...release }
  if (!object || (uid !== undefined && object.metadata.uid !== uid)) return [told(`${who}, which does not exist any more${waiting}.`, free)]
  if ('phase' in object.status && isFinished((object as TalosOperation).status.phase))
    return [told(`${who}, which is over${waiting}.`, free)]
  if (holder.sort === 'op' && (object as TalosOperation).spec.paused)
    return [
      told(`${who}, which a person has paused${waiting}.`, {
        remedy: 'It keeps the lock until it is resumed or cancelled.',
        command: inNamespace(sight, `ichor operation resume ${holder.name}`),
      }),
    ]
  return [fine(`${who}${waiting}.`)]
}
