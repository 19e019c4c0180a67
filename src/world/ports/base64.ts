/** Secrets carry bytes as base64, which a pure room has to read by itself. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

export const decodeBase64 = (text: string): Uint8Array => {
  const clean = text.replace(/[=\s]/g, '')
  const bytes = new Uint8Array(Math.floor((clean.length * 3) / 4))
  let [held, bits, at] = [0, 0, 0]
  for (const letter of clean) {
    held = ((held << 6) | LETTERS.indexOf(letter)) & 0xffffff
    bits += 6
    if (bits < 8) continue
    bits -= 8
    bytes[at++] = (held >> bits) & 0xff
  }
  return bytes
}

export const encodeBase64 = (bytes: Uint8Array): string => {
  let out = ''
  for (let i = 0; i < bytes.length; i += 3) {
    const [a = 0, b, c] = [bytes[i], bytes[i + 1], bytes[i + 2]]
    const word = (a << 16) | ((b ?? 0) << 8) | (c ?? 0)
    out += `${LETTERS[word >> 18]}${LETTERS[(word >> 12) & 63]}${b === undefined ? '=' : LETTERS[(word >> 6) & 63]}${c === undefined ? '=' : LETTERS[word & 63]}`
  }
  return out
}

/** For the world's own texts, which are ASCII. */
export const asciiBytes = (text: string): Uint8Array => Uint8Array.from(text, letter => letter.charCodeAt(0))
export const asciiText = (bytes: Uint8Array): string => Array.from(bytes, byte => String.fromCharCode(byte)).join('')
