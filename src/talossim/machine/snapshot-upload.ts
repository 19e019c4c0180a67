import { createHash } from 'node:crypto'
import type { Upload } from '../../world/etcd-membership.ts'

const TRAILER = 32
const SECTOR = 512

/** What a machine finds when it looks at an uploaded snapshot: a whole number of sectors and the SHA-256 of them. */
export const receiveSnapshot = async (chunks: AsyncIterable<{ readonly bytes: Uint8Array }>): Promise<Upload> => {
  const hash = createHash('sha256')
  let size = 0
  let tail: Buffer = Buffer.alloc(0)
  for await (const { bytes } of chunks) {
    size += bytes.length
    const all = Buffer.concat([tail, bytes])
    const keep = Math.min(TRAILER, all.length)
    hash.update(all.subarray(0, all.length - keep))
    tail = all.subarray(all.length - keep)
  }
  if (size === 0) return { problem: 'error verifying snapshot: invalid database' }
  if (size % SECTOR !== TRAILER)
    return { hashProblem: 'error recovering from the snapshot: snapshot missing hash but --skip-hash-check=false' }
  return hash.digest().equals(tail) ? {} : { hashProblem: 'error recovering from the snapshot: expected sha256 of the snapshot differs' }
}
