// What may sit at a machine's address and is no machine, or no machine in its right mind. Each speaks just far enough to do its damage.
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createSecureServer, type Http2SecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { type CertificateAndKey, createTalosServer, talosPemToNode, validFor } from '../src/adapters/pki/talos-pki.ts'

export type BadPeer = {
  readonly address: string
  /** Connections that are open now. */
  readonly open: () => number
  readonly stop: () => void
}

const hourMs = 3_600_000

async function listening(server: Server | Http2SecureServer, host = '127.0.0.1'): Promise<BadPeer> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {})
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    open: () => sockets.size,
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** No TLS at all. */
export function startPlain(greet: (socket: Socket) => void): Promise<BadPeer> {
  return listening(createServer(greet))
}

async function keysOf(ca: CertificateAndKey, from: Date, hours: number, host = '127.0.0.1') {
  const { crt, key } = await createTalosServer({ ca, commonName: 'machine', hosts: [host], validity: validFor(from, hours) })
  return { cert: crt, key: talosPemToNode(key), ca: ca.crt, requestCert: true, ALPNProtocols: ['h2'] }
}

const anHourAgo = () => new Date(Date.now() - hourMs)

/** TLS as it should be, and then whatever `talk` says. */
export async function startTls(
  ca: CertificateAndKey,
  talk: (socket: TLSSocket) => void,
  { from = anHourAgo(), hours = 24 }: { readonly from?: Date; readonly hours?: number } = {},
): Promise<BadPeer> {
  const server = createTlsServer({ ...(await keysOf(ca, from, hours)), allowHalfOpen: true }, socket => {
    socket.on('error', () => {})
    // Half open: it ends when we do, and not before.
    socket.once('end', () => socket.destroy())
    talk(socket)
    socket.resume()
  })
  return listening(server)
}

/** TLS and HTTP/2 as they should be, and then whatever `talk` says on each stream. */
export async function startHttp2(
  ca: CertificateAndKey,
  talk: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
  host = '127.0.0.1',
): Promise<BadPeer> {
  const server = createSecureServer({ ...(await keysOf(ca, anHourAgo(), 24, host)), maxSessionMemory: 1_000 })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    talk(stream, headers)
  })
  server.on('sessionError', () => {})
  return listening(server, host)
}

/** One message as gRPC frames it. */
export function framed(message: Uint8Array, { compressed = 0, length = message.length } = {}): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(compressed, 0)
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, message])
}

/** An address from which not a packet comes: its queue of connections is full and nobody takes one out, so the kernel drops what more there is. */
export async function startBlackHole(): Promise<BadPeer> {
  const worker = new Worker(
    `const { createServer } = require('node:net')
     const { parentPort } = require('node:worker_threads')
     const server = createServer()
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port)
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
     })`,
    { eval: true },
  )
  const port = await new Promise<number>(resolve => worker.once('message', resolve))
  const fillers: Socket[] = []
  // Until one is not answered any more.
  for (let isFull = false; !isFull;) {
    const filler = connect(port, '127.0.0.1')
    filler.on('error', () => {})
    fillers.push(filler)
    isFull = await new Promise<boolean>(resolve => {
      filler.once('connect', () => resolve(false))
      setTimeout(() => resolve(true), 250)
    })
  }
  return {
    address: `127.0.0.1:${port}`,
    open: () => fillers.length,
    stop: () => {
      for (const filler of fillers) filler.destroy()
      void worker.terminate()
    },
  }
}
