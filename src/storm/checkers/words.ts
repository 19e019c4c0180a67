import { isFinished } from '../../api/phases.ts'
import { holderText, summarize } from '../../core/summary.ts'
import type { Checker } from '../checker.ts'

/** Longer than an operation may lie there before it is asked whether anybody works at all. */
const LATER_MS = 25_000

/** Something that is no word has come between the words. */
export const isGarbled = (said: string): boolean => /\b(undefined|NaN|null)\b|\[object/.test(said)

/** What people are told of an operation has to be whole sentences that agree with it, and a way on where it does not go on by itself. */
export const toldAsItIs: Checker = {
  name: 'told-as-it-is',
  rule: 'spec 7',
  post: (scene, object) =>
    scene.onOperation(({ after }) => {
      if (!after) return
      for (const now of [scene.now(), scene.now() + LATER_MS]) {
        const { state, headline, detail, commands, open, lock } = summarize(after, now)
        const said = [headline, detail, ...open.map(m => `${m.name} ${m.message}`), ...(lock ? [holderText(lock.holder)] : [])].join(' ')
        if (headline.length < 5) object(`${state}: ${headline}`)
        if (isGarbled(said)) object(`${state}: ${said}`)
        if (isFinished(after.status.phase) !== (commands.length === 0))
          object(`it is ${state}, and one can: ${commands.map(c => c.purpose).join(', ')}`)
        const running = after.status.machines?.filter(t => t.phase === 'Running').length ?? 0
        if (open.length !== running) object(`${running} machines are open, and ${open.length} are told`)
      }
    }),
}

/** Whoever asks for a plan only looks. */
export const PLANNER = 'a-person'

export const plansOnlyRead: Checker = {
  name: 'plans-only-read',
  rule: 'cases',
  post: (scene, object) =>
    scene.onCall(({ client, changes, port, name, target }) => {
      if (client === PLANNER && changes) object(`a plan calls ${port}.${name} on ${target}`)
    }),
}
