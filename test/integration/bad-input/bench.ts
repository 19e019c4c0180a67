// A whole invented cluster on the wire with everything as it ships: machines that speak the Talos API, a Kubernetes API, the controller as a process of its
// own, and the CLI as somebody types it. What goes in is wrong; what comes out is read as a person reads it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import picocolors from 'picocolors'
import type { KubeClient } from '../../../src/adapters/kube/client.ts'
import { kubeClient } from '../../../src/adapters/kube/client.ts'
import { loadKubeConfig } from '../../../src/adapters/kube/kubeconfig.ts'
import type { Resource } from '../../../src/adapters/kube/resource.ts'
import { RESOURCE } from '../../../src/adapters/kube/resource.ts'
import { openTransport } from '../../../src/adapters/kube/transport.ts'
import type { CertificateAndKey } from '../../../src/adapters/pki/talos-pki.ts'
import { createTalosClient, validFor } from '../../../src/adapters/pki/talos-pki.ts'
import { writeTalosconfig } from '../../../src/adapters/talos/talosconfig.ts'
import { API_VERSION } from '../../../src/api/names.ts'
import type { ResourceDefinition } from '../../../src/api/schema.ts'
import type { OperationStatus } from '../../../src/api/talos-operation.ts'
import { startChild } from '../../../src/app/child.ts'
import { connect } from '../../../src/app/cli/kube-api.ts'
import type { Terminal } from '../../../src/app/cli/terminal.ts'
import { runWhole } from '../../../src/app/cli/whole.ts'
import { makeKubernetesCredentials, writeKubeconfig } from '../../../src/app/demo/credentials.ts'
import { resources } from '../../../src/app/resources.ts'
import type { Allow } from '../../../src/kubesim/access.ts'
import { serveKubernetes } from '../../../src/kubesim/server.ts'
import type { WorldOptions } from '../../../src/world/cluster.ts'
import type { Store } from '../../../src/world/store.ts'
import { realClock } from '../../kube/clocks.ts'
import type { Machines } from '../../machines-on-the-wire.ts'
import { startMachines } from '../../machines-on-the-wire.ts'

export const NAMESPACE = 'ichor-system'
export const CLUSTER = 'home'
const HOST = '127.0.0.1'
/** So many seconds of the world, and of the controller's own waits, pass in one of ours. */
const SPEED = 50

export type Said = { readonly code: number; readonly out: string; readonly err: string }

export type Request = { readonly method: string; readonly path: string; readonly user: string }

export type KubernetesApi = {
  readonly url: string
  /** Kubeconfigs of its users. */
  readonly kubeconfig: (user: User) => string
  readonly client: KubeClient
  /** Creates an object as kubectl does, which has unknown fields refused. Answers the refusal, or nothing. */
  readonly createStrictly: (path: string, body: Readonly<Record<string, unknown>>) => Promise<string | undefined>
  /** What was asked of it, oldest first. */
  readonly requests: readonly Request[]
  readonly close: () => Promise<void>
}

/** May all; may read; may read all but Secrets; may nothing. */
export type User = 'admin' | 'viewer' | 'nosy' | 'nobody' | 'controller'

const USERS: readonly User[] = ['admin', 'viewer', 'nosy', 'nobody', 'controller']

const READING = ['get', 'list', 'watch']
/** The Secrets of this namespace are not for the controller. */
export const CLOSED_NAMESPACE = 'closed'

const allow: Allow = (user, verb, { resource, namespace }) => {
  if (resource === 'selfsubjectreviews') return true
  switch (user.name as User) {
    case 'admin':
      return true
    case 'controller':
      return !(resource === 'secrets' && namespace === CLOSED_NAMESPACE)
    case 'viewer':
      return READING.includes(verb)
    case 'nosy':
      return READING.includes(verb) && resource !== 'secrets'
    default:
      return false
  }
}

