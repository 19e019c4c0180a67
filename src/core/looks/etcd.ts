import { DEFAULT_QUOTA_BYTES, quorumOf } from '../etcd-gate.ts'
import { answered, leaderName } from '../etcd-members.ts'
import { etcdViews, gate } from '../machine-steps/etcd.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { answering, inNamespace, silence, workOn } from './cluster-sight.ts'
import { fine, type Finding, type Look, plural, unseenFor, warning, wrong } from './look.ts'

/** From here on there is little time left to do something about it. */
const FULL = 0.8
/** So much of the file is room that etcd does not give back by itself. */
const HOLLOW = 0.5
const HOLLOW_BYTES = 256 * 1024 ** 2

/** Whether etcd is well, by the very gate that an operation asks before it touches a control plane (procedures 1.4), and has room. */
export const etcd: Look<ClusterSight> = {
  name: 'etcd',
  look: sight => {
    const fault = silence(sight)
    if (fault) return [unseenFor('etcd', fault)]
    const views = etcdViews(sight.world)
    const verdict = gate({ spec: { acknowledge: [] } }, sight.world, { purpose: 'settled', etcdStepAllowed: false })
    const found: Finding[] = []
    const operation = workOn(sight, ({ role }) => role === 'controlplane')
    if (!verdict.pass && verdict.kind === 'hold' && operation)
      found.push(warning(`${verdict.message} Operation ${operation} is at work on a control plane, and waits for it.`))
    else if (!verdict.pass)
      found.push(wrong(`${verdict.message} No control plane is touched meanwhile.`, verdict.remedy ? { remedy: verdict.remedy } : {}))
    const members = answered(views)
    const quotas = answering(sight).flatMap(({ facts }) => (facts.etcdQuotaBytes > 0 ? [facts.etcdQuotaBytes] : []))
    const quota = quotas.length > 0 ? Math.min(...quotas) : DEFAULT_QUOTA_BYTES
    for (const { name, view } of members) {
      const { dbSize, dbSizeInUse } = view.value.status
      const host = answering(sight).find(({ machine }) => machine.metadata.name === name)?.name ?? name
      const defrag = { command: inNamespace(sight, `ichor node etcd-defrag ${host} --cluster ${sight.world.cluster.metadata.name}`) }
      if (dbSize > FULL * quota)
        found.push(
          warning(
            `The database of etcd on ${host} has ${mebibytes(dbSize)} of ${mebibytes(quota)}; when it is full, nothing can be written any more.`,
            {
              remedy: `${mebibytes(dbSizeInUse)} of it are in use. Defragment it, one member after the other, or raise quota-backend-bytes.`,
              ...defrag,
            },
          ),
        )
      else if (dbSize > HOLLOW_BYTES && dbSizeInUse < HOLLOW * dbSize)
        found.push(
          warning(`Of the ${mebibytes(dbSize)} of etcd's database on ${host} only ${mebibytes(dbSizeInUse)} are in use.`, {
            remedy: 'Defragment it.',
            ...defrag,
          }),
        )
    }
    const count = views.length
    if (count === 2)
      found.push(
        warning('etcd has two members: it stops as soon as one of them is away, so two are worse than one.', {
          remedy: 'Add a third control plane.',
        }),
      )
    if (found.length > 0) return found
    const spare = count - quorumOf(count)
    const largest = Math.max(0, ...members.map(({ view }) => view.value.status.dbSize))
    const leader = answering(sight).find(({ machine }) => machine.metadata.name === leaderName(views))?.name
    return [
      fine(
        `${plural(count, 'member')}, ${leader} leads, ${spare === 0 ? 'none may' : `${spare} may`} fail; ${mebibytes(largest)} of ${mebibytes(quota)}.`,
      ),
    ]
  },
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`
