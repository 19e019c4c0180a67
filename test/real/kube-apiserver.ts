// A real kube-apiserver with a real etcd, on loopback, for one test file. Nothing of it outlives the test process.
// There is no kubelet, scheduler or controller manager: Jobs do not run, nothing is garbage-collected.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startRights } from '../../src/api/start-rights.ts'
import { startChild, type Child } from '../../src/app/child.ts'
import { peoplesRoles } from '../../src/install/roles.ts'
import { kinds } from '../../src/kinds/registry.ts'
import { realParts } from './parts.ts'

export const roles = ['admin', 'operator', 'viewer'] as const
export type Role = (typeof roles)[number]

/** Users beside those of the roles, with the groups of each. */
export type MoreUsers = Readonly<Record<string, readonly string[]>>

export interface KubeRequest {
  path: string
  method?: string
  role?: Role
  /** One of the `users` that the server was started with, instead of a role. */
  user?: string
  /** Whom the sender impersonates. */
  as?: { readonly user: string; readonly groups?: readonly string[] }
  body?: unknown
  contentType?: string
}

export interface KubeAnswer {
  status: number
  /** Parsed, where it was JSON. */
  body: any
}

export interface RealKubeApiserver {
  url: string
  /** Of its etcd, which answers in JSON too (`/v3/kv/range`). */
  etcdUrl: string
  caPem: string
  tokens: Record<Role, string>
  /** A kubeconfig file for that role or user; its context's namespace is `default`. */
  kubeconfigPath(user: string): string
  request(request: KubeRequest): Promise<KubeAnswer>
  /** SIGKILL, as a crash; etcd and its data stay. */
  kill(): Promise<void>
  /** The same server at the same address with the same data, dead or alive before; ready when it returns. */
  restart(): Promise<void>
  /** SIGKILL of etcd alone; the server goes on without it. */
  killEtcd(): Promise<void>
  /** The same etcd with the same data, dead or alive before; the server is ready again when it returns. */
  restartEtcd(): Promise<void>
  /** The end of the server, of etcd and of their data. */
  stop(): Promise<void>
}

const readyWithinMs = 60_000

export async function startKubeApiserver(options: { arguments?: string[]; users?: MoreUsers } = {}): Promise<RealKubeApiserver> {
  const parts = await realParts('etcd', 'kube-apiserver')
  if ('missing' in parts) throw new Error(`no real API server: ${parts.missing}`)

  const folder = mkdtempSync(join(tmpdir(), 'ichor-kube-'))
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  try {
    // A port that was free may be taken a moment later: then once more, with others.
    for (let attempt = 1; ; attempt++) {
      try {
        return await start(parts.paths, folder, options.arguments ?? [], options.users ?? {})
      } catch (error) {
        if (attempt === 3 || !/address already in use/.test(String(error))) throw error
      }
    }
  } catch (error) {
    removeFolder()
    throw error
  }
}