/** A Kubernetes API over a store, with or without our resource types. */
export const startKubernetes = async (options: {
  readonly store: Store
  readonly resources: readonly ResourceDefinition[]
  readonly folder: string
}): Promise<KubernetesApi> => {
  const { store, folder } = options
  const credentials = await makeKubernetesCredentials(HOST)
  const requests: Request[] = []
  const served = await serveKubernetes({
    store,
    resources: options.resources,
    tls: { certPem: credentials.server.crt, keyPem: credentials.server.key, clientCaPem: credentials.ca },
    tokens: Object.fromEntries(USERS.map(user => [`token-of-${user}`, { user, groups: user === 'admin' ? ['system:masters'] : [] }])),
    host: HOST,
    port: 0,
    version: () => 'v1.35.4',
    allow,
    observe: ({ method, path, user }) => requests.push({ method, path, user }),
  })
  const path = (user: User) => join(folder, `kubeconfig-${served.port}-${user}`)
  for (const user of USERS)
    writeKubeconfig({
      path: path(user),
      cluster: CLUSTER,
      namespace: NAMESPACE,
      url: served.url,
      caPem: credentials.ca,
      user: { name: user, token: `token-of-${user}` },
    })
  const config = await loadKubeConfig({ kubeconfigPath: path('admin') })
  if (!config.ok) throw new Error(config.fault.message)
  const transport = openTransport({ config: config.value, clock: realClock, userAgent: 'a-person' })
  return {
    url: served.url,
    kubeconfig: path,
    client: kubeClient(transport),
    createStrictly: async (path, body) => {
      const answer = await transport.send({
        method: 'POST',
        path: `${path}?fieldValidation=Strict`,
        body,
        verb: 'create',
        resource: RESOURCE.talosOperation.plural,
        what: RESOURCE.talosOperation.plural,
        group: RESOURCE.talosOperation.group,
      })
      return answer.ok ? undefined : answer.fault.sentence
    },
    requests,
    close: async () => {
      transport.close()
      await served.close()
    },
  }
}

export type Bench = {
  readonly machines: Machines
  readonly kubernetes: KubernetesApi
  readonly folder: string
  /** Runs the CLI as the administrator; other options of the kubeconfig come last and win. */
  readonly ichor: (...argv: readonly string[]) => Promise<Said>
  readonly ichorAs: (user: User, ...argv: readonly string[]) => Promise<Said>
  /** Creates an object as `kubectl create` does. Answers the server's refusal, or nothing. */
  readonly create: (type: Resource, namespace: string, name: string, body: object) => Promise<string | undefined>
  /** Creates an operation and waits until it has come to rest. */
  readonly operate: (namespace: string, name: string, spec: object) => Promise<OperationStatus>
  /** A file of the folder, by its name. */
  readonly write: (name: string, content: string) => string
  readonly talosconfig: (wrong?: {
    readonly roles?: readonly string[]
    readonly hours?: number
    readonly signedBy?: CertificateAndKey
    readonly endpoints?: readonly string[]
  }) => Promise<string>
  /** Creates an operation as `kubectl create -f` does, which has unknown fields refused. Answers the refusal, or nothing. */
  readonly createStrictly: (namespace: string, name: string, spec: object) => Promise<string | undefined>
  /** That nothing was done to a machine, and that no lock is held as soon as a lock that was free is given back. */
  readonly untouched: () => Promise<void>
  /** Everything that was done to a machine, a Node or a pod, and every lock that is held. Empty where all is untouched. */
  readonly traces: () => readonly string[]
  readonly controllerLog: () => string
  readonly close: () => Promise<void>
}

/** A machine that was switched off or on by the test itself does these things. */
const NATURAL = new Set([
  'down',
  'boot',
  'node',
  'node-boot',
  'power-on',
  'stage',
  'leader',
  'leader-lost',
  'quorum',
  'cut',
  'healed',
  'pod-gone',
  'detached',
])

