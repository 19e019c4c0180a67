import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** The port of the Talos API: talosctl takes it where it is told none. */
export const TALOS_PORT = 50_000

export type Addresses = {
  /** One for each machine, in their order. */
  readonly addresses: readonly string[]
  /** Others may have the range now. */
  readonly release: () => void
  /** Ranges that were taken, each as a sentence. */
  readonly passedOver: readonly string[]
}

/** The third part of 127.0.x.y; any of them will do. */
const RANGES = Array.from({ length: 40 }, (_, index) => 86 + index)

/**
 * Loopback addresses with a free port 50000. Linux has all of 127.0.0.0/8 without any setup. The range is kept by a port of its last address, because a
 * machine that reboots closes its own for a while.
 *
 * Throws one sentence when no range can be had.
 */
export const takeAddresses = async (count: number): Promise<Addresses> => {
  const passedOver: string[] = []
  for (const range of RANGES) {
    const addresses = Array.from({ length: count }, (_, index) => `127.0.${range}.${index + 1}`)
    const keeper = await listen(`127.0.${range}.254`)
    if (keeper.ok) {
      const taken = await firstTaken(addresses)
      if (!taken) return { addresses, release: () => void keeper.server.close(), passedOver }
      keeper.server.close()
      if (taken.code !== 'EADDRINUSE') throw new Error(cannotListen(taken))
      passedOver.push(`${taken.host}:${TALOS_PORT} is in use; taking other addresses`)
    } else if (keeper.code === 'EADDRINUSE') passedOver.push(`127.0.${range}.1 and following are in use (another demo?); taking others`)
    else throw new Error(cannotListen(keeper))
  }
  throw new Error(`port ${TALOS_PORT} is in use on every loopback address that was tried: does something listen on 0.0.0.0:${TALOS_PORT}?`)
}

type Taken = { readonly host: string; readonly code: string }

const cannotListen = ({ host, code }: Taken): string =>
  code === 'EADDRNOTAVAIL'
    ? `${host} is no address of this machine: the demo needs the loopback addresses 127.0.0.0/8, which Linux has`
    : `cannot listen on ${host}:${TALOS_PORT}: ${code}`

const listen = async (host: string): Promise<{ readonly ok: true; readonly server: Server } | ({ readonly ok: false } & Taken)> => {
  const server = createServer(socket => socket.destroy())
  try {
    server.listen({ host, port: TALOS_PORT })
    await once(server, 'listening')
    return { ok: true, server }
  } catch (error) {
    return { ok: false, host, code: (error as NodeJS.ErrnoException).code ?? String(error) }
  }
}

const firstTaken = async (addresses: readonly string[]): Promise<Taken | undefined> => {
  for (const address of addresses) {
    const heard = await listen(address)
    if (!heard.ok) return heard
    heard.server.close()
    await once(heard.server, 'close')
  }
  return undefined
}
