/** SHA-256 of a text in UTF-8, in lower-case hexadecimal digits (FIPS 180-4). The pure rooms have no cryptography of Node. */
export const sha256 = (text: string): string => {
  const bytes = utf8(text)
  const blocks = Math.ceil((bytes.length + 9) / 64)
  const padded = new Uint8Array(blocks * 64)
  padded.set(bytes)
  padded[bytes.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor((bytes.length * 8) / 2 ** 32))
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0)
  const state = Int32Array.from(START)
  const words = new Int32Array(64)
  for (let block = 0; block < padded.length; block += 64) digest(state, words, view, block)
  return [...state].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Takes one block into `state`; `w` is room to work in. Whole configurations are hashed at every look, so it is written for speed. */
const digest = (state: Int32Array, w: Int32Array, view: DataView, block: number): void => {
  const at = (i: number): number => w[i] as number
  for (let i = 0; i < 16; i++) w[i] = view.getInt32(block + i * 4)
  for (let i = 16; i < 64; i++) {
    const [a, b] = [at(i - 15), at(i - 2)]
    const s0 = turned(a, 7) ^ turned(a, 18) ^ (a >>> 3)
    const s1 = turned(b, 17) ^ turned(b, 19) ^ (b >>> 10)
    w[i] = at(i - 16) + s0 + at(i - 7) + s1
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let i = 0; i < 64; i++) {
    const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUND[i] as number) + at(i)) | 0
    const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = (state[i] as number) + word
}

const turned = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

const utf8 = (text: string): Uint8Array => {
  const bytes: number[] = []
  for (const letter of text) {
    const code = Number(letter.codePointAt(0))
    if (code < 0x80) bytes.push(code)
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63))
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63))
    else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63))
  }
  return Uint8Array.from(bytes)
}

/** The first so many primes. */
const primes = (count: number): readonly number[] => {
  const found: number[] = []
  for (let n = 2; found.length < count; n++) if (found.every(prime => n % prime !== 0)) found.push(n)
  return found
}
/** The first 32 bits of what is behind the point. */
const fraction = (value: number): number => Math.floor((value - Math.floor(value)) * 2 ** 32)
const START = Int32Array.from(primes(8).map(prime => fraction(Math.sqrt(prime)) | 0))
const ROUND = Int32Array.from(primes(64).map(prime => fraction(Math.cbrt(prime)) | 0))