export const startBench = async (world: Partial<WorldOptions> = {}): Promise<Bench> => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-bad-input-'))
  const machines = await startMachines({
    seed: 1,
    controlPlanes: 3,
    workers: 2,
    talos: 'v1.12.5',
    kubernetes: 'v1.35.4',
    scale: SPEED,
    speed: 1,
    ...world,
  })
  const kubernetes = await startKubernetes({ store: machines.world.store, resources: resources(), folder })
  const logPath = join(folder, 'controller.log')
  const controller = await startChild({
    command: process.execPath,
    args: [
      '--disable-warning=ExperimentalWarning',
      join(import.meta.dirname, '..', '..', '..', 'src', 'app', 'controller', 'main.ts'),
      ...['--kubeconfig', kubernetes.kubeconfig('controller'), '--pace', String(SPEED), '--identity', 'the-controller'],
    ],
    logPath,
  })

  const ichorAs: Bench['ichorAs'] = (user, ...argv) => runIchor(['--kubeconfig', kubernetes.kubeconfig(user), ...argv])
  const create: Bench['create'] = async (type, namespace, name, body) => {
    const object = {
      apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
      kind: type.kind,
      metadata: { name, namespace },
      ...body,
    }
    const created = await kubernetes.client.create(type, { namespace }, object)
    return created.ok ? undefined : (created.fault.sentence ?? created.fault.message)
  }
  const operate: Bench['operate'] = async (namespace, name, spec) => {
    const refused = await create(RESOURCE.talosOperation, namespace, name, { spec })
    if (refused !== undefined) throw new Error(refused)
    return eventually(async () => {
      const found = await kubernetes.client.get(RESOURCE.talosOperation, { namespace, name })
      const status = (found.ok ? found.value['status'] : undefined) as OperationStatus | undefined
      return status?.phase === 'Paused' || status?.phase === 'Completed' ? status : undefined
    }, `operation ${name} comes to rest`)
  }

  const traces = (): readonly string[] => [
    ...machines.world.journal
      .entries()
      .filter(({ what }) => !NATURAL.has(what))
      .map(({ machine, what, detail }) => `${machine} ${what} ${detail}`),
    ...kubernetes.requests
      .filter(({ method, path, user }) => method !== 'GET' && user !== 'admin' && /\/(nodes|pods|daemonsets|deployments)\b/.test(path))
      .map(({ method, path, user }) => `${user}: ${method} ${path}`),
    ...locksOf(machines.world.store),
  ]

  return {
    machines,
    kubernetes,
    folder,
    ichor: (...argv) => ichorAs('admin', ...argv),
    ichorAs,
    create,
    operate,
    write: (name, content) => {
      const path = join(folder, name)
      writeFileSync(path, content, { mode: 0o600 })
      return path
    },
    talosconfig: async ({ roles = ['os:admin'], hours = 24, signedBy = machines.ca, endpoints = [0, 1, 2].map(machines.address) } = {}) => {
      const { crt, key } = await createTalosClient({ ca: signedBy, roles, validity: validFor(new Date(Date.now() - 3_600_000), hours) })
      return writeTalosconfig({ contextName: CLUSTER, endpoints, caPem: signedBy.crt, crtPem: crt, keyPem: key })
    },
    traces,
    createStrictly: async (namespace, name, spec) => {
      const body = { apiVersion: API_VERSION, kind: 'TalosOperation', metadata: { name, namespace }, spec }
      return kubernetes.createStrictly(`/apis/${API_VERSION}/namespaces/${namespace}/talosoperations`, body)
    },
    untouched: async () => {
      await eventually(() => traces().length === 0 || undefined, 'nothing is held any more').catch(() => {
        throw new Error(`traces are left: ${traces().join('; ')}`)
      })
    },
    controllerLog: () => controller.lastWords(),
    close: async () => {
      await controller.kill('SIGKILL')
      await kubernetes.close()
      await machines.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Cluster locks that somebody holds. The Leases of leader elections, and those by which API servers say that they are up, are none. */
const locksOf = (store: Store): readonly string[] =>
  store
    .list('leases.coordination.k8s.io', NAMESPACE)
    .items.filter(
      ({ metadata, ...lease }) =>
        metadata.name !== 'ichor-controller' && ((lease['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity ?? '') !== '',
    )
    .map(({ metadata }) => `lease ${metadata.namespace}/${metadata.name} is held`)

/** What the program writes and how it ends. Nobody can be asked. */
export const runIchor = async (argv: readonly string[]): Promise<Said> => {
  const said = { out: '', err: '' }
  const terminal: Terminal = {
    out: line => void (said.out += `${line}\n`),
    err: line => void (said.err += `${line}\n`),
    raw: text => void (said.out += text),
    isLive: false,
    canAsk: false,
    width: () => 200,
    height: () => 40,
    colors: picocolors.createColors(false),
    ask: () => Promise.resolve(''),
    onInterrupt: () => () => {},
    now: Date.now,
    every: (ms, run) => {
      const timer = setInterval(run, ms)
      return () => clearInterval(timer)
    },
  }
  const close: (() => void)[] = []
  const code = await runWhole(argv, {
    terminal,
    calledAs: 'ichor',
    connect: async choice => {
      const connection = await connect(choice, 'ichor/test')
      close.push(connection.close)
      return connection
    },
  })
  for (const each of close) each()
  return { code, ...said }
}

const WITHIN_MS = 20_000

/** Asks again and again until there is an answer. */
export const eventually = async <T>(ask: () => Promise<T | undefined> | T | undefined, what: string): Promise<T> => {
  const end = Date.now() + WITHIN_MS
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (Date.now() > end) throw new Error(`not within ${WITHIN_MS / 1000} s: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** The healthy cluster, added as a person adds it, with all its machines found. */
export const addHome = async (bench: Bench): Promise<void> => {
  const path = bench.write('talosconfig', await bench.talosconfig())
  const added = await bench.ichor('cluster', 'add', CLUSTER, '--talosconfig', path)
  if (added.code !== 0) throw new Error(added.err)
  const total = bench.machines.world.machines.length
  await eventually(async () => {
    const found = await bench.kubernetes.client.get(RESOURCE.talosCluster, { namespace: NAMESPACE, name: CLUSTER })
    const status = (found.ok ? found.value['status'] : undefined) as { machines?: { ready?: number } } | undefined
    return status?.machines?.ready === total ? true : undefined
  }, 'the controller finds all machines')
}

/** A cluster of its own namespace: its Secret as given (none where undefined), and TalosMachines written by hand. */
export const addCluster = async (
  bench: Bench,
  namespace: string,
  options: {
    readonly secret?: Readonly<Record<string, string>>
    readonly machines?: readonly (readonly [name: string, address: string, role: string])[]
  },
): Promise<void> => {
  const { client } = bench.kubernetes
  const must = (refused: string | undefined) => {
    if (refused !== undefined) throw new Error(refused)
  }
  const made = await client.create(RESOURCE.namespace, {}, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  if (!made.ok) throw new Error(made.fault.message)
  const { secret } = options
  if (secret) {
    const data = Object.fromEntries(Object.entries(secret).map(([key, text]) => [key, Buffer.from(text).toString('base64')]))
    must(await bench.create(RESOURCE.secret, namespace, `${CLUSTER}-talosconfig`, { type: 'Opaque', data }))
  }
  for (const [name, address, role] of options.machines ?? [])
    must(await bench.create(RESOURCE.talosMachine, namespace, name, { spec: { clusterRef: { name: CLUSTER }, address, role } }))
  must(
    await bench.create(RESOURCE.talosCluster, namespace, CLUSTER, { spec: { talosconfigSecretRef: { name: `${CLUSTER}-talosconfig` } } }),
  )
}

/** `rule: message` of each refusal. */
export const refusalsOf = (status: OperationStatus): readonly string[] =>
  (status.preflight?.refusals ?? []).map(({ rule, message }) => `${rule}: ${message}`)

export const upgradeTo = (talos: object, more: object = {}): object => ({ clusterRef: { name: CLUSTER }, kind: 'talos', talos, ...more })
export { API_VERSION, RESOURCE }
