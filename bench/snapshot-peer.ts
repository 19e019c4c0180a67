// A child of snapshot-download.ts: a machine that does nothing but send an etcd snapshot, as fast as it is read, in messages as large as the real ones.
// What is sent is framed once, so that the reader is what takes the time. Arguments: size in MiB, where to put a talosconfig. Prints its address.
import { writeFileSync } from 'node:fs'
import { create, toBinary } from '@bufbuild/protobuf'
import { DataSchema } from '../proto/gen/common/common_pb.ts'
import { snapshotFile } from '../src/talossim/machine/snapshot-file.ts'
import { framed, startHttp2 } from '../test/bad-peers.ts'
import { newTalosCa, talosconfigFor } from '../test/scripted-talos.ts'

const [mebibytes = '', talosconfigPath = ''] = process.argv.slice(2)
const MESSAGE_BYTES = 1024
const PAGES_AT_ONCE = 64

const framedPage = (page: Buffer): Buffer =>
  Buffer.concat(
    Array.from({ length: Math.ceil(page.length / MESSAGE_BYTES) }, (_, i) => {
      const bytes = page.subarray(i * MESSAGE_BYTES, (i + 1) * MESSAGE_BYTES)
      return framed(toBinary(DataSchema, create(DataSchema, { bytes })))
    }),
  )

// Written pages, then empty ones, which are nearly all of it, then the checksum.
const empty = Buffer.alloc(4096)
const head: Buffer[] = []
let emptyPages = 0
let last: Buffer = Buffer.alloc(0)
for (const page of snapshotFile({ bytes: Number(mebibytes) * 1024 ** 2, revision: 1n, term: 1, storageVersion: '3.6.0' })) {
  if (!page.equals(empty)) {
    if (emptyPages === 0) head.push(framedPage(page))
    else last = framedPage(page)
  } else emptyPages += 1
}
const emptyPage = framedPage(empty)
const block = Buffer.concat(Array.from({ length: PAGES_AT_ONCE }, () => emptyPage))

function* parts(): Generator<Buffer> {
  yield* head
  let left = emptyPages
  for (; left >= PAGES_AT_ONCE; left -= PAGES_AT_ONCE) yield block
  for (; left > 0; left--) yield emptyPage
  yield last
}

const ca = await newTalosCa()
const peer = await startHttp2(ca, (stream, headers) => {
  if (headers[':path'] !== '/machine.MachineService/EtcdSnapshot')
    return stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12' }, { endStream: true })
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  const rest = parts()
  const more = (): void => {
    for (let part = rest.next(); !part.done; part = rest.next()) if (!stream.write(part.value)) return
    stream.end()
  }
  stream.on('drain', more)
  return more()
})
writeFileSync(talosconfigPath, await talosconfigFor(ca, { endpoints: [peer.address] }))
process.stdout.write(`${peer.address}\n`)
