import type { TalosOperation } from '../../api/talos-operation.ts'
import { isAtRest, stateOf } from '../../core/operation-state.ts'
import { clockTime } from '../../core/summary.ts'
import type { Sight } from './api.ts'
import type { Said } from './changes.ts'
import { changeLines } from './changes.ts'
import type { Exit } from './exit-codes.ts'
import { glanceLines } from './glance.ts'
import { liveBlock } from './live-block.ts'
import { OPERATION } from './resource-types.ts'
import type { Session } from './session.ts'
import { operationOf } from './session.ts'

/**
 * Shows an operation until nothing more happens by itself, the time is up, or Ctrl-C. On a terminal one block is drawn again and again, else each change is a line.
 * Never ends the operation. `uid`: a namesake created later is another operation.
 */
export const watchOperation = (session: Session, name: string, how: { timeoutMs?: number; uid?: string } = {}): Promise<Exit> => {
  const { api, terminal, namespace, outside } = session
  const begun = terminal.now()
  let seen: TalosOperation | undefined
  let trouble: { why: string; since: number } | undefined

  const said: Said = new Map()
  const block = liveBlock(terminal)
  const picture = () => {
    if (!seen) return [trouble ? `No answer yet: ${trouble.why}` : `Waiting for the first sight of operation ${name} …`]
    const now = terminal.now()
    const lines = glanceLines(seen, now, { colors: terminal.colors, calledAs: outside.calledAs, live: { width: terminal.width() } })
    if (trouble)
      lines.push(
        '',
        terminal.colors.yellow(`Stale since ${clockTime(new Date(trouble.since).toISOString(), now)}, connecting again: ${trouble.why}`),
      )
    return lines
  }
  const stamp = () => new Date(terminal.now()).toISOString().slice(11, 19)
  const log = (lines: readonly string[]) => {
    for (const line of lines) terminal.out(`${stamp()} ${line}`)
  }

  return new Promise(resolve => {
    const stops: (() => void)[] = []
    let hasEnded = false
    const end = (exit: Exit, words: readonly string[] = []) => {
      hasEnded = true
      for (const stop of stops.splice(0)) stop()
      if (terminal.isLive) block.leave(picture())
      for (const line of words) terminal.err(line)
      resolve(exit)
    }
    const look = `${outside.calledAs} operation watch ${name} -n ${namespace}`

    const notice = (sight: Sight) => {
      if (hasEnded) return
      if (sight.is === 'unseen') {
        const isNew = trouble === undefined
        trouble ??= { why: sight.why, since: terminal.now() }
        if (isNew && !terminal.isLive) log([`no sight of it, connecting again: ${sight.why}`])
      } else if (sight.is === 'gone' || (how.uid !== undefined && sight.object.metadata.uid !== how.uid)) {
        return end('stopped', [`Operation ${name} was deleted.`])
      } else {
        if (trouble && !terminal.isLive) log(['connected again'])
        trouble = undefined
        const operation = operationOf(sight.object)
        if (!terminal.isLive) log(changeLines(seen, operation, terminal.now(), said))
        seen = operation
        const exit = exitOf(operation)
        if (exit) {
          if (!terminal.isLive && exit !== 'ok')
            for (const line of glanceLines(operation, terminal.now(), {
              colors: terminal.colors,
              calledAs: outside.calledAs,
            }))
              terminal.out(line)
          return end(exit)
        }
      }
      if (terminal.isLive) block.draw(picture())
    }

    stops.push(terminal.onInterrupt(() => end('interrupted', [`Stopped watching. The operation goes on; look again with: ${look}`])))
    stops.push(
      terminal.every(1000, () => {
        if (how.timeoutMs !== undefined && terminal.now() - begun >= how.timeoutMs)
          return end('timedOut', [`The time is up. The operation goes on; look again with: ${look}`])
        if (terminal.isLive) block.draw(picture())
      }),
    )
    const stopWatch = api.watch(OPERATION, namespace, name, notice)
    // The first sight may have been the last already.
    if (hasEnded) stopWatch()
    else stops.push(stopWatch)
  })
}

/** How the command ends with an operation at rest; undefined while something will still happen by itself. */
export const exitOf = (operation: TalosOperation): Exit | undefined => {
  const state = stateOf(operation)
  if (!isAtRest(state)) return undefined
  return state === 'completed' ? 'ok' : state === 'refused' ? 'refused' : 'stopped'
}
