import { ANNOTATION } from '../../api/names.ts'
import { PHASES } from '../../api/phases.ts'
import type { OperationStatus, Target } from '../../api/talos-operation.ts'
import { openTargets } from '../../core/ledger.ts'
import { change } from '../../world/objects.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'
import { NAMESPACE } from '../story.ts'

/** What hands write into the status of an operation, which nobody but Ichor should write. */

/** A status is a text of a server to those who edit it: they write what they like. */
type Text = Readonly<Record<string, unknown>>
type Edit = (target: Target, others: readonly Target[]) => Text

const DAY_MS = 86_400_000

/** Nobody could have come to it. What is undefined is taken out. */
const TARGET: Readonly<Record<string, Edit>> = {
  'a phase that does not exist': () => ({ phase: 'Melting' }),
  'another role': ({ role }) => ({ role: role === 'worker' ? 'controlplane' : 'worker' }),
  'the node of another': ({ goal, name }, others) => {
    const node = others.find(t => t.name !== name)?.node
    return { node, ...(goal?.['node'] === undefined ? {} : { goal: { ...goal, node } }) }
  },
  'no boot id': ({ before }) => ({ before: { ...before, bootID: undefined } }),
  'no goal': () => ({ goal: undefined }),
  'a step that does not exist': () => ({ step: 'Melt' }),
  'an end that does not exist': () => ({ committed: 'Melt' }),
  'an end without a step': ({ step }) => ({ committed: step, step: undefined }),
}
const NO_STAGE = 'a stage that does not exist'
const WHOLE: Readonly<Record<string, Text>> = {
  'a phase of the whole that does not exist': { phase: 'Melting' },
  'the end in the middle': { phase: 'Completed' },
  [NO_STAGE]: { stage: 'melting' },
}
/** Found out anew, whatever is written. */
const TIMES = 'times to come'
const HISTORY = 'no history and no progress'

const WHATS = [...Object.keys(TARGET), ...Object.keys(WHOLE), TIMES, TIMES, HISTORY]

export const status: Trouble<Stage> = {
  family: 'status',
  harmless: false,
  draw: ({ random, calls }) => ({
    family: 'status',
    what: random.pick(WHATS),
    // In the middle of something, mostly.
    when: { call: random.between(1, calls) },
    forMs: random.between(5000, 120_000),
  }),
  strike: (stage, { what }) => {
    const { world } = stage.story
    const [draft] = stage.plan.operations
    const before = stage.operations().find(o => o.metadata.name === draft?.name)
    const open = before?.status.machines?.find(t => t.phase === 'Running')
    // Nobody edits what was asked to go on this very moment.
    if (!draft || !before || !open || before.metadata.annotations[ANNOTATION.retry] !== undefined) return undefined
    // One hand at a time: what it writes back has to be what Ichor wrote.
    if (!((before.status.phase ?? 'Pending') in PHASES)) return undefined
    const write = (edit: (now: OperationStatus) => object): void =>
      stage.byHand(undefined, () => {
        change(world.store, ICHOR.operations, NAMESPACE, draft.name, now =>
          now.metadata.uid === before.metadata.uid ? { ...now, status: edit((now['status'] ?? {}) as OperationStatus) } : now,
        )
      })
    const writeTarget = (fields: Text): void =>
      write(now => ({ ...now, machines: now.machines?.map(t => (t.name === open.name ? { ...t, ...fields } : t)) }))
    stage.note(`a hand writes ${what} into the status of ${draft.name}, for ${open.hostname}`)

    const later = new Date(world.schedule.now() + DAY_MS).toISOString()
    if (what === TIMES) {
      writeTarget({ stepStartedAt: later, actedAt: later, firstActedAt: later, stableSince: later, startedAt: later, retryAt: later })
      return write(now => ({ ...now, startedAt: later, ...(now.waiting ? { waiting: { ...now.waiting, since: later } } : {}) }))
    }
    if (what === HISTORY) return write(now => ({ ...now, history: undefined, progress: undefined }))
    const whole = WHOLE[what]
    const fields = whole ?? TARGET[what]?.(open, before.status.machines ?? [])
    if (!fields) throw new Error(`nobody writes ${what} into a status`)
    if (whole) write(now => ({ ...now, ...whole }))
    else writeTarget(fields)
    // Whoever reads what became of it writes back what was there, where what he wrote still stands, and resumes.
    return () => {
      // Nobody knows any more what was there: who gets rid of it looks after its machines himself.
      if (what === NO_STAGE && stage.random.chance(0.4)) return stage.ask(draft.name, { cancelled: true })
      const pick = (of: object): Text => Object.fromEntries(Object.keys(fields).map(key => [key, (of as Text)[key]]))
      const isStill = (of: object): boolean => JSON.stringify(pick(of)) === JSON.stringify(fields)
      const back = <T extends object>(now: T, was: object): T => (isStill(now) ? { ...now, ...pick(was) } : now)
      if (whole) write(now => (!('phase' in whole) || openTargets(now).length > 0 ? back(now, before.status) : now))
      else write(now => ({ ...now, machines: now.machines?.map(t => (t.name === open.name ? back(t, open) : t)) }))
      if (stage.story.operation(draft.name)?.metadata.annotations[ANNOTATION.retry] === undefined)
        stage.ask(draft.name, { retry: 'by hand' })
    }
  },
}

/** What Ichor says of a status that a hand has written; of no other fault. */
export const isOfAHand = (error: string): boolean =>
  /^internal error: Error: (there is no phase |status\.machines, |status says |kind \w+ has no stage )/.test(error)
