/** Randomness that a seed repeats. Nothing in the world may draw from anywhere else, or a failing run could not be shown again. */
export type Random = {
  /** In [0, 1). */
  readonly next: () => number
  /** A whole number in [lo, hi]. */
  readonly between: (lo: number, hi: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <T>(from: readonly T[]) => T
  /** Lower-case hexadecimal digits. */
  readonly hex: (digits: number) => string
  /** A version 4 UUID. */
  readonly uuid: () => string
}

const ALPHABET = '0123456789abcdef'

/** sfc32: small, fast, and good enough that neighbouring seeds have nothing in common after the first few draws. */
export const createRandom = (seed: number): Random => {
  let [a, b, c, d] = [seed | 0, Math.floor(seed / 2 ** 32) | 0, 0x9e3779b9 | 0, 1]
  const next = (): number => {
    const t = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return (t >>> 0) / 2 ** 32
  }
  for (let i = 0; i < 15; i++) next()

  const between = (lo: number, hi: number): number => Math.floor(lo + next() * (hi - lo + 1))
  const hex = (digits: number): string => Array.from({ length: digits }, () => ALPHABET[Math.floor(next() * 16)]).join('')
  return {
    next,
    between,
    chance: probability => next() < probability,
    pick: from => {
      const one = from[Math.floor(next() * from.length)]
      if (one === undefined) throw new Error('nothing to pick from')
      return one
    },
    hex,
    uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-${ALPHABET[8 + Math.floor(next() * 4)]}${hex(3)}-${hex(12)}`,
  }
}
