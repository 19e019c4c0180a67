/** A number in [0, 1) that the same words always give: what a machine measures has to look drawn, and draw nothing from the world's randomness. */
export const share = (...words: readonly (string | number)[]): number => {
  let hash = 0x811c9dc5
  for (const byte of words.join('\0')) hash = Math.imul(hash ^ (byte.codePointAt(0) ?? 0), 0x01000193)
  // Neighbouring words differ in the low bits only: mixed upwards.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** So many lower-case hexadecimal digits, the same for the same words. */
export const hexOf = (digits: number, ...words: readonly (string | number)[]): string => {
  let text = ''
  for (let at = 0; text.length < digits; at++)
    text += Math.floor(share(at, ...words) * 2 ** 32)
      .toString(16)
      .padStart(8, '0')
  return text.slice(0, digits)
}

const MINUTE_MS = 60_000

/** Something measured that goes up and down a little: a value in [0.9, 1.1] for a moment, without jumps. */
export const swing = (nowMs: number, ...words: readonly (string | number)[]): number => {
  const phase = share(...words)
  return 1 + 0.1 * Math.sin((nowMs / (MINUTE_MS * (2 + 3 * phase)) + phase) * 2 * Math.PI)
}
