const BLOCK = 512

export type TarEntry = {
  /** At most 100 characters after the last slash that fits, and 155 before it; a folder's ends with a slash. */
  readonly path: string
  readonly mode: number
  readonly modifiedMs: number
  /** Of what follows; a link has nothing. */
  readonly size: number
  readonly content: Iterable<Buffer>
  readonly linkTo?: string
}

const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`

/** The name's two fields: what does not fit into the first is split at a slash. */
const split = (path: string): readonly [name: string, prefix: string] => {
  if (Buffer.byteLength(path) <= 100) return [path, '']
  const at = path.indexOf('/', path.length - 101)
  return [path.slice(at + 1), path.slice(0, at)]
}

const headOf = ({ path, mode, modifiedMs, size, linkTo }: TarEntry): Buffer => {
  const head = Buffer.alloc(BLOCK)
  const [name, prefix] = split(path)
  head.write(name, 0)
  head.write(octal(mode, 7), 100)
  head.write(octal(0, 7), 108)
  head.write(octal(0, 7), 116)
  head.write(octal(size, 11), 124)
  head.write(octal(Math.floor(modifiedMs / 1000), 11), 136)
  // The sum is taken with blanks in its own place.
  head.write(' '.repeat(8), 148)
  head.write(linkTo === undefined ? (path.endsWith('/') ? '5' : '0') : '2', 156)
  head.write(linkTo ?? '', 157)
  head.write('ustar\0' + '00', 257)
  head.write(prefix, 345)
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${octal(sum, 6)} `, 148)
  return head
}

/** A tar archive in the format `ustar`, piece by piece: large files cost no memory. */
export function* tarOf(entries: Iterable<TarEntry>): Generator<Buffer> {
  for (const entry of entries) {
    yield headOf(entry)
    yield* entry.content
    yield Buffer.alloc((BLOCK - (entry.size % BLOCK)) % BLOCK)
  }
  yield Buffer.alloc(2 * BLOCK)
}
