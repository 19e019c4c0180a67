import { subscribe } from 'node:diagnostics_channel'
import { type Socket } from 'node:net'
import type { MachineAddress } from './address.ts'

type Adopt = (socket: Socket) => void

/** Who waits for the next connection to an address, oldest first. */
const awaited = new Map<string, Adopt[]>()
let isSubscribed = false

/**
 * Hands over the next TCP connection that this process begins to a machine, while it is still being made. grpc-js keeps it to itself until it is
 * up, and for that it waits as long as the kernel does: where packets are dropped, more than two minutes, and it tries again less and less
 * often. Only for IP addresses, as machines have.
 */
export function awaitDial({ host, port }: MachineAddress, adopt: Adopt): void {
  if (!isSubscribed) {
    isSubscribed = true
    subscribe('net.client.socket', message => begun((message as { readonly socket: Socket }).socket))
  }
  const key = keyOf(host, port)
  awaited.set(key, [...(awaited.get(key) ?? []), adopt])
}

function begun(socket: Socket): void {
  // Of all other connections of this process nothing is asked.
  if (awaited.size === 0) return
  socket.once('connectionAttempt', (host: string, port: number) => {
    const key = keyOf(host, port)
    const [adopt, ...others] = awaited.get(key) ?? []
    if (others.length > 0) awaited.set(key, others)
    else awaited.delete(key)
    adopt?.(socket)
  })
}

function keyOf(host: string, port: number): string {
  return `${host} ${port}`
}
