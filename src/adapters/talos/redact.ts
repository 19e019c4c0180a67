/** A bound on what a peer's words may take in a message. */
const longestText = 500
/** How much of them is looked at. */
const longestSearched = 4_096

/**
 * One line of what a peer said, bounded and without what may be a secret: PEM blocks, passwords in URLs, values of fields that are named like
 * secrets, and long base64.
 */
export function redacted(text: string, longest = longestText): string {
  const clean = bounded(text)
    .replaceAll(/-----BEGIN [\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g, '[redacted]')
    .replaceAll(/(:\/\/)[^\s/@]*:[^\s/@]*@/g, '$1[redacted]@')
    .replaceAll(
      /\b([\w.-]{0,100}(?:token|secret|password|passwd|authorization|private[_-]?key))(["']?\s*[:=]\s*)(?:Basic\s+|Bearer\s+)?["']?[^\s"',;]+/gi,
      '$1$2[redacted]',
    )
    .replaceAll(/[A-Za-z0-9+/]{40,}={0,2}/g, run => (looksRandom(run) ? '[redacted]' : run))
    .replaceAll(/\s+/g, ' ')
    .trim()
  return clean.length > longest ? `${clean.slice(0, longest - 1)}…` : clean
}

/**
 * The search for secrets takes the square of a text's length at worst, and a peer may send megabytes. Where it is cut the last word goes, too: the
 * rest of a secret would not look like one.
 */
function bounded(text: string): string {
  if (text.length <= longestSearched) return text
  const cut = text.slice(0, longestSearched)
  const end = Math.max(...[' ', '\n', ',', '"', "'", ';'].map(sign => cut.lastIndexOf(sign)))
  return end === -1 ? '[redacted]' : cut.slice(0, end)
}

/** Image paths, digests and schematic ids are long runs of these letters too, but only in lower case. */
function looksRandom(run: string): boolean {
  return /[A-Z]/.test(run) && /[a-z]/.test(run) && /\d/.test(run)
}
