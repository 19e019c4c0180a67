import { isFinished } from '../../api/phases.ts'
import { heldOperation, holderNamed } from '../../core/lock-claim.ts'
import { isStopped, openTargets } from '../../core/ledger.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { Checker } from '../checker.ts'

/** Who may take the cluster lock from whom. */
export const lockIsNotStolen: Checker = {
  name: 'lock-is-not-stolen',
  rule: 'spec 6',
  post: (scene, object) => {
    const { store } = scene.world
    /** A control plane that joins or leaves, or a cluster: what was deleted cannot give the lock back. Under its name another may be there, with another UID. */
    const isGone = (identity: string, uid: string): boolean => {
      const holder = holderNamed(identity)
      if (!holder) return false
      const object = store.get(holder.sort === 'machine' ? ICHOR.machines : ICHOR.clusters, holder.namespace, holder.name)
      return !object || (uid !== '' && object.metadata.uid !== uid)
    }
    scene.onLock((before, after, isByHand) => {
      if (isByHand || before.holder === '' || (before.holder === after.holder && before.uid === after.uid)) return
      if (!heldOperation(before.holder)) {
        if (!isGone(before.holder, before.uid)) object(`${after.holder || 'nobody'} has the lock that ${before.holder}, no operation, held`)
        return
      }
      const holder = scene.stage.operations().find(o => o.metadata.uid === before.uid)
      if (!holder || isFinished(holder.status.phase)) return
      if (openTargets(holder.status).length > 0)
        object(`${before.holder} has machines open, and the lock went to ${after.holder || 'nobody'}`)
      else if (after.holder !== '' && holder.spec.paused)
        object(`${before.holder} is paused by its operator, and ${after.holder} took its lock`)
      else if (after.holder !== '' && !isStopped(holder.status)) object(`${before.holder} runs, and ${after.holder} took its lock`)
    })
  },
}

/** What was done under a name outlives the operation: whoever has the lock next finds it on the Lease. */
export const deedsAreRemembered: Checker = {
  name: 'deeds-are-remembered',
  rule: 'I4',
  post: (scene, object) => {
    scene.onLock((before, after, isByHand) => {
      if (isByHand || before.holder === '' || (before.holder === after.holder && before.uid === after.uid)) return
      const holder = scene.stage.operations().find(o => o.metadata.uid === before.uid)
      if (holder?.spec.kind !== 'node' || !isFinished(holder.status.phase)) return
      if (!holder.status.machines?.some(({ phase }) => phase === 'Completed')) return
      if (!after.deeds.includes(`"name":"${holder.metadata.name}"`))
        object(`${after.holder || 'nobody'} has the lock, and what ${holder.metadata.name} did is not remembered`)
    })
  },
}
