import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Exit } from './exit-codes.ts'
import { type LogLine, operationLog, tellTheSame } from './operation-log.ts'
import { EVENT, OPERATION } from './resource-types.ts'
import { mustGet, operationOf, type Session } from './session.ts'
import { nextCommand } from './typed.ts'
import { exitOf } from './watch-operation.ts'

/** How often Events are looked for while an operation changes. */
const LOOK_MS = 1_000

/** Writes what happened to an operation so far. */
export const showLog = async (session: Session, name: string): Promise<void> => {
  const operation = operationOf(await mustGet(session, OPERATION, name))
  const write = writer(session)
  write(await linesOf(session, operation))
  if (write.written() === 0) session.terminal.err(`Nothing has happened to operation ${name} yet.`)
}

/** The same, and what happens from then on, until nothing more happens by itself. Ctrl-C stops following, never the operation. */
export const followLog = async (session: Session, name: string): Promise<Exit> => {
  const { api, terminal, namespace } = session
  const { uid } = operationOf(await mustGet(session, OPERATION, name)).metadata
  const write = writer(session)
  return new Promise((resolve, reject) => {
    let seen: TalosOperation | undefined
    let isNew = false
    let isLooking = false
    let isLost = false
    let end: Exit | undefined
    const stops: (() => void)[] = []
    const leave = (exit: Exit, words: readonly string[] = []): void => {
      for (const stop of stops.splice(0)) stop()
      for (const word of words) terminal.err(word)
      resolve(exit)
    }
    const look = async (): Promise<void> => {
      if (!seen || !isNew || isLooking) return
      isNew = false
      isLooking = true
      write(await linesOf(session, seen))
      isLooking = false
      if (end !== undefined && !isNew) leave(end)
    }
    const lookSoon = (): void => void look().catch(reject)
    stops.push(
      terminal.onInterrupt(() =>
        leave('interrupted', [
          `Stopped following. The operation goes on; look again with: ${nextCommand(session, `operation logs ${name} -n ${namespace} -f`)}`,
        ]),
      ),
      terminal.every(LOOK_MS, lookSoon),
      api.watch(OPERATION, namespace, name, sight => {
        if (sight.is === 'unseen') {
          if (!isLost) terminal.err(`No sight of it, connecting again: ${sight.why}`)
          isLost = true
          return
        }
        if (isLost) terminal.err('Connected again.')
        isLost = false
        if (sight.is === 'gone' || sight.object.metadata.uid !== uid) return leave('stopped', [`Operation ${name} was deleted.`])
        seen = operationOf(sight.object)
        isNew = true
        end = exitOf(seen)
        if (end !== undefined) lookSoon()
      }),
    )
  })
}

/** Without the Events where they may not be read: the status says most of it. */
const linesOf = async ({ api, namespace }: Session, operation: TalosOperation): Promise<readonly LogLine[]> => {
  const events = await api.list(EVENT, namespace)
  return operationLog(operation, events.ok ? events.value : [])
}

/** Writes each line once, however often it is handed in, and whoever tells it: an Event may come after the status that says the same. */
const writer = ({ terminal }: Session) => {
  const written: LogLine[] = []
  const write = (lines: readonly LogLine[]): void => {
    for (const line of lines) {
      if (written.some(before => tellTheSame(before, line))) continue
      written.push(line)
      const stamp = `${new Date(line.at).toISOString().slice(0, 19)}Z`
      terminal.out(`${terminal.colors.dim(stamp)}  ${line.isWarning ? terminal.colors.yellow(line.text) : line.text}`)
    }
  }
  return Object.assign(write, { written: () => written.length })
}
