import type { Socket } from 'node:net'
import { checkServerIdentity, createSecureContext, type SecureContext } from 'node:tls'
import { isIP } from 'node:net'
import { type ChannelCredentials, type ChannelOptions, Client, credentials } from '@grpc/grpc-js'
import type { Clock } from '../../ports/clock.ts'
import { grpcTarget, type MachineAddress } from './address.ts'
import { awaitDial } from './dialling.ts'

/** What a talosconfig gives to connect with. The key is as Node loads it. */
export type Credential = { readonly caPem: string; readonly crtPem: string; readonly keyPem: string }

/** The connection to one machine: opened by the first call, closed by itself when idle, opened again by the next call. */
export type Channel = {
  readonly client: Client
  /** Cuts what there is of a connection, also one that is only half made. The next call opens another. */
  readonly hangUp: () => void
  /** For good. */
  readonly close: () => void
}

/** How long a connection without a call stays open. */
const idleMs = 300_000
/** How long a connection may take to be made, TLS included. */
const dialMs = 10_000

const options: ChannelOptions = {
  // Nodes are called at their own address: a proxy of the pod's environment is for other traffic.
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  // A nudge is given once; what follows a failure is decided above.
  'grpc.enable_retries': 0,
  // So that closing a channel closes its connection: no other channel shares it.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.client_idle_timeout_ms': idleMs,
  'grpc.initial_reconnect_backoff_ms': 500,
  'grpc.max_reconnect_backoff_ms': 5_000,
  // As Talos has it on both sides; 4 MiB is the library's own.
  'grpc.max_receive_message_length': 32 * 1024 * 1024,
  // The default of 64 KiB makes a far stream crawl; what waits in it is memory, many times over where messages are small: two MiB cost 20 more, and
  // were no faster.
  'grpc-node.flow_control_window': 512 * 1024,
  // No keepalive pings: machines keep grpc-go's rule and hang up on a client that pings a quiet connection.
}

/** TLS material, parsed once for all machines. Throws where it is no PEM. */
export function secureContextOf(credential: Credential): SecureContext {
  return createSecureContext({ ca: credential.caPem, cert: credential.crtPem, key: credential.keyPem, minVersion: 'TLSv1.2' })
}

export function openChannel(machine: MachineAddress, context: SecureContext, clock: Clock): Channel {
  const sockets = new Set<Socket>()
  const verified = credentials.createFromSecureContext(context, {
    // The name override below is only for SNI, which does not know IP addresses; who must be there is the address itself.
    checkServerIdentity: (_name, certificate) => checkServerIdentity(machine.host, certificate),
  })
  const client = new Client(grpcTarget(machine), withBoundedDial(verified, machine, sockets, clock), {
    ...options,
    ...(isIP(machine.host) ? { 'grpc.ssl_target_name_override': 'machine.ichor.invalid' } : {}),
  })
  const hangUp = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    client,
    hangUp,
    close: () => {
      client.close()
      hangUp()
    },
  }
}

/**
 * grpc-js waits for TCP as long as the kernel does and for a TLS handshake without an end, and leaves the socket open when the channel is closed
 * meanwhile: a machine that hangs in the kernel accepts, says nothing, and would hold its channel for ever (grpc/grpc-node#924). So the
 * connector is wrapped: the sockets are known from their first packet on, and the making of a connection has an end.
 */
function withBoundedDial(verified: ChannelCredentials, machine: MachineAddress, sockets: Set<Socket>, clock: Clock): ChannelCredentials {
  const createConnector = verified._createSecureConnector.bind(verified)
  const made = new WeakMap<Socket, () => void>()
  const adopt = (socket: Socket) => {
    if (sockets.has(socket)) return
    sockets.add(socket)
    const stop = clock.after(dialMs, () => socket.destroy())
    made.set(socket, stop)
    socket.once('close', () => {
      stop()
      sockets.delete(socket)
    })
  }
  verified._createSecureConnector = (...args) => {
    const connector = createConnector(...args)
    const waitForReady = connector.waitForReady.bind(connector)
    connector.waitForReady = async () => {
      await waitForReady()
      if (isIP(machine.host)) awaitDial(machine, adopt)
    }
    const connect = connector.connect.bind(connector)
    connector.connect = async socket => {
      adopt(socket)
      // TLS does not tell when the socket below it is taken away.
      const closed = new Promise<never>((_, reject) => {
        socket.once('close', () => reject(new Error('the connection was closed during the TLS handshake')))
      })
      try {
        return await Promise.race([connect(socket), closed])
      } finally {
        made.get(socket)?.()
        closed.catch(() => {})
      }
    }
    return connector
  }
  return verified
}
