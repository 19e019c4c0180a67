import { isFinished } from '../../api/phases.ts'
import { isStopped, openTargets } from '../../core/ledger.ts'
import type { Checker } from '../checker.ts'
import { onSignOfLife } from '../leading.ts'
import { NAMESPACE } from '../story.ts'

/** The longest pause after failures, and a pass in which every call takes its whole deadline. */
const LONGEST_MS = 180_000

/** Nothing waits for an event, which may be in the past: what is in the middle of something is looked at again by time. */
export const waitsForNoEvent: Checker = {
  name: 'waits-for-no-event',
  rule: 'I29',
  post: (scene, object) => {
    // Old lists come from nowhere that could be looked at, and whoever gets no answer about the operation asks no further.
    const isListed = !scene.stage.plan.strikes.some(s => s.family === 'stale' || s.what === 'home.operation')
    const readAt = new Map<string, number>()
    let lastRead = ''
    scene.onCall(({ client, port, name, target }) => {
      if (port !== 'home' || client !== scene.leader()) return
      // A pass reads the operation and then its cluster; whoever only asks whether a holder is still there does not.
      if (name === 'operation') lastRead = target
      if (isListed ? name === 'clusters' && target === NAMESPACE : name === 'operation') readAt.set(lastRead, scene.now())
    })
    onSignOfLife(scene, (_, leadsSince) => {
      const now = scene.now()
      for (const { metadata, status } of scene.stage.operations()) {
        if (openTargets(status).length === 0 || isStopped(status) || isFinished(status.phase)) continue
        const since = Math.max(readAt.get(`${NAMESPACE}/${metadata.name}`) ?? 0, leadsSince)
        if (now - since > LONGEST_MS) object(`${metadata.name} is in the middle of something, and was not looked at for ${now - since} ms`)
      }
    })
  },
}
