// A simulated cluster that answers on loopback addresses, and controllers as processes of their own that work on it. For what can only be seen
// between processes: crashes, elections, credentials, memory.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kubeClient, type KubeClient, type KubeObject } from '../src/adapters/kube/client.ts'
import { loadKubeConfig } from '../src/adapters/kube/kubeconfig.ts'
import { RESOURCE } from '../src/adapters/kube/resource.ts'
import { openTransport } from '../src/adapters/kube/transport.ts'
import { API_VERSION, LABEL } from '../src/api/names.ts'
import type { OperationStatus } from '../src/api/talos-operation.ts'
import { startChild, type Child } from '../src/app/child.ts'
import { takeAddresses } from '../src/app/demo/addresses.ts'
import { makeTalosCredentials } from '../src/app/demo/credentials.ts'
import { CLUSTER, NAMESPACE, createDemoWorld } from '../src/app/demo/demo-world.ts'
import { drive } from '../src/app/demo/drive.ts'
import { simulatedKubernetes, type KubernetesSide } from '../src/app/demo/kubernetes.ts'
import { realKubernetes } from '../src/app/demo/real-kubernetes.ts'
import { systemClock } from '../src/app/system-clock.ts'
import { serveMachines } from '../src/talossim/serve-machines.ts'
import type { World } from '../src/world/cluster.ts'

export { CLUSTER, NAMESPACE }

/** One line of a controller's log. What it does to a machine names the machine and the step. */
export type Logged = {
  readonly level: number
  /** Milliseconds since 1970. */
  readonly time: number
  readonly msg: string
  readonly machine?: string
  readonly step?: string
  readonly [field: string]: unknown
}

export type Process = Child & {
  /** What it has logged, one entry a line. */
  readonly log: () => readonly Logged[]
  readonly logPath: string
}

export type ClusterOnTheWire = {
  readonly world: World
  readonly kubernetes: KubernetesSide
  /** Of an administrator. */
  readonly client: KubeClient
  readonly talosconfigPath: string
  readonly folder: string
  /** What went wrong in the background; empty while all is well. */
  readonly faults: readonly unknown[]
  /** Makes the cluster known to Ichor. With `withoutSecret` the talosconfig is left out. */
  readonly register: (options?: { readonly withoutSecret?: true }) => Promise<void>
  readonly createSecret: () => Promise<void>
  readonly upgrade: (name: string, version: string, spec?: object) => Promise<void>
  readonly status: (name: string) => Promise<OperationStatus | undefined>
  readonly startController: (options: {
    readonly identity: string
    readonly kubeconfigPath?: string
    /** Another program with the same command line. */
    readonly program?: string
    /** More of the command line. */
    readonly options?: readonly string[]
  }) => Promise<Process>
  readonly close: () => Promise<void>
}

const CONTROLLER = join(import.meta.dirname, '..', 'src', 'app', 'controller', 'main.ts')

export const startCluster = async (options: {
  readonly controlPlanes: number
  readonly workers: number
  readonly from: string
  readonly speed: number
  readonly realApiServer?: boolean
}): Promise<ClusterOnTheWire> => {
  const { controlPlanes, workers, from, speed, realApiServer = false } = options
  const undo: (() => unknown)[] = []
  const close = async (): Promise<void> => {
    for (const each of undo.splice(0).toReversed()) await each()
  }
  const faults: unknown[] = []
  const failed = (error: unknown): void => void faults.push(error)
  try {
    const folder = mkdtempSync(join(tmpdir(), 'ichor-wire-'))
    undo.push(() => rmSync(folder, { recursive: true, force: true }))
    const { addresses, release } = await takeAddresses(controlPlanes + workers)
    undo.push(release)
    const asDemo = { controlPlanes, workers, from, to: from, scenario: 'happy', speed, realApiServer, once: true, seed: 1 } as const
    const world = createDemoWorld(asDemo, addresses)
    undo.push(drive(world.schedule, failed))
    const pki = await makeTalosCredentials({
      cluster: CLUSTER,
      machines: world.machines.map(({ name, index }) => ({ name, address: addresses[index] ?? '' })),
      endpoints: addresses.slice(0, controlPlanes),
      folder,
    })
    undo.push((await serveMachines({ world, pki, onError: failed })).close)
    const kubernetes = await (realApiServer ? realKubernetes : simulatedKubernetes)(world, folder, failed)
    undo.push(kubernetes.close)
    const client = await openClient(kubernetes.kubeconfigPath)
    undo.push(client.close)

    const must = async (what: Promise<{ readonly ok: boolean; readonly fault?: { readonly message: string } }>): Promise<void> => {
      const answer = await what
      if (!answer.ok) throw new Error(answer.fault?.message)
    }
    const secret = `${CLUSTER}-talosconfig`
    const createSecret = (): Promise<void> =>
      must(
        client.create(
          RESOURCE.secret,
          { namespace: NAMESPACE },
          {
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name: secret },
            data: { talosconfig: readFileSync(pki.talosconfigPath).toString('base64') },
          },
        ),
      )
    return {
      world,
      kubernetes,
      client,
      talosconfigPath: pki.talosconfigPath,
      folder,
      faults,
      close,
      createSecret,
      register: async ({ withoutSecret } = {}) => {
        if (!withoutSecret) await createSecret()
        const spec = { talosconfigSecretRef: { name: secret } }
        await must(client.create(RESOURCE.talosCluster, { namespace: NAMESPACE }, ichor('TalosCluster', { name: CLUSTER }, spec)))
      },
      upgrade: (name, version, spec = {}) => {
        const metadata = { name, labels: { [LABEL.cluster]: CLUSTER } }
        const all = { clusterRef: { name: CLUSTER }, kind: 'talos', talos: { version }, ...spec }
        return must(client.create(RESOURCE.talosOperation, { namespace: NAMESPACE }, ichor('TalosOperation', metadata, all)))
      },
      status: async name => {
        const found = await client.get(RESOURCE.talosOperation, { namespace: NAMESPACE, name })
        return found.ok ? (found.value['status'] as OperationStatus | undefined) : undefined
      },
      startController: async ({ identity, kubeconfigPath = kubernetes.kubeconfigPath, program = CONTROLLER, options: more = [] }) => {
        const logPath = join(folder, `${identity}.log`)
        const args = ['--kubeconfig', kubeconfigPath, '--namespace', NAMESPACE, '--lease-namespace', NAMESPACE, '--identity', identity]
        const child = await startChild({
          command: process.execPath,
          args: ['--disable-warning=ExperimentalWarning', program, ...args, '--pace', String(speed), ...more],
          logPath,
        })
        undo.push(() => child.kill())
        const log = () =>
          readFileSync(logPath, 'utf8')
            .split('\n')
            .filter(line => line.startsWith('{'))
            .map(line => JSON.parse(line) as Logged)
        return { ...child, log, logPath }
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

const ichor = (kind: string, metadata: object, spec: object): KubeObject => ({ apiVersion: API_VERSION, kind, metadata, spec })

export const openClient = async (kubeconfigPath: string): Promise<KubeClient & { readonly close: () => void }> => {
  const config = await loadKubeConfig({ kubeconfigPath })
  if (!config.ok) throw new Error(config.fault.message)
  const transport = openTransport({ config: config.value, clock: systemClock, userAgent: 'ichor-test' })
  return { ...kubeClient(transport), close: transport.close }
}
