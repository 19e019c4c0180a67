import type { Answer } from './answer.ts'
import { refuse } from './answer.ts'
import type { Machine } from './machine.ts'
import type { Site } from './site.ts'

/** The caller's end of a call that lasts: lines of progress, then one answer. */
export type Ends<T> = { readonly line: (text: string) => void; readonly end: (result: Answer<T>) => void }

/** The machine's end. `hungUp` ends it for a caller that went away himself. */
export type Stream<T> = Ends<T> & { readonly open: () => boolean; readonly hungUp: () => void }

/** How long the reader of a quiet stream takes to notice that the machine no longer answers. */
export const STREAM_DEADLINE_MS = 20_000

/** `end` of the caller is called once: with the answer, or when the connection breaks. What is said while the network is cut is lost. */
export const openStream = <T>(site: Site, machine: Machine, ends: Ends<T>): Stream<T> => {
  let open = true
  const finish = (result: Answer<T>): void => {
    if (!open) return
    open = false
    machine.streams.delete(broken)
    ends.end(result)
  }
  const broken = (): void => finish(refuse('Unavailable', 'error reading from server: EOF'))
  machine.streams.add(broken)
  return {
    open: () => open,
    line: text => {
      if (open && !machine.cut) ends.line(text)
    },
    end: result => {
      if (machine.cut) site.schedule.after(STREAM_DEADLINE_MS, broken)
      else finish(result)
    },
    hungUp: () => finish(refuse('Unknown', 'context canceled')),
  }
}
