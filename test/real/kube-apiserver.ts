// A real kube-apiserver with a real etcd, on loopback, for one test file. Nothing of it outlives the test process.
// There is no kubelet, scheduler or controller manager: Jobs do not run, nothing is garbage-collected.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startChild, type Child } from '../../src/app/child.ts'
import { realParts } from './parts.ts'

export const roles = ['admin', 'operator', 'viewer'] as const
export type Role = (typeof roles)[number]

export interface KubeRequest {
  path: string
  method?: string
  role?: Role
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
  caPem: string
  tokens: Record<Role, string>
  /** A kubeconfig file for that role; its context's namespace is `default`. */
  kubeconfigPath(role: Role): string
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
const group = 'ichor.maesh.dev'
const resources = ['talosclusters', 'talosmachines', 'talosoperations', 'etcdsnapshots']

export async function startKubeApiserver(options: { arguments?: string[] } = {}): Promise<RealKubeApiserver> {
  const parts = await realParts('etcd', 'kube-apiserver')
  if ('missing' in parts) throw new Error(`no real API server: ${parts.missing}`)

  const folder = mkdtempSync(join(tmpdir(), 'ichor-kube-'))
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  try {
    // A port that was free may be taken a moment later: then once more, with others.
    for (let attempt = 1; ; attempt++) {
      try {
        return await start(parts.paths, folder, options.arguments ?? [])
      } catch (error) {
        if (attempt === 3 || !/address already in use/.test(String(error))) throw error
      }
    }
  } catch (error) {
    removeFolder()
    throw error
  }
}

async function start(programs: Record<'etcd' | 'kube-apiserver', string>, folder: string, more: string[]): Promise<RealKubeApiserver> {
  const [etcdPort, peerPort, port] = (await freePorts(3)) as [number, number, number]
  const url = `https://127.0.0.1:${port}`
  const file = (name: string) => join(folder, name)
  const tokens = Object.fromEntries(roles.map(role => [role, randomBytes(16).toString('hex')])) as Record<Role, string>

  const keys = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  writeFileSync(file('service-account.key'), keys.privateKey, { mode: 0o600 })
  writeFileSync(file('service-account.pub'), keys.publicKey)
  writeFileSync(
    file('tokens.csv'),
    roles.map(role => `${tokens[role]},${role},${role},"${role === 'admin' ? 'system:masters' : `ichor-${role}s`}"\n`).join(''),
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
  const call = (request: KubeRequest) => callServer(url, readCa(), tokens[request.role ?? 'admin'], request)

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

  for (const role of roles) writeFileSync(file(`kubeconfig-${role}`), kubeconfig(url, readCa(), role, tokens[role]), { mode: 0o600 })

  return {
    url,
    caPem: readCa(),
    tokens,
    kubeconfigPath: role => file(`kubeconfig-${role}`),
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

// The least that makes the two roles what spec and chart call them; the chart's own ClusterRoles may be applied over these.
async function grantRoles(call: (request: KubeRequest) => Promise<KubeAnswer>): Promise<void> {
  const verbs: Record<'operator' | 'viewer', string[]> = {
    viewer: ['get', 'list', 'watch'],
    operator: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
  }
  const api = '/apis/rbac.authorization.k8s.io/v1'
  for (const role of ['operator', 'viewer'] as const) {
    const name = `ichor-${role}`
    const created = [
      await call({
        path: `${api}/clusterroles`,
        method: 'POST',
        body: { metadata: { name }, rules: [{ apiGroups: [group], resources, verbs: verbs[role] }] },
      }),
      await call({
        path: `${api}/clusterrolebindings`,
        method: 'POST',
        body: {
          metadata: { name },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: `ichor-${role}s` }],
        },
      }),
    ]
    for (const answer of created) if (answer.status !== 201) throw new Error(`cannot grant ${name}: ${JSON.stringify(answer.body)}`)
  }
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
          resolve({ status: incoming.statusCode!, body: /json/.test(incoming.headers['content-type'] ?? '') ? JSON.parse(text) : text })
        })
      },
    )
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer to ${request.path} within 10 s`)))
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

function kubeconfig(server: string, ca: string, role: Role, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: role, user: { token } }],
    contexts: [{ name: role, context: { cluster: 'test', user: role, namespace: 'default' } }],
    'current-context': role,
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
