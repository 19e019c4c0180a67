import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer, Refusal } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import { bootstrapEtcd, defragmentEtcd, keepUpload, leaveEtcd, removeEtcdMember } from '../../world/etcd-membership.ts'
import { versionOf } from '../../world/machine.ts'
import { releaseOf } from '../../world/releases.ts'
import type { Call, StreamHandler, UnaryHandler, UploadHandler } from '../call.ts'
import { until } from '../call.ts'
import { streaming, unary, uploading } from '../dispatch.ts'
import { notOnWorker, viewOf } from './etcd.ts'
import { snapshotFile } from './snapshot-file.ts'
import { receiveSnapshot } from './snapshot-upload.ts'

const methods = MachineService.method

/** Waits, as the real calls do, for an etcd of this machine that answers. */
const ownEtcd = async (call: Call, what: string): Promise<Refusal | undefined> => {
  const refusal = notOnWorker(call.machine, what)
  if (refusal) return refusal
  const view = await viewOf(call, () => [call.machine])
  return view.ok ? undefined : view
}

const defragment: UnaryHandler<typeof methods.etcdDefragment> = async call => {
  const refusal = await ownEtcd(call, 'etcd defragment')
  if (refusal) return refusal
  await new Promise<void>(resolve => defragmentEtcd(call.site, call.machine, resolve))
  return answer({ messages: [{}] })
}

const removeMember: UnaryHandler<typeof methods.etcdRemoveMemberByID> = async (call, { memberId }) => {
  const refusal = await ownEtcd(call, 'etcd remove member')
  if (refusal) return refusal
  const removed = removeEtcdMember(call.site, memberId.toString(16).padStart(16, '0'))
  return removed.ok ? answer({ messages: [{}] }) : removed
}

const leave: UnaryHandler<typeof methods.etcdLeaveCluster> = async call => {
  const { site, machine, over } = call
  const refusal = await ownEtcd(call, 'etcd leave')
  if (refusal) return refusal
  let left: Answer<void> | undefined
  await until(site, over, () => (left ??= leaveEtcd(site, machine)) !== undefined)
  if (left === undefined) return refuse('DeadlineExceeded', 'context deadline exceeded')
  return left.ok ? answer({ messages: [{}] }) : left
}

/** As large as the real ones. */
const MESSAGE_BYTES = 1024

const snapshot: StreamHandler<typeof methods.etcdSnapshot> = async (call, _, send, drained) => {
  const refusal = await ownEtcd(call, 'etcd snapshot')
  if (refusal) return refusal
  const { site, machine, over } = call
  const view = site.etcd.view(machine)
  if (!view.ok) return view
  const { dbSize: bytes, raftIndex: revision, raftTerm, storageVersion } = view.value.status
  for (const page of snapshotFile({ bytes, revision, term: Number(raftTerm), storageVersion })) {
    for (let at = 0; at < page.length; at += MESSAGE_BYTES) send({ bytes: page.subarray(at, at + MESSAGE_BYTES) })
    await drained()
    if (over.aborted) return refuse('Unavailable', 'error reading from server: EOF')
  }
  return answer(undefined)
}

const recover: UploadHandler<typeof methods.etcdRecover> = async ({ site, machine }, messages) => {
  const refusal = notOnWorker(machine, 'etcd recover')
  if (refusal) return refusal
  // Services that need the ephemeral partition run only once it is mounted.
  if (!machine.services.has('cri')) return refuse('FailedPrecondition', 'etcd service is not ready for recovery yet')
  const upload = await receiveSnapshot(messages)
  if (site.faults.of(machine).diskFull)
    return refuse('Unknown', 'error writing snapshot: write /var/lib/etcd.snapshot: no space left on device')
  keepUpload(machine, upload)
  return answer({ messages: [{}] })
}

