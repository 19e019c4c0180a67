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

/** The kinds that say what they did, and for how long that counts; the last minutes of it may be told by another's clock. */
const REMEMBERED = new Set(['node', 'config'])
const REMEMBERED_MS = 50 * 60_000

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
    // A hand that took what stood there off the Lease, or took a finalizer away, or wrote into status, may have taken that with it.
    let isSpoilt = false
    const ended = new Map<string, number>()
    scene.onLock((before, after, isByHand) => {
      isSpoilt ||= isByHand && before.deeds !== '' && before.deeds !== after.deeds
    })
    scene.onOperation(({ before, after, isByHand }) => {
      const uid = (after ?? before)?.metadata.uid ?? ''
      if (after && isFinished(after.status.phase) && !ended.has(uid)) ended.set(uid, scene.now())
      if (after && before && isByHand && after.metadata.finalizers.length < before.metadata.finalizers.length) isSpoilt = true
      if (after || !before || isSpoilt || !REMEMBERED.has(before.spec.kind)) return
      if (scene.stage.plan.strikes.some(({ family }) => family === 'status')) return
      if (!before.status.machines?.some(({ phase }) => phase === 'Completed')) return
      if (scene.now() - (ended.get(uid) ?? scene.now()) >= REMEMBERED_MS) return
      if (!scene.lock().deeds.includes(`"name":"${before.metadata.name}"`))
        object(`${before.metadata.name} is gone, and what it did is not remembered`)
    })
  },
}
