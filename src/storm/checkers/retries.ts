import type { Checker } from '../checker.ts'

/** Acts that begin a new try of an upgrade. */
const TRIES = ['install-began', 'upgrade-requested']

/** Who resumes a machine that fell back to its old version is given a new try, and not the old answer once more. */
export const retryTries: Checker = {
  name: 'a-retry-tries-anew',
  rule: 'spec 7',
  kinds: ['talos'],
  post: (scene, object) => {
    const retriedAt = new Map<string, number>()
    const failed = new Set<string>()
    scene.onOperation(({ before, after, isByHand }) => {
      if (!after || isByHand) return
      const { uid } = after.metadata
      if (after.status.lastRetry !== before?.status.lastRetry) retriedAt.set(uid, scene.now())
      const at = retriedAt.get(uid)
      if (after.status.failureReason !== 'BootedOldVersion') return
      for (const target of after.status.machines ?? []) {
        const was = before?.status.machines?.find(t => t.name === target.name)
        if (target.phase !== 'Failed' || was?.phase !== 'Running') continue
        const key = `${uid} ${target.name}`
        const isAgain = failed.has(key)
        failed.add(key)
        const machine = scene.machineOf(target)
        if (!isAgain || !machine || at === undefined || scene.editedAt() > at) continue
        const isTried = TRIES.some(what => scene.world.journal.of(what, machine.name).some(entry => entry.at >= at))
        if (!isTried) object(`${machine.name} failed once more, and nothing was tried since the retry`)
      }
    })
  },
}