const bootstrap: UnaryHandler<typeof methods.bootstrap> = ({ site, machine }, { recoverEtcd, recoverSkipHashCheck }) => {
  const begun = bootstrapEtcd(site, machine, recoverEtcd ? { skipsHashCheck: recoverSkipHashCheck } : undefined)
  return begun.ok ? answer({ messages: [{}] }) : begun
}

/** The version that a downgrade may be asked to: `3.5`, no older. */
const versionOfDowngrade = (text: string): Answer<string> => {
  const invalid = (why: string): Refusal => refuse('InvalidArgument', why)
  if (text === '') return invalid('version is required for etcd downgrade')
  const parts = text.split('.')
  if (parts.length !== 2) return invalid('version should be in MAJOR.MINOR format')
  const [major, minor] = parts.map(part => (/^\d+$/.test(part) ? Number(part) : Number.NaN)) as [number, number]
  if (Number.isNaN(major)) return invalid('major version should be a number')
  if (Number.isNaN(minor)) return invalid('minor version should be a number')
  if (major < 3 || (major === 3 && minor < 5)) return invalid('etcd downgrade is only supported to 3.5 and later versions')
  return answer(`${major}.${minor}`)
}

const clusterVersion = ({ site }: Call): string => {
  const versions = site.etcd.members().flatMap(m => (m.machine ? [releaseOf(versionOf(m.machine)).etcd] : []))
  const minors = versions.map(version => version.split('.').slice(0, 2).join('.'))
  return minors.toSorted()[0] ?? '3.6'
}

type Wish = 'validate' | 'enable' | 'cancel'

/** Answers with the cluster's version. */
const downgrade = async (
  call: Call,
  wish: Wish,
  text?: string,
): Promise<Answer<{ messages: { clusterDowngrade: { clusterVersion: string } }[] }>> => {
  const { etcd } = call.site
  const notHere = notOnWorker(call.machine, `etcd downgrade ${wish}`)
  if (notHere) return notHere
  const wanted = text === undefined ? undefined : versionOfDowngrade(text)
  if (wanted && !wanted.ok) return wanted
  const refusal = await ownEtcd(call, `etcd downgrade ${wish}`)
  if (refusal) return refusal
  const failed = (why: string): Refusal => refuse('Unknown', `failed to ${wish} etcd downgrade: etcdserver: ${why}`)
  if (!etcd.hasQuorum()) return failed('request timed out')
  const version = clusterVersion(call)
  if (wish === 'cancel') {
    if (etcd.downgradeTarget === undefined) return failed('no inflight downgrade job')
    etcd.downgradeTarget = undefined
  } else {
    const [major, minor] = version.split('.').map(Number) as [number, number]
    if (wanted?.value !== `${major}.${minor - 1}`) return failed('invalid downgrade target version')
    if (etcd.downgradeTarget !== undefined) return failed('cluster has a downgrade job in progress')
    if (wish === 'enable') etcd.downgradeTarget = wanted.value
  }
  return answer({ messages: [{ clusterDowngrade: { clusterVersion: version } }] })
}

/** Calls that change the etcd of the machines, or carry it away. */
export const etcdMaintenanceMethods = {
  bootstrap: unary(methods.bootstrap, bootstrap),
  etcdDefragment: unary(methods.etcdDefragment, defragment),
  etcdRemoveMemberByID: unary(methods.etcdRemoveMemberByID, removeMember),
  etcdLeaveCluster: unary(methods.etcdLeaveCluster, leave),
  etcdSnapshot: streaming(methods.etcdSnapshot, snapshot),
  etcdRecover: uploading(methods.etcdRecover, recover),
  etcdDowngradeValidate: unary(methods.etcdDowngradeValidate, (call, { version }) => downgrade(call, 'validate', version)),
  etcdDowngradeEnable: unary(methods.etcdDowngradeEnable, (call, { version }) => downgrade(call, 'enable', version)),
  etcdDowngradeCancel: unary(methods.etcdDowngradeCancel, call => downgrade(call, 'cancel')),
}
