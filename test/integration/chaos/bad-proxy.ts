// Stands between a controller and its API server, and does what networks and load balancers do on bad days.
import { readFileSync } from 'node:fs'
import { Agent, createServer, request, type RequestOptions } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { makeKubernetesCredentials, writeKubeconfig } from '../../../src/app/demo/credentials.ts'
import type { Random } from '../../../src/world/random.ts'
import { CLUSTER, NAMESPACE, type ClusterOnTheWire } from '../../cluster-on-the-wire.ts'

export const TROUBLES = ['cut-before', 'cut-after', 'late', 'twice', 'watch-cut', 'all-cut'] as const
export type Trouble = (typeof TROUBLES)[number]

type BadProxy = {
  /** Of an administrator, through the proxy. */
  readonly kubeconfigPath: string
  readonly counts: Readonly<Record<Trouble, number>>
  readonly close: () => Promise<void>
}

/** @param options.oneIn One request in so many is spoiled. */
export const startBadProxy = async (
  cluster: ClusterOnTheWire,
  { random, oneIn }: { readonly random: Random; readonly oneIn: number },
): Promise<BadProxy> => {
  const admin = JSON.parse(readFileSync(cluster.kubernetes.kubeconfigPath, 'utf8')) as {
    clusters: { cluster: { 'certificate-authority-data': string } }[]
    users: { user: { token: string } }[]
  }
  const target = new URL(cluster.kubernetes.url)
  const agent = new Agent({ keepAlive: true, ca: Buffer.from(admin.clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64') })
  const counts: Record<Trouble, number> = { 'cut-before': 0, 'cut-after': 0, late: 0, twice: 0, 'watch-cut': 0, 'all-cut': 0 }
  const sockets = new Set<Socket>()
  let awayUntil = 0

  let spoiled = 0
  const trouble = (isWatch: boolean): Trouble | undefined => {
    // Of watches there are few.
    if (isWatch) return random.chance(0.5) || counts['watch-cut'] === 0 ? 'watch-cut' : undefined
    if (!random.chance(1 / oneIn)) return undefined
    return ++spoiled % 20 === 10 ? 'all-cut' : random.pick(['cut-before', 'cut-after', 'late', 'twice'])
  }

  const forward = (incoming: IncomingMessage, body: Buffer): Promise<IncomingMessage> => {
    const options: RequestOptions = {
      host: target.hostname,
      port: target.port,
      path: incoming.url,
      method: incoming.method,
      headers: { ...incoming.headers, host: target.host },
      agent,
    }
    return new Promise((resolve, reject) => request(options, resolve).once('error', reject).end(body))
  }

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await wholeOf(incoming)
    const what = trouble(/[?&]watch=(true|1)/.test(incoming.url ?? ''))
    if (what) counts[what]++
    if (what === 'cut-before') return void incoming.socket.destroy()
    if (what === 'all-cut') {
      awayUntil = Date.now() + random.between(100, 3_000)
      for (const socket of sockets) socket.destroy()
      return
    }
    if (what === 'late') await pause(random.between(50, 1_500))
    // As one does who got no answer in time, and asks again.
    if (what === 'twice') await wholeOf(await forward(incoming, body))
    const answer = await forward(incoming, body)
    if (what === 'cut-after') {
      await wholeOf(answer)
      return void incoming.socket.destroy()
    }
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    outgoing.flushHeaders()
    answer.pipe(outgoing)
    answer.once('error', () => incoming.socket.destroy())
    outgoing.once('close', () => answer.destroy())
    if (what === 'watch-cut') {
      await pause(random.between(0, 3_000))
      incoming.socket.destroy()
    }
  }

  const credentials = await makeKubernetesCredentials('127.0.0.1')
  const server = createServer({ cert: credentials.server.crt, key: credentials.server.key }, (incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => incoming.socket.destroy())
  })
  server.on('connection', (socket: Socket) => {
    if (Date.now() < awayUntil) return void socket.destroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))

  const kubeconfigPath = join(cluster.folder, 'kubeconfig-proxy')
  writeKubeconfig({
    path: kubeconfigPath,
    cluster: CLUSTER,
    namespace: NAMESPACE,
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caPem: credentials.ca,
    user: { name: 'admin', token: admin.users[0]?.user.token ?? '' },
  })
  return {
    kubeconfigPath,
    counts,
    close: async () => {
      const closed = new Promise(resolve => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      agent.destroy()
      await closed
    },
  }
}

const wholeOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
