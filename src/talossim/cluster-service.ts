import { ClusterService } from '../../proto/gen/cluster/cluster_pb.ts'
import { answer, refuse } from '../world/answer.ts'
import { answers, isReady, type Machine } from '../world/machine.ts'
import type { Site } from '../world/site.ts'
import type { StreamHandler } from './call.ts'
import { until } from './call.ts'
import { streaming } from './dispatch.ts'

const methods = ClusterService.method

type Nodes = { readonly all: readonly Machine[]; readonly controlPlanes: readonly Machine[] }
/** Undefined: it holds. `hangs`: a machine does not answer, and nothing is said of it. */
type Verdict = { readonly problem: string } | 'hangs' | 'skip' | undefined
type Condition = readonly [name: string, look: (site: Site, nodes: Nodes) => Verdict]

const forAll = (machines: readonly Machine[], fault: (machine: Machine) => string | undefined): Verdict => {
  if (!machines.every(answers)) return 'hangs'
  const found = machines.flatMap(machine => {
    const problem = fault(machine)
    return problem === undefined ? [] : [`\t* ${machine.addresses[0] ?? machine.name}: ${problem}`]
  })
  return found.length === 0
    ? undefined
    : { problem: [`${found.length} error${found.length === 1 ? '' : 's'} occurred:`, ...found].join('\n') }
}

const service = (id: string, machine: Machine): string | undefined =>
  machine.services.get(id)?.health === 'healthy' ? undefined : `service is not healthy: ${id}`

