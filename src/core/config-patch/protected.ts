import type { Note, Place } from './note.ts'

/** What no patch may change: a cluster's secrets, which are rotated, and what a machine is. */
type Protected = { readonly kind: string; readonly path: readonly string[]; readonly note: Note }

const forbidden = (advice: string): Note => ({ code: 'forbidden', problem: 'a patch may not touch this', advice })
const rotatedCa = forbidden('certificate authorities are changed by rotating them')
const rotatedKey = forbidden('keys of the cluster are changed by rotating them')
const fixed = forbidden('it binds the machine to its cluster, and stays as long as the cluster does')
const role = forbidden('a machine becomes another type by a reset and a new configuration')

const main: readonly (readonly [string, Note])[] = [
  ['machine.type', role],
  ['machine.token', fixed],
  ['machine.ca', rotatedCa],
  ['machine.acceptedCAs', rotatedCa],
  ['cluster.id', fixed],
  ['cluster.secret', fixed],
  ['cluster.token', fixed],
  ['cluster.ca', rotatedCa],
  ['cluster.acceptedCAs', rotatedCa],
  ['cluster.aggregatorCA', rotatedCa],
  ['cluster.etcd.ca', rotatedCa],
  ['cluster.serviceAccount', rotatedKey],
  ['cluster.aescbcEncryptionSecret', rotatedKey],
  ['cluster.secretboxEncryptionSecret', rotatedKey],
]

/** The same in documents of their own, since Talos 1.14. */
const whole: readonly (readonly [string, Note])[] = [
  ['KubeAPIServerCAConfig', rotatedCa],
  ['KubeAggregatorCAConfig', rotatedCa],
  ['KubeServiceAccountConfig', rotatedKey],
  ['KubeEtcdEncryptionConfig', rotatedKey],
  ['DiscoveryIdentityConfig', fixed],
]

export const protectedPlaces: readonly Protected[] = [
  ...main.map(([path, note]) => ({ kind: '', path: path.split('.'), note })),
  ...whole.map(([kind, note]) => ({ kind, path: [], note })),
]

const leads = (path: readonly string[], to: readonly string[]): boolean => path.every((key, index) => key === to[index])

/**
 * Refuses a change at `path` where that is something protected, or lies within it; where it replaces all that is there (`isWhole`), also where
 * something protected lies within.
 */
export const refuseProtected = (kind: string, path: readonly string[], isWhole: boolean, place: Place, node: unknown): boolean => {
  const touched = protectedPlaces.filter(one => one.kind === kind && (leads(one.path, path) || (isWhole && leads(path, one.path))))
  for (const one of touched) one.path.reduce((at, key) => at.at(key), place).fault(one.note, node)
  return touched.length > 0
}
