import type { TalosOperation } from '../../api/talos-operation.ts'
import { endedWell, isAtRest, stateOf } from '../../core/operation-state.ts'
import { clockTime } from '../../core/summary.ts'
import type { KubeObject, Sight } from './api.ts'
import type { Said } from './changes.ts'
import { changeLines } from './changes.ts'
import type { Exit } from './exit-codes.ts'
import { glanceLines } from './glance.ts'
import { liveBlock } from './live-block.ts'
import { documentOf, printObject } from './output.ts'
import { OPERATION } from './resource-types.ts'
import type { Session } from './session.ts'
import { nextCommand } from './typed.ts'
import { operationOf } from './session.ts'

/**
 * Shows an operation until nothing more happens by itself, the time is up, or Ctrl-C. On a terminal one block is drawn again and again, else each change is a line.
 * Never ends the operation. `uid`: a namesake created later is another operation. `document`: the words go to standard error, and the operation as it
 * was seen last is the one document on standard output. `stream`: there each sight of it is a document on a line of its own.
 */
export const watchOperation = (
  session: Session,
  name: string,
  how: { timeoutMs?: number; uid?: string; document?: 'json' | 'yaml'; stream?: boolean } = {},
): Promise<Exit> => {
  const { api, terminal, namespace } = session
  const isForPeople = how.document === undefined && how.stream !== true
  const isLive = terminal.isLive && isForPeople
  const say = isForPeople ? terminal.out : terminal.err
  let last: KubeObject | undefined
  const begun = terminal.now()
  let seen: TalosOperation | undefined
  let trouble: { why: string; since: number } | undefined

  const said: Said = new Map()
  const block = liveBlock(terminal)
  const picture = () => {
    if (!seen) return [trouble ? `No answer yet: ${trouble.why}` : `Waiting for the first sight of operation ${name} …`]
    const now = terminal.now()
    const lines = glanceLines(session, seen, true)
    if (trouble)
      lines.push(
        '',
        terminal.colors.yellow(`Stale since ${clockTime(new Date(trouble.since).toISOString(), now)}, connecting again: ${trouble.why}`),
      )
    return lines
  }
  const stamp = () => new Date(terminal.now()).toISOString().slice(11, 19)
  const log = (lines: readonly string[]) => {
    for (const line of lines) say(`${stamp()} ${line}`)
  }

  return new Promise(resolve => {
    const stops: (() => void)[] = []
    let hasEnded = false
    const end = (exit: Exit, words: readonly string[] = []) => {
      hasEnded = true
      for (const stop of stops.splice(0)) stop()
      if (isLive) block.leave(picture())
      for (const line of words) terminal.err(line)
      const { document } = how
      resolve(document && last ? printObject(session, OPERATION, last, document).then(() => exit) : exit)
    }
    const look = nextCommand(session, `operation watch ${name} -n ${namespace}`)

    const notice = (sight: Sight) => {
      if (hasEnded) return
      if (sight.is === 'unseen') {
        const isNew = trouble === undefined
        trouble ??= { why: sight.why, since: terminal.now() }
        if (isNew && !isLive) log([`no sight of it, connecting again: ${sight.why}`])
      } else if (sight.is === 'gone' || (how.uid !== undefined && sight.object.metadata.uid !== how.uid)) {
        return end('stopped', [`Operation ${name} was deleted.`])
      } else {
        if (trouble && !isLive) log(['connected again'])
        trouble = undefined
        const operation = operationOf(sight.object)
        last = sight.object
        if (how.stream) terminal.out(JSON.stringify(documentOf(OPERATION, sight.object)))
        if (!isLive) log(changeLines(seen, operation, terminal.now(), said))
        seen = operation
        const exit = exitOf(operation)
        if (exit) {
          if (!isLive && exit !== 'ok') for (const line of glanceLines(session, operation)) say(line)
          return end(exit)
        }
      }
      if (isLive) block.draw(picture())
    }

    stops.push(terminal.onInterrupt(() => end('interrupted', [`Stopped watching. The operation goes on; look again with: ${look}`])))
    stops.push(
      terminal.every(1000, () => {
        if (how.timeoutMs !== undefined && terminal.now() - begun >= how.timeoutMs)
          return end('timedOut', [
            `The time is up. ${last && isStanding(last) ? 'The operation is paused' : 'The operation goes on'}; look again with: ${look}`,
          ])
        if (isLive) block.draw(picture())
      }),
    )
    const stopWatch = api.watch(OPERATION, namespace, name, notice)
    // The first sight may have been the last already.
    if (hasEnded) stopWatch()
    else stops.push(stopWatch)
  })
}

/** Paused by its operator: nothing happens until somebody resumes it. */
const isStanding = (object: KubeObject): boolean => stateOf(operationOf(object)) === 'paused'

/** How the command ends with an operation at rest; undefined while something will still happen by itself. */
export const exitOf = (operation: TalosOperation): Exit | undefined => {
  const state = stateOf(operation)
  if (!isAtRest(state)) return undefined
  if (state === 'ended') return endedWell(operation) ? 'ok' : 'stopped'
  return state === 'completed' ? 'ok' : state === 'refused' ? 'refused' : 'stopped'
}
