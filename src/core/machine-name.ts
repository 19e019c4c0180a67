import type { TalosMachine } from '../api/talos-machine.ts'

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

type Called = Partial<Pick<TalosMachine['status'], 'hostname' | 'nodeName'>>

/** The machines whose host or Node is called so. Host names know no case, and Kubernetes writes them small; what is written the same comes first. */
export const hostsCalled = <M>(machines: readonly M[], statusOf: (machine: M) => Called, text: string): readonly M[] => {
  const those = (fits: (name: string | undefined) => boolean): readonly M[] =>
    machines.filter(machine => {
      const { hostname, nodeName } = statusOf(machine)
      return fits(hostname) || fits(nodeName)
    })
  const exact = those(name => name === text)
  return exact.length > 0 ? exact : those(name => name?.toLowerCase() === text.toLowerCase())
}
