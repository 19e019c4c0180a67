// Simulated machines that answer on loopback addresses, with certificates and talosconfigs, for tests that talk to them as a client would.
import { create, type DescMethodServerStreaming, type DescMethodUnary, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf'
import { type CallOptions, type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { grpcMethod } from '../proto/grpc.ts'
import {
  type CertificateAndKey,
  createKubernetesCa,
  createTalosCa,
  createTalosClient,
  createTalosServer,
  talosPemToNode,
  validFor,
} from '../src/adapters/pki/talos-pki.ts'
import { writeTalosconfig } from '../src/adapters/talos/talosconfig.ts'
import type { Access } from '../src/talossim/call.ts'
import type { MachinesPki } from '../src/talossim/entrance.ts'
import { serveMachines } from '../src/talossim/serve-machines.ts'
import { createWorld, type World, type WorldOptions } from '../src/world/cluster.ts'

const hourMs = 3_600_000

export type Machines = {
  readonly world: World
  readonly ca: CertificateAndKey
  /** Addresses by index of the machine, control planes first. */
  readonly address: (index: number) => string
  readonly talosconfig: (options?: {
    readonly roles?: readonly string[]
    readonly signedBy?: CertificateAndKey
    readonly endpoints?: readonly string[]
  }) => Promise<string>
  /** A client of one machine. */
  readonly client: (index: number, roles?: readonly string[]) => Promise<Client>
  /** One that shows no certificate and believes any, as clients of machines in maintenance do. */
  readonly anonymous: (index: number) => Client
  readonly close: () => Promise<void>
}

/**
 * @param options.speed So many seconds of the world pass in one of ours. Zero: the world stands still but for what the test advances.
 */
export async function startMachines(
  options: Omit<WorldOptions, 'addresses'> & { readonly speed: number; readonly kubernetesAdmin?: NonNullable<Access['kubernetesAdmin']> },
): Promise<Machines> {
  // Files of tests run at the same time: each cluster has a network of its own.
  const network = `127.${between(16, 250)}.${between(0, 250)}`
  const address = (index: number) => `${network}.${11 + index}`
  const world = createWorld({ start: Date.now(), ...options, addresses: address })
  const validity = validFor(new Date(Date.now() - hourMs), 48)
  const ca = await createTalosCa({ from: validity.notBefore })
  const certify: MachinesPki['certify'] = ({ name, hosts, notBefore, notAfter }) =>
    createTalosServer({ ca, commonName: name, hosts, validity: { notBefore, notAfter } })
  const nobody = await createTalosCa({ from: validity.notBefore })
  const maintenance = await createTalosServer({ ca: nobody, commonName: 'maintenance-service.talos.dev', hosts: [], validity })
  const p256 = (organization?: string) =>
    createKubernetesCa({ from: validity.notBefore, ...(organization === undefined ? {} : { organization }) })
  const access: Access = {
    authorities: { talos: ca, kubernetes: await p256(), etcd: await p256('etcd'), aggregator: await p256('') },
    talosClient: async (roles, ttlMs) => ({
      ca: ca.crt,
      ...(await createTalosClient({ ca, roles, validity: validFor(new Date(), ttlMs / hourMs) })),
    }),
    ...(options.kubernetesAdmin ? { kubernetesAdmin: options.kubernetesAdmin } : {}),
  }
  const served = await serveMachines({ world, access, pki: { acceptedCAs: ca.crt, certify, maintenance } })

  let last = Date.now()
  const timer = setInterval(() => {
    const now = Date.now()
    world.schedule.advanceTo(world.schedule.now() + (now - last) * options.speed)
    last = now
  }, 5)
  if (options.speed === 0) clearInterval(timer)

  const clients: Client[] = []
  const connected = (index: number, secured: ChannelCredentials): Client => {
    const client = new Client(`${address(index)}:50000`, secured, {
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 200,
    })
    clients.push(client)
    return client
  }
  const person = (roles: readonly string[], signedBy = ca) => createTalosClient({ ca: signedBy, roles, validity })
  return {
    world,
    ca,
    address,
    talosconfig: async ({ roles = ['os:admin'], signedBy, endpoints } = {}) => {
      const { crt, key } = await person(roles, signedBy)
      const controlPlanes = world.machines.filter(m => m.role === 'controlplane').map(m => address(m.index))
      return writeTalosconfig({
        contextName: options.clusterName ?? 'home',
        endpoints: endpoints ?? controlPlanes,
        caPem: signedBy?.crt ?? ca.crt,
        crtPem: crt,
        keyPem: key,
      })
    },
    client: async (index, roles = ['os:admin']) => {
      const { crt, key } = await person(roles)
      return connected(index, credentials.createSsl(Buffer.from(ca.crt), Buffer.from(talosPemToNode(key)), Buffer.from(crt)))
    },
    anonymous: index => connected(index, credentials.createSsl(null, null, null, { rejectUnauthorized: false })),
    close: async () => {
      clearInterval(timer)
      for (const client of clients) client.close()
      await served.close()
    },
  }
}

function between(lo: number, hi: number): number {
  return lo + Math.floor(Math.random() * (hi - lo + 1))
}

type CallSettings = {
  readonly metadata?: Readonly<Record<string, string | readonly string[]>>
  readonly deadlineMs?: number
  readonly waitForReady?: boolean
}

function prepared({ metadata = {}, deadlineMs = 15_000, waitForReady = false }: CallSettings): [Metadata, CallOptions] {
  const head = new Metadata({ waitForReady })
  for (const [key, values] of Object.entries(metadata)) for (const value of [values].flat()) head.add(key, value)
  return [head, { deadline: Date.now() + deadlineMs }]
}

/** The answer, or the error as grpc-js throws it. */
export function callUnary<M extends DescMethodUnary>(
  client: Client,
  method: M,
  request: MessageInitShape<M['input']>,
  settings: CallSettings = {},
): Promise<MessageShape<M['output']>> {
  const { path, requestSerialize, responseDeserialize } = grpcMethod(method)
  const message = create(method.input as M['input'], request)
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      message,
      ...prepared(settings),
      (error: ServiceError | null, value?: MessageShape<M['output']>) => {
        if (error) reject(error)
        else resolve(value!)
      },
    )
  })
}

export type OpenStream<T> = {
  readonly messages: readonly T[]
  /** Settles when the stream ends; the error, if it did not end well. */
  readonly ended: Promise<ServiceError | undefined>
  readonly cancel: () => void
}

/** Collects what comes. */
export function callStream<M extends DescMethodServerStreaming>(
  client: Client,
  method: M,
  request: MessageInitShape<M['input']>,
  settings: CallSettings = {},
): OpenStream<MessageShape<M['output']>> {
  const { path, requestSerialize, responseDeserialize } = grpcMethod(method)
  const message = create(method.input as M['input'], request)
  const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, message, ...prepared(settings))
  const messages: MessageShape<M['output']>[] = []
  stream.on('data', (one: MessageShape<M['output']>) => messages.push(one))
  const ended = new Promise<ServiceError | undefined>(resolve => {
    stream.on('error', (error: ServiceError) => resolve(error))
    stream.on('end', () => resolve(undefined))
  })
  return { messages, ended, cancel: () => stream.cancel() }
}
