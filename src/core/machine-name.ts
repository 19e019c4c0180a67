/**
 * The object name of a machine: its host name made fit for an object name, and five characters of a hash of its identity. The hash tells apart two
 * hosts whose names differ by case only, and lets a machine keep its name when its host name changes.
 */
export const machineName = (hostname: string, identity: string): string => {
  const stem = hostname
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 57)
    .replace(/-+$/, '')
  return `${stem || 'machine'}-${shortHash(`${hostname}\n${identity}`)}`
}

/** FNV-1a, 32 bits, as five characters. It has to tell namesakes apart, not to withstand anybody. */
const shortHash = (text: string): string => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash.toString(36).padStart(5, '0').slice(-5)
}
