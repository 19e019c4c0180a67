import { createHash } from 'node:crypto'
import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { failed, type Fault, ok, type Result } from '../../ports/fault.ts'
import type { LongCall, SnapshotDigest, SnapshotSink } from '../../ports/talos.ts'
import type { Calls } from './calls.ts'
import { redacted } from './redact.ts'

const deadlineMs = 60 * 60_000
/** Machines send messages of 1 KiB, and a sink is not to be called a million times. */
const blockBytes = 256 * 1024
const toldEachBytes = 64 * 1024 ** 2
/** etcd writes pages of the database, and after them their SHA-256. */
const checksumBytes = 32
const pageBytes = 512

/** As `EtcdSnapshots.snapshot`. */
export async function downloadSnapshot(
  calls: Calls,
  address: string,
  sink: SnapshotSink,
  { cancellation, progress }: LongCall,
): Promise<Result<SnapshotDigest>> {
  const check = snapshotCheck()
  const block = Buffer.allocUnsafe(blockBytes)
  let used = 0
  let stopped: Fault | undefined

  const pass = async (bytes: Uint8Array): Promise<void | 'stop'> => {
    const toldBefore = Math.floor(check.bytes() / toldEachBytes)
    check.take(bytes)
    if (Math.floor(check.bytes() / toldEachBytes) > toldBefore)
      progress(`downloading the etcd snapshot: ${Math.floor(check.bytes() / 1024 ** 2)} MiB so far`)
    const taken = await sink(bytes).catch((error: unknown) =>
      failed('unknown', `the snapshot could not be put away: ${redacted(String(error))}`),
    )
    if (taken.ok) return undefined
    stopped = taken.fault
    return 'stop'
  }
  const passBlock = async (rest: Uint8Array): Promise<void | 'stop'> => {
    if (used > 0 && (await pass(block.subarray(0, used))) === 'stop') return 'stop'
    used = 0
    for (; rest.length > blockBytes; rest = rest.subarray(blockBytes)) {
      if ((await pass(rest.subarray(0, blockBytes))) === 'stop') return 'stop'
    }
    block.set(rest)
    used = rest.length
    return undefined
  }

  const ended = await calls.stream(
    address,
    MachineService.method.etcdSnapshot,
    {},
    ({ bytes, metadata }) => {
      if (metadata?.error) {
        stopped = { kind: 'unknown', message: `${address}: MachineService.EtcdSnapshot: ${redacted(metadata.error)}` }
        return 'stop'
      }
      if (used + bytes.length > blockBytes) return passBlock(bytes)
      block.set(bytes, used)
      used += bytes.length
      return undefined
    },
    { deadlineMs, cancellation },
  )
  if (stopped) return { ok: false, fault: stopped }
  if (!ended.ok) return ended
  await passBlock(new Uint8Array())
  if (stopped) return { ok: false, fault: stopped }
  const digest = check.end()
  return digest.ok ? digest : failed(digest.fault.kind, `${address}: MachineService.EtcdSnapshot: ${digest.fault.message}`)
}

/** Follows a snapshot as it passes: how much it is, its digest, and whether the checksum at its end is the one of what comes before. */
function snapshotCheck() {
  const hash = createHash('sha256')
  /** The last bytes so far: they may be the checksum. */
  let end = Buffer.alloc(0)
  let size = 0
  return {
    bytes: () => size,
    take: (bytes: Uint8Array) => {
      size += bytes.length
      if (bytes.length >= checksumBytes) {
        hash.update(end)
        hash.update(bytes.subarray(0, -checksumBytes))
        end = Buffer.from(bytes.subarray(-checksumBytes))
        return
      }
      const both = Buffer.concat([end, bytes])
      hash.update(both.subarray(0, -checksumBytes))
      end = both.subarray(-checksumBytes)
    },
    end: (): Result<SnapshotDigest> => {
      if (size % pageBytes !== checksumBytes) {
        return failed('unreachable', `the snapshot came only in part: ${size} bytes are no whole pages and a checksum`)
      }
      const sum = hash.copy().digest()
      if (!sum.equals(end)) return failed('unknown', `the snapshot of ${size} bytes is damaged: its checksum is not the one at its end`)
      return ok({ bytes: size, sha256: hash.update(end).digest('hex') })
    },
  }
}
