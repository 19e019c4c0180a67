import { inflateRawSync } from 'node:zlib'

const endOfDirectory = 0x06054b50
const directoryEntry = 0x02014b50

/** One file out of a ZIP archive. Stored and deflated entries; no ZIP64, no encryption. */
export function extractFromZip(archive: Buffer, name: string): Buffer {
  let end = archive.length - 22
  while (end >= 0 && archive.readUInt32LE(end) !== endOfDirectory) end--
  if (end < 0) throw new Error('not a ZIP archive')

  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    if (archive.readUInt32LE(at) !== directoryEntry) throw new Error('the ZIP archive is damaged')
    const nameLength = archive.readUInt16LE(at + 28)
    if (archive.toString('utf8', at + 46, at + 46 + nameLength) === name) {
      const method = archive.readUInt16LE(at + 10)
      const size = archive.readUInt32LE(at + 20)
      const header = archive.readUInt32LE(at + 42)
      const start = header + 30 + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28)
      const content = archive.subarray(start, start + size)
      if (method === 0) return content
      if (method === 8) return inflateRawSync(content)
      throw new Error(`${name} is packed in a way (${method}) that is not understood`)
    }
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32)
  }
  throw new Error(`${name} is not in the ZIP archive`)
}
