// An API server that says what the test wrote down, on loopback. It knows nothing of Kubernetes: what it must answer is the test's word.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { KubeConfig } from '../../src/adapters/kube/kubeconfig.ts'

export type Asked = { readonly method: string; readonly url: URL; readonly headers: IncomingMessage['headers']; readonly body: unknown }
export type Answering = (asked: Asked, response: ServerResponse) => void

export type ScriptedServer = {
  readonly url: string
  readonly peer: string
  readonly asked: Asked[]
  /** How many connections were ever opened. */
  readonly connections: () => number
  /** Cuts all connections, as a dying process does. */
  readonly cut: () => void
  readonly config: (user?: KubeConfig['user'], cluster?: KubeConfig['cluster']) => KubeConfig
  readonly stop: () => Promise<void>
}

export const startScripted = async (
  answer: Answering,
  tls?: { readonly key: string; readonly cert: string; readonly ca?: string },
): Promise<ScriptedServer> => {
  const asked: Asked[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const listen = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const one = {
        method: request.method ?? '',
        url: new URL(request.url ?? '/', 'http://server'),
        headers: request.headers,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      }
      asked.push(one)
      answer(one, response)
    })
  }
  const server = tls
    ? createTlsServer({ ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined }, listen)
    : createServer(listen)
  server.on(tls ? 'secureConnection' : 'connection', () => (connections += 1))
  // Before its handshake is over, too: the end would wait for it.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  const cut = (): void => sockets.forEach(socket => socket.destroy())
  return {
    url,
    peer: `127.0.0.1:${port}`,
    asked,
    connections: () => connections,
    cut,
    config: (user = {}, cluster = {}) => ({
      server: url,
      namespace: 'default',
      context: 'test',
      clusterName: 'test',
      userName: 'test',
      origin: 'the test',
      cluster,
      user,
    }),
    stop: async () => {
      cut()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

export const json = (response: ServerResponse, body: unknown, code = 200, headers: Record<string, string> = {}): void => {
  response.writeHead(code, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

export const status = (
  response: ServerResponse,
  code: number,
  reason: string,
  message: string,
  details?: unknown,
  headers?: Record<string, string>,
): void => json(response, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, details, code }, code, headers)
