import type { TalosMachine } from '../api/talos-machine.ts'
import type { Lease } from '../ports/home.ts'
import { ms } from './ledger.ts'
import { allDeedsOn } from './repeated.ts'

/**
 * The machines without those that a reset has taken out of the cluster: it was seen wiped, its member is gone from etcd, and its Node is deleted. Its
 * TalosMachine stays until somebody deletes it, as long as Talos' own discovery goes on telling of it; a machine that is only away counts, this one
 * would be waited for in vain. One that was seen since is one of the cluster again.
 */
export const withoutLeft = (machines: readonly TalosMachine[], lock: Lease | undefined): readonly TalosMachine[] => {
  const leftAt = new Map(allDeedsOn(lock).flatMap(({ left, at }) => (left === undefined ? [] : [[left, ms(at)] as const])))
  return machines.filter(({ metadata, status }) => {
    const at = leftAt.get(metadata.uid)
    return at === undefined || ms(status.lastSeen) > at
  })
}