async function start(
  programs: Record<'etcd' | 'kube-apiserver', string>,
  folder: string,
  more: string[],
  users: MoreUsers,
): Promise<RealKubeApiserver> {
  const [etcdPort, peerPort, port] = (await freePorts(3)) as [number, number, number]
  const url = `https://127.0.0.1:${port}`
  const file = (name: string) => join(folder, name)
  const groupsOf: MoreUsers = { admin: ['system:masters'], operator: ['ichor-operators'], viewer: ['ichor-viewers'], ...users }
  const tokens = Object.fromEntries(Object.keys(groupsOf).map(user => [user, randomBytes(16).toString('hex')])) as Record<Role, string>

  const tokenOf = (user: string): string => {
    const token = (tokens as Record<string, string>)[user]
    if (token === undefined) throw new Error(`the server was started without a user ${user}`)
    return token
  }

  const keys = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  writeFileSync(file('service-account.key'), keys.privateKey, { mode: 0o600 })
  writeFileSync(file('service-account.pub'), keys.publicKey)
  writeFileSync(
    file('tokens.csv'),
    Object.entries(groupsOf)
      .map(([user, groups]) => `${tokenOf(user)},${user},${user},"${groups.join(',')}"\n`)
      .join(''),
    { mode: 0o600 },
  )

  const startEtcd = () =>
    startChild({
      command: programs.etcd,
      args: [
        `--data-dir=${file('etcd')}`,
        `--listen-client-urls=http://127.0.0.1:${etcdPort}`,
        `--advertise-client-urls=http://127.0.0.1:${etcdPort}`,
        `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
        `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
        `--initial-cluster=default=http://127.0.0.1:${peerPort}`,
        '--unsafe-no-fsync',
        '--log-level=error',
      ],
      logPath: file('etcd.log'),
      removeOnCrash: folder,
    })
  let etcd = await startEtcd()
  // Until it is started again, a server that starts meanwhile waits for it, as it does in a real cluster.
  let etcdIsKilled = false

  let server: Child | undefined
  const startServer = () =>
    startChild({
      command: programs['kube-apiserver'],
      args: [
        `--etcd-servers=http://127.0.0.1:${etcdPort}`,
        `--secure-port=${port}`,
        '--bind-address=127.0.0.1',
        '--advertise-address=127.0.0.1',
        // The advertised address is loopback, which must not become an endpoint.
        '--endpoint-reconciler-type=none',
        `--cert-dir=${file('certificates')}`,
        `--service-account-key-file=${file('service-account.pub')}`,
        `--service-account-signing-key-file=${file('service-account.key')}`,
        '--service-account-issuer=https://kubernetes.default.svc',
        `--token-auth-file=${file('tokens.csv')}`,
        '--authorization-mode=RBAC',
        '--service-cluster-ip-range=10.96.0.0/16',
        '--disable-admission-plugins=ServiceAccount',
        ...more,
      ],
      logPath: file('kube-apiserver.log'),
      removeOnCrash: folder,
    })

  // The server signs its own certificate at its first start; the file holds its CA as well.
  const readCa = () => readFileSync(file('certificates/apiserver.crt'), 'utf8')
  const call = (request: KubeRequest) => callServer(url, readCa(), tokenOf(request.user ?? request.role ?? 'admin'), request)

  const untilReady = async (child: Child) => {
    const deadline = Date.now() + readyWithinMs
    let last = 'no answer'
    for (;;) {
      if (etcd.hasExited() && !etcdIsKilled) throw new Error(`etcd ended while starting:\n${etcd.lastWords()}`)
      if (child.hasExited()) throw new Error(`kube-apiserver ended while starting:\n${child.lastWords()}`)
      try {
        const answer = await call({ path: '/readyz' })
        if (answer.status === 200) {
          // Made by the server itself, a moment after it is ready.
          const namespace = await call({ path: '/api/v1/namespaces/default' })
          if (namespace.status === 200) return
        }
        last = JSON.stringify(answer.body).slice(0, 500)
      } catch (error) {
        last = String(error)
      }
      if (Date.now() > deadline)
        throw new Error(`kube-apiserver is not ready after ${readyWithinMs / 1000} s (${last}):\n${child.lastWords()}`)
      await pause(50)
    }
  }

  // One that is about to be started again is none that somebody could wait for.
  const killServer = async () => {
    const killed = server
    server = undefined
    await killed?.kill()
  }

  const stop = async () => {
    await Promise.all([killServer(), etcd.kill()])
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    server = await startServer()
    await untilReady(server)
    await grantRoles(call)
  } catch (error) {
    await Promise.all([server?.kill(), etcd.kill()])
    rmSync(file('etcd'), { recursive: true, force: true })
    throw error
  }

  const kubeconfigPath = (user: string): string => file(`kubeconfig-${user.replaceAll(':', '_')}`)
  for (const user of Object.keys(groupsOf))
    writeFileSync(kubeconfigPath(user), kubeconfig(url, readCa(), user, tokenOf(user)), { mode: 0o600 })

  return {
    url,
    etcdUrl: `http://127.0.0.1:${etcdPort}`,
    caPem: readCa(),
    tokens,
    kubeconfigPath,
    request: call,
    kill: killServer,
    restart: async () => {
      await killServer()
      server = await startServer()
      await untilReady(server)
    },
    killEtcd: async () => {
      etcdIsKilled = true
      await etcd.kill()
    },
    restartEtcd: async () => {
      etcdIsKilled = true
      await etcd.kill()
      etcd = await startEtcd()
      etcdIsKilled = false
      if (server) await untilReady(server)
    },
    stop,
  }
}

// The roles of people as they are installed, each bound to a group.
async function grantRoles(call: (request: KubeRequest) => Promise<KubeAnswer>): Promise<void> {
  const api = '/apis/rbac.authorization.k8s.io/v1'
  const created = [
    ...(await Promise.all(
      peoplesRoles(startRights(kinds).map(right => right.subresource)).map(body =>
        call({ path: `${api}/clusterroles`, method: 'POST', body }),
      ),
    )),
    ...(await Promise.all(
      ['ichor-operator', 'ichor-viewer'].map(name =>
        call({
          path: `${api}/clusterrolebindings`,
          method: 'POST',
          body: {
            metadata: { name },
            roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
            subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: `${name}s` }],
          },
        }),
      ),
    )),
  ]
  for (const answer of created) if (answer.status !== 201) throw new Error(`cannot grant the roles: ${JSON.stringify(answer.body)}`)
}

function callServer(url: string, ca: string, token: string, request: KubeRequest): Promise<KubeAnswer> {
  return new Promise((resolve, reject) => {
    const body = request.body === undefined ? undefined : JSON.stringify(request.body)
    const outgoing = httpsRequest(
      url + request.path,
      {
        method: request.method ?? 'GET',
        ca,
        agent: false,
        timeout: 10_000,
        headers: {
          authorization: `Bearer ${token}`,
          accept: 'application/json',
          ...(request.as ? { 'impersonate-user': request.as.user, 'impersonate-group': [...(request.as.groups ?? [])] } : {}),
          ...(body === undefined
            ? {}
            : { 'content-type': request.contentType ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      },
      incoming => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          // A watch answers with a line for each event, which together are no JSON.
          const isJson = /json/.test(incoming.headers['content-type'] ?? '') && !/[?&]watch=true/.test(request.path)
          resolve({ status: incoming.statusCode!, body: isJson ? JSON.parse(text) : text })
        })
      },
    )
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer to ${request.path} within 10 s`)))
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

function kubeconfig(server: string, ca: string, user: string, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: user, context: { cluster: 'test', user, namespace: 'default' } }],
    'current-context': user,
  })
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
      return server
    }),
  )
  const ports = servers.map(server => (server.address() as { port: number }).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
