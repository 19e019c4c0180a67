const BLOCK = 512

export type TarEntry = {
  /** At most 100 characters; a folder's ends with a slash. */
  readonly path: string
  readonly mode: number
  readonly modifiedMs: number
  readonly content: Buffer
}

const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`

const headOf = ({ path, mode, modifiedMs, content }: TarEntry): Buffer => {
  const head = Buffer.alloc(BLOCK)
  head.write(path, 0)
  head.write(octal(mode, 7), 100)
  head.write(octal(0, 7), 108)
  head.write(octal(0, 7), 116)
  head.write(octal(content.length, 11), 124)
  head.write(octal(Math.floor(modifiedMs / 1000), 11), 136)
  // The sum is taken with blanks in its own place.
  head.write(' '.repeat(8), 148)
  head.write(path.endsWith('/') ? '5' : '0', 156)
  head.write('ustar\0' + '00', 257)
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${octal(sum, 6)} `, 148)
  return head
}

/** A tar archive in the format `ustar`. */
export const tarOf = (entries: readonly TarEntry[]): Buffer =>
  Buffer.concat([
    ...entries.flatMap(entry => [headOf(entry), entry.content, Buffer.alloc((BLOCK - (entry.content.length % BLOCK)) % BLOCK)]),
    Buffer.alloc(2 * BLOCK),
  ])
