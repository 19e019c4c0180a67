import { createServer, type Server, type Socket } from 'node:net'
import { type Duplex, duplexPair, PassThrough } from 'node:stream'

/** `open`: a process listens. `closed`: nobody does, connections are refused. `silent`: the network is cut, packets vanish. */
export type LineState = 'open' | 'closed' | 'silent'

/** How long answers that are under way may take to leave a process that ends. */
const LAST_WORDS_MS = 100

/** The network in front of a machine's port, below TLS. */
export type Line = {
  /** Brings the line into a state. Settles once the port really listens, or really does not. */
  readonly become: (state: LineState) => Promise<void>
  /** The process behind the port ended: its connections are gone. On a silent line the other side learns of it only afterwards. */
  readonly hangUp: () => void
  readonly close: () => Promise<void>
}

type Connection = {
  readonly socket: Socket
  readonly inner: Duplex
  readonly machineEnd: Duplex
  /** The two ways between them. */
  readonly inward: Duplex
  readonly outward: Duplex
  isDead: boolean
}

/**
 * Connections are copied through a pair of streams, so that they can fall silent in both directions and go on later, as TCP does after a cut.
 * @param accept Takes the machine's end of a new connection.
 * @param way Makes what carries bytes one way, inward or outward.
 */
export const createLine = (
  address: { readonly host: string; readonly port: number },
  accept: (connection: Duplex) => void,
  way: (direction: 'inward' | 'outward') => Duplex = () => new PassThrough(),
): Line => {
  const connections = new Set<Connection>()
  let server: Server | undefined
  let state: LineState = 'closed'
  let change: Promise<void> = Promise.resolve()

  const join = ({ socket, inward, outward }: Connection): void => {
    socket.pipe(inward)
    outward.pipe(socket)
  }
  const part = ({ socket, inward, outward }: Connection): void => {
    socket.unpipe(inward)
    outward.unpipe(socket)
    // Without a reader the socket has to be told to leave the bytes with the kernel.
    socket.pause()
  }
  const welcome = (socket: Socket): void => {
    const [inner, machineEnd] = duplexPair()
    const connection: Connection = { socket, inner, machineEnd, inward: way('inward'), outward: way('outward'), isDead: false }
    connection.inward.pipe(inner).pipe(connection.outward)
    connections.add(connection)
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    inner.on('error', () => inner.destroy())
    socket.on('close', () => {
      connections.delete(connection)
      machineEnd.destroy()
      inner.destroy()
      connection.inward.destroy()
      connection.outward.destroy()
    })
    machineEnd.on('error', () => machineEnd.destroy())
    machineEnd.on('close', () => {
      connection.isDead = true
      if (state !== 'silent') socket.destroy()
    })
    if (state === 'silent') socket.pause()
    else join(connection)
    accept(machineEnd)
  }
  const listen = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const opened = createServer({ allowHalfOpen: false }, welcome)
      server = opened
      opened.once('error', reject)
      opened.listen({ host: address.host, port: address.port }, () => {
        opened.removeListener('error', reject)
        resolve()
      })
    })
  const stopListening = (): Promise<void> => {
    const closing = server
    server = undefined
    const ended = [...connections]
    setTimeout(() => {
      for (const { socket } of ended) socket.destroy()
    }, LAST_WORDS_MS)
    return closing ? new Promise(resolve => closing.close(() => resolve())) : Promise.resolve()
  }

  const move = async (next: LineState): Promise<void> => {
    const previous = state
    if (next === previous) return
    state = next
    if (next === 'closed') return stopListening()
    if (!server) await listen()
    if (next === 'silent') for (const connection of connections) part(connection)
    if (previous === 'silent')
      for (const connection of connections) {
        if (connection.isDead) connection.socket.destroy()
        else join(connection)
      }
  }
  /** One after the other: a machine may go down and up while its port is still closing. */
  const become = (next: LineState): Promise<void> => {
    const moved = change.then(() => move(next))
    change = moved.catch(() => {})
    return moved
  }

  return {
    become,
    hangUp: () => {
      const ended = [...connections]
      setTimeout(() => {
        for (const { machineEnd } of ended) machineEnd.destroy()
      }, LAST_WORDS_MS)
    },
    close: () => become('closed'),
  }
}