type Conditions = { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
const nodeOf = (site: Site, machine: Machine) => site.store.get('nodes', '', machine.name)
const isNodeReady = (site: Site, machine: Machine): boolean =>
  (nodeOf(site, machine)?.status as Conditions | undefined)?.conditions?.some(c => c.type === 'Ready' && c.status === 'True') ?? false

const missing = (what: string, machines: readonly Machine[]): Verdict =>
  machines.length === 0 ? undefined : { problem: `${what}: [${machines.map(m => m.name).join(' ')}]` }

/** Pods of an addon; what is not installed is not waited for. */
const addon =
  (name: string) =>
  (site: Site): Verdict => {
    const pods = site.store
      .list('pods')
      .items.filter(pod => pod.metadata.namespace === 'kube-system' && pod.metadata.name.startsWith(`${name}-`))
    if (pods.length === 0) return 'skip'
    const unready = pods.filter(
      pod => !(pod.status as Conditions | undefined)?.conditions?.some(c => c.type === 'Ready' && c.status === 'True'),
    )
    return unready.length === 0 ? undefined : { problem: `some pods are not ready: [${unready.map(pod => pod.metadata.name).join(' ')}]` }
  }

const denied = (why: string): Verdict => ({ problem: `rpc error: code = PermissionDenied desc = ${why}` })

const holds = (): Verdict => undefined

const CONDITIONS: readonly Condition[] = [
  ['etcd to be healthy', (_, { controlPlanes }) => forAll(controlPlanes, machine => service('etcd', machine))],
  ['etcd members to be consistent across nodes', (_, { controlPlanes }) => forAll(controlPlanes, () => undefined)],
  [
    'etcd members to be control plane nodes',
    ({ etcd }) => {
      const strangers = etcd.members().filter(member => member.machine === undefined)
      return strangers.length === 0
        ? undefined
        : { problem: `etcd member ips ${JSON.stringify(strangers.map(m => m.name))} are not subset of control plane node ips` }
    },
  ],
  ['apid to be ready', (_, { all }) => forAll(all, machine => service('apid', machine))],
  ['all nodes memory sizes', holds],
  ['all nodes disk sizes', holds],
  ['no diagnostics', holds],
  ['kubelet to be healthy', (_, { all }) => forAll(all, machine => service('kubelet', machine))],
  [
    'all nodes to finish boot sequence',
    (_, { all }) => forAll(all, machine => (machine.stage === 'running' ? undefined : `machine is ${machine.stage}`)),
  ],
  [
    'all k8s nodes to report',
    (site, { all }) =>
      missing(
        'missing nodes',
        all.filter(machine => !nodeOf(site, machine)),
      ),
  ],
  [
    'all control plane static pods to be running',
    (_, { controlPlanes }) =>
      missing(
        'missing static pods',
        controlPlanes.filter(m => !m.staticPods),
      ),
  ],
  [
    'all control plane components to be ready',
    (_, { controlPlanes }) =>
      missing(
        'some pods are not ready',
        controlPlanes.filter(m => !m.staticPods || [...m.pods.values()].some(pod => !pod.isRunning)),
      ),
  ],
  [
    'all k8s nodes to report ready',
    (site, { all }) =>
      missing(
        'some nodes are not ready',
        all.filter(m => !isNodeReady(site, m) || !isReady(site, m)),
      ),
  ],
  ['kube-proxy to report ready', addon('kube-proxy')],
  ['coredns to report ready', addon('coredns')],
  [
    'all k8s nodes to report schedulable',
    (site, { all }) =>
      missing(
        'some nodes are not schedulable',
        all.filter(m => (nodeOf(site, m)?.spec as { unschedulable?: boolean } | undefined)?.unschedulable === true),
      ),
  ],
]

/** From here on the machine asks Kubernetes, with a kubeconfig that it makes in the caller's name: only an administrator is given one. */
const NEEDS_ADMIN = 'all k8s nodes to report'

const DEFAULT_WAIT_MS = 300_000
const TIMED_OUT = 'rpc error: code = DeadlineExceeded desc = context deadline exceeded'

/** The whole cluster, looked at from one machine: by the addresses given, or all that it has discovered. */
const healthCheck: StreamHandler<typeof methods.healthCheck> = async (call, { waitTimeout, clusterInfo }, send) => {
  const { site, machine } = call
  const named = [...(clusterInfo?.controlPlaneNodes ?? []), ...(clusterInfo?.workerNodes ?? [])]
  const all = named.length === 0 ? site.machines : site.machines.filter(m => m.addresses.some(address => named.includes(address)))
  const nodes = { all, controlPlanes: all.filter(m => m.role === 'controlplane') }
  const say = (message: string): void => send({ message })
  say(`discovered nodes: [${all.map(m => JSON.stringify(m.addresses[0] ?? '')).join(' ')}]`)

  const waitMs = Number(waitTimeout?.seconds ?? 0n) * 1000 + (waitTimeout?.nanos ?? 0) / 1e6
  const late = new AbortController()
  const forget = site.schedule.after(waitMs > 0 ? waitMs : DEFAULT_WAIT_MS, () => late.abort())
  const over = AbortSignal.any([call.over, late.signal])
  for (const [name, look] of CONDITIONS) {
    say(`waiting for ${name}: ...`)
    let last = ''
    let verdict: Verdict
    const passed = await until(site, over, () => {
      // Workers ask nobody for others.
      if (machine.role === 'worker') verdict = denied('no request forwarding')
      else if (name === NEEDS_ADMIN && !call.roles.has('os:admin')) verdict = denied('not authorized')
      else verdict = look(site, nodes)
      if (typeof verdict === 'object' && verdict.problem !== last) say(`waiting for ${name}: ${(last = verdict.problem)}`)
      return verdict === undefined || verdict === 'skip'
    })
    if (passed) {
      say(`waiting for ${name}: ${verdict === 'skip' ? 'SKIP' : 'OK'}`)
      continue
    }
    say(`waiting for ${name}: ${TIMED_OUT}`)
    return refuse('DeadlineExceeded', 'context deadline exceeded')
  }
  forget()
  return answer(undefined)
}

export const clusterMethods = { healthCheck: streaming(methods.healthCheck, healthCheck) }
