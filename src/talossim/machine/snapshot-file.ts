import { createHash } from 'node:crypto'

// A bbolt database, as etcd keeps it: pages of 4 KiB, two of them with the same facts about the file, a list of the free ones, and a tree. Here
// the whole tree is one page with small buckets inside; all the rest of the size that was asked for is free pages.

const PAGE = 4096
const HEADER = 16
const BRANCH_OR_LEAF = { leaf: 0x02, meta: 0x04, freelist: 0x10 } as const
const MAGIC = 0xed0cdaed
const FORMAT = 2
/** A count that says: the real one is the first entry. */
const MANY = 0xffff
const META_BYTES = 64

type Entry = { readonly key: Buffer; readonly value: Buffer; readonly isBucket?: true }

const header = (page: Buffer, id: number, flags: number, count: number, overflow = 0): void => {
  page.writeBigUInt64LE(BigInt(id), 0)
  page.writeUInt16LE(flags, 8)
  page.writeUInt16LE(count, 10)
  page.writeUInt32LE(overflow, 12)
}

/** A leaf with its entries, which have to be in order of their keys. */
const leaf = (id: number, entries: readonly Entry[]): Buffer => {
  const heads = Buffer.alloc(HEADER + entries.length * HEADER)
  header(heads, id, BRANCH_OR_LEAF.leaf, entries.length)
  let at = heads.length
  for (const [index, { key, value, isBucket }] of entries.entries()) {
    const head = HEADER + index * HEADER
    heads.writeUInt32LE(isBucket ? 1 : 0, head)
    // Counted from the entry's own head.
    heads.writeUInt32LE(at - head, head + 4)
    heads.writeUInt32LE(key.length, head + 8)
    heads.writeUInt32LE(value.length, head + 12)
    at += key.length + value.length
  }
  return Buffer.concat([heads, ...entries.flatMap(({ key, value }) => [key, value])])
}

/** A bucket that lives inside its parent's page: a root of 0, and then a page of its own. */
const bucket = (name: string, entries: readonly Entry[]): Entry => ({
  key: Buffer.from(name),
  value: Buffer.concat([Buffer.alloc(HEADER), leaf(0, entries)]),
  isBucket: true,
})

const fnv64a = (bytes: Buffer): bigint => {
  let hash = 0xcbf29ce484222325n
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
  return hash
}

const metaPage = (id: number, pages: number): Buffer => {
  const page = Buffer.alloc(PAGE)
  header(page, id, BRANCH_OR_LEAF.meta, 0)
  const meta = page.subarray(HEADER, HEADER + META_BYTES)
  meta.writeUInt32LE(MAGIC, 0)
  meta.writeUInt32LE(FORMAT, 4)
  meta.writeUInt32LE(PAGE, 8)
  meta.writeBigUInt64LE(BigInt(ROOT_PAGE), 16)
  meta.writeBigUInt64LE(BigInt(FREELIST_PAGE), 32)
  meta.writeBigUInt64LE(BigInt(pages), 40)
  // The transaction; the newer of the two counts.
  meta.writeBigUInt64LE(BigInt(id + 1), 48)
  meta.writeBigUInt64LE(fnv64a(meta.subarray(0, 56)), 56)
  return page
}

const ROOT_PAGE = 2
const FREELIST_PAGE = 3

const freelist = (pages: number): Buffer => {
  // Its own length takes from what is free.
  let own = 1
  const freeCount = (): number => Math.max(0, pages - FREELIST_PAGE - own)
  while (HEADER + 8 * (freeCount() + 1) > own * PAGE) own++
  const count = freeCount()
  const bytes = Buffer.alloc(own * PAGE)
  header(bytes, FREELIST_PAGE, BRANCH_OR_LEAF.freelist, Math.min(count, MANY), own - 1)
  let at = HEADER
  if (count >= MANY) at = bytes.writeBigUInt64LE(BigInt(count), at)
  for (let id = FREELIST_PAGE + own; id < pages; id++) at = bytes.writeBigUInt64LE(BigInt(id), at)
  return bytes
}

const varint = (value: bigint): Buffer => {
  const bytes: number[] = []
  for (let left = value; ; left >>= 7n) {
    if (left < 0x80n) return Buffer.from([...bytes, Number(left)])
    bytes.push(Number(left & 0x7fn) | 0x80)
  }
}

const field = (number: number, content: Buffer): Buffer =>
  Buffer.concat([varint(BigInt(number * 8 + 2)), varint(BigInt(content.length)), content])
const count = (number: number, value: bigint): Buffer => Buffer.concat([varint(BigInt(number * 8)), varint(value)])

/** A key at a revision, as etcd's own store writes it. */
const revisionOf = (revision: bigint, key: string, value: string): Entry => {
  const id = Buffer.alloc(17)
  id.writeBigUInt64BE(revision, 0)
  id.write('_', 8)
  return {
    key: id,
    value: Buffer.concat([field(1, Buffer.from(key)), count(2, revision), count(3, revision), count(4, 1n), field(5, Buffer.from(value))]),
  }
}

const number64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}

export type SnapshotFacts = {
  /** Of the database; made a number of whole pages. */
  readonly bytes: number
  readonly revision: bigint
  readonly term: number
  /** `3.6.0`; etcd before 3.6 does not write it. */
  readonly storageVersion: string
}

const LEAST_PAGES = 5

/**
 * A snapshot as etcd sends it: a database that tools can open, followed by its SHA-256. It has hardly anything in it, whatever its size. Made as it is
 * read, so that its size costs no memory.
 */
export function* snapshotFile(facts: SnapshotFacts): Generator<Buffer> {
  const pages = Math.max(LEAST_PAGES, Math.ceil(facts.bytes / PAGE))
  const hash = createHash('sha256')
  const told = (bytes: Buffer): Buffer => {
    hash.update(bytes)
    return bytes
  }
  const root = Buffer.alloc(PAGE)
  leaf(ROOT_PAGE, [
    bucket('alarm', []),
    bucket('auth', []),
    bucket('cluster', []),
    bucket('key', [revisionOf(facts.revision, '/registry/namespaces/default', '{}')]),
    bucket('lease', []),
    bucket('members', []),
    bucket('meta', [
      { key: Buffer.from('consistent_index'), value: number64(facts.revision) },
      { key: Buffer.from('storageVersion'), value: Buffer.from(facts.storageVersion) },
      { key: Buffer.from('term'), value: number64(BigInt(facts.term)) },
    ]),
  ]).copy(root)
  yield told(metaPage(0, pages))
  yield told(metaPage(1, pages))
  yield told(root)
  const free = freelist(pages)
  for (let at = 0; at < free.length; at += PAGE) yield told(free.subarray(at, at + PAGE))
  const empty = Buffer.alloc(PAGE)
  for (let id = FREELIST_PAGE + free.length / PAGE; id < pages; id++) yield told(empty)
  yield hash.digest()
}
