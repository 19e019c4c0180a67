/** What machined publishes; the field `type` names the message of the Talos API that carries it. */
export type MachineEvent = { readonly id: string; readonly at: number; readonly actorID: string } & (
  | {
      readonly type: 'SequenceEvent'
      readonly sequence: string
      readonly action: 'NOOP' | 'START' | 'STOP'
      readonly error?: { readonly code: 'FATAL' | 'LOCKED' | 'CANCELED'; readonly message: string }
    }
  | { readonly type: 'PhaseEvent'; readonly phase: string; readonly action: 'START' | 'STOP' }
  | { readonly type: 'TaskEvent'; readonly task: string; readonly action: 'START' | 'STOP' }
  | { readonly type: 'ServiceStateEvent'; readonly service: string; readonly state: string; readonly message: string }
  | { readonly type: 'MachineStatusEvent'; readonly stage: string; readonly ready: boolean; readonly unmet: readonly string[] }
  | { readonly type: 'RestartEvent'; readonly cmd: number }
)

type WithoutEnvelope<T> = T extends unknown ? Omit<T, 'id' | 'at' | 'actorID'> : never
export type NewEvent = WithoutEnvelope<MachineEvent>

/** The ring of the last events. It lives in memory: a reboot empties it. */
export type EventRing = {
  readonly list: () => readonly MachineEvent[]
  readonly publish: (at: number, actorID: string, event: NewEvent) => void
  readonly onEvent: (listener: (event: MachineEvent) => void) => () => void
  readonly clear: () => void
}

/** The real ring has 1000 places, of which a reader gets at most 990. */
const PLACES = 990

export const createEventRing = (): EventRing => {
  const list: MachineEvent[] = []
  const listeners = new Set<(event: MachineEvent) => void>()
  let count = 0
  return {
    list: () => list,
    publish: (at, actorID, event) => {
      // Shaped like an xid: 20 digits in base 32, growing with time.
      const id = Math.floor(at).toString(32).padStart(10, '0') + (count++).toString(32).padStart(10, '0')
      const published = { id, at, actorID, ...event } as MachineEvent
      list.push(published)
      if (list.length > PLACES) list.shift()
      for (const listener of listeners) listener(published)
    },
    onEvent: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    clear: () => {
      list.length = 0
    },
  }
}
