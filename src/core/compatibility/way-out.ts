import { finalOf, parseVersion } from '../versions.ts'
import type { CompatibilityTable } from './table.ts'
import { compatibilityTable, inMinors, latestPatch } from './table.ts'

/**
 * What would be legal where Talos `talos` does not take Kubernetes `kubernetes`, as a sentence: the release of Talos that is nearest to the one that
 * was asked for and takes it; and for one that is too old, what it has to be brought to. Empty where the table knows none.
 */
export const wayOut = (talos: string, kubernetes: string, table: CompatibilityTable = compatibilityTable): string => {
  const [wanted, runs] = [parseVersion(talos), parseVersion(kubernetes)]
  if (!wanted || !runs) return ''
  const distance = (minor: string): number => Math.abs(Number(minor.split('.')[1]) - wanted.minor)
  const [nearest] = table.talosMinors
    .filter(m => inMinors(runs, m.kubernetes) && latestPatch(m.minor, table) !== undefined)
    .toSorted((a, b) => distance(a.minor) - distance(b.minor))
  const first = table.talosMinors.find(m => m.minor === `${wanted.major}.${wanted.minor}`)?.kubernetes.from
  const isOld = first !== undefined && runs.minor < Number(first.split('.')[1])
  return [
    nearest && ` The nearest Talos that takes Kubernetes ${runs.major}.${runs.minor} is ${latestPatch(nearest.minor, table)}.`,
    isOld && ` For v${finalOf(wanted)} bring Kubernetes to ${first} first.`,
  ]
    .filter(Boolean)
    .join('')
}
