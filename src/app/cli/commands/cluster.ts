import type { Command } from 'commander'
import { API_VERSION } from '../../../api/names.ts'
import type { TalosClusterStatus } from '../../../api/talos-cluster.ts'
import { answering, type ClusterSight } from '../../../core/looks/cluster-sight.ts'
import { lookAt } from '../../../core/looks/look.ts'
import type { KubeObject } from '../api.ts'
import { findingLines } from '../findings.ts'
import type { Output } from '../output.ts'
import { outputOption, printList, printObject } from '../output.ts'
import { CLUSTER, qualifiedName, SECRET } from '../resource-types.ts'
import type { ConnectionChoice, Session } from '../session.ts'
import { must, mustGet } from '../session.ts'
import { crdsMissing, faultStop, Stop } from '../stop.ts'
import type { Shell } from './command.ts'
import { type Given, nextCommand, typed } from '../typed.ts'
import { group, withExamples, works } from './command.ts'

type AddOptions = {
  readonly talosconfig: string
  readonly talosContext?: string
  readonly managedKubeconfig?: string
  readonly imageFactory?: string
}

export const clusterCommand = (shell: Shell): Command => {
  const cluster = group('cluster', 'Look at clusters, add one')
  const sub = (name: string, description: string) => {
    const command = group(name, description)
    cluster.addCommand(command)
    return command
  }

  const list = sub('list', 'List clusters').alias('ls').option('-A, --all-namespaces', 'of all namespaces').addOption(outputOption())
  works<{ output: Output; allNamespaces?: boolean }>(list, shell, (session, _, options) => printList(session, CLUSTER, options))

  const get = sub('get', 'Show one cluster').argument('<name>', 'the TalosCluster').addOption(outputOption())
  works<{ output: Output }>(
    get,
    shell,
    async (session, [name = ''], { output }) => printObject(session, CLUSTER, await mustGet(session, CLUSTER, name), output),
    CLUSTER,
  )

  const add = sub(
    'add',
    'Add a Talos cluster: a Secret with its talosconfig, one with its kubeconfig where it is another cluster, and a TalosCluster',
  )
    .argument('<name>', 'name of the TalosCluster')
    .requiredOption('--talosconfig <file>', 'the talosconfig, with a certificate of role os:admin')
    .option('--talos-context <name>', "the talosconfig's context (default: its current one)")
    .option('--managed-kubeconfig <file>', 'kubeconfig of the Talos cluster, where Ichor runs in another one')
    .option(
      '--image-factory <host>',
      'host of the Image Factory that builds its installer images (default: the one that the running image names)',
    )
  works<AddOptions & ConnectionChoice>(add, shell, (session, [name = ''], options) => addCluster(session, name, options))

  withExamples(cluster, shell, [
    'cluster list',
    'cluster add home --talosconfig ~/.talos/config',
    'cluster add edge --talosconfig edge.talosconfig --managed-kubeconfig edge.kubeconfig',
  ])
  return cluster
}

const addCluster = async (session: Session, name: string, options: AddOptions & ConnectionChoice): Promise<void> => {
  const { terminal, api, namespace, server } = session
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name) || name.length > 63) {
    throw new Stop(
      'usage',
      `name ${JSON.stringify(name)}: must be at most 63 lower-case letters, digits and -, beginning and ending with a letter or a digit`,
    )
  }
  const { talosconfig, endpoints, expires } = await checkedTalosconfig(session, options)
  const kubeconfig = options.managedKubeconfig === undefined ? undefined : await checkedKubeconfig(session, options.managedKubeconfig)

  // Everything that could be in the way is asked before the first write.
  const secrets = [
    { name: `${name}-talosconfig`, key: 'talosconfig', content: talosconfig },
    ...(kubeconfig === undefined ? [] : [{ name: `${name}-kubeconfig`, key: 'kubeconfig', content: kubeconfig }]),
  ]
  await mustBeFree(
    session,
    name,
    secrets.map(secret => secret.name),
  )
  const unasked = await mustBeFit(
    session,
    name,
    talosconfig,
    kubeconfig === undefined ? undefined : { text: kubeconfig, origin: options.managedKubeconfig ?? '' },
    options,
  )

  const made: string[] = []
  for (const secret of secrets) {
    const created = await api.create(SECRET, namespace, {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'Opaque',
      metadata: { name: secret.name, namespace },
      data: { [secret.key]: Buffer.from(secret.content).toString('base64') },
    })
    if (!created.ok) throw await undone(session, made, faultStop(created.fault, `create Secret ${secret.name}`, server))
    made.push(secret.name)
  }
  const created = await api.create(CLUSTER, namespace, {
    apiVersion: API_VERSION,
    kind: CLUSTER.kind,
    metadata: { name, namespace },
    spec: {
      talosconfigSecretRef: { name: `${name}-talosconfig` },
      ...(kubeconfig === undefined ? {} : { kubeconfigSecretRef: { name: `${name}-kubeconfig` } }),
      ...(options.imageFactory === undefined ? {} : { imageFactory: options.imageFactory }),
    },
  })
  if (!created.ok) throw await undone(session, made, faultStop(created.fault, `create cluster ${name}`, server))

  for (const secret of made) terminal.out(`${qualifiedName(SECRET, secret)} created`)
  terminal.out(`${qualifiedName(CLUSTER, name)} created`)
  terminal.err(`Talos API: ${endpoints}; the client certificate expires ${expires}.`)
  if (unasked) terminal.err(`It could not be asked from here: ${unasked}. The controller asks it from where it runs.`)
  terminal.err(`See what Ichor finds with: ${nextCommand(session, `cluster get ${name} -n ${namespace}`)}`)
}

const checkedTalosconfig = async (
  { outside, terminal }: Session,
  options: AddOptions & ConnectionChoice,
): Promise<{ talosconfig: string; endpoints: string; expires: string }> => {
  const text = await outside.readFile(options.talosconfig)
  // Slow to load and needed here only.
  const { parseTalosconfig, writeTalosconfig } = await import('../../../adapters/talos/talosconfig.ts')
  const parsed = parseTalosconfig(text, {
    now: new Date(terminal.now()),
    ...(options.talosContext === undefined ? {} : { context: options.talosContext }),
  })
  if (!parsed.ok) throw new Stop('error', `${options.talosconfig}: ${parsed.problem}`)
  const { contextName, endpoints, nodes, caPem, crtPem, keyPem, notAfter } = parsed.value
  if (endpoints.length === 0)
    throw new Stop('refused', `${options.talosconfig}: context "${contextName}" names no endpoints; nothing was created`, [
      'Ichor asks them which machines there are, and finds none without: nodes are only whom talosctl asks when it is told nobody else.',
      `Name the control planes, each by its own address: ${typed('talosctl config endpoint CONTROL-PLANE', outside.calledAs, options)}`,
    ])
  const addresses = endpoints.map(({ host, port }) => (port === 50_000 ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`))
  // Only the chosen context: the credentials of other clusters are none of this one's business.
  const talosconfig = writeTalosconfig({ contextName, endpoints: addresses, nodes, caPem, crtPem, keyPem })
  return { talosconfig, endpoints: addresses.join(', '), expires: notAfter.toISOString().slice(0, 10) }
}

/**
 * Ends the command where a look finds that Ichor could not work on it. Warnings are told, and hold nothing up. Answers why the machines could not be asked,
 * where they could not: they need not be reachable from here.
 */
const mustBeFit = async (
  session: Session,
  name: string,
  talosconfig: string,
  kubeconfig: { readonly text: string; readonly origin: string } | undefined,
  given: Given,
): Promise<string | undefined> => {
  const { outside, terminal, namespace, choice } = session
  const stranger = { key: { namespace, name }, talosconfig, isHasty: true, ...(kubeconfig ? { kubeconfig } : {}) }
  const sight = await outside.strangerSight(stranger, choice)
  // Slow to load, with all that is known of versions.
  const { onboardingLooks } = await import('../../../core/looks/cluster-looks.ts')
  const looked = lookAt(onboardingLooks, sight)
  const wrong = findingLines(looked, ['error'], outside.calledAs, given)
  if (wrong.length > 0) throw new Stop('refused', `the checks refuse to add cluster ${name}; nothing was created`, wrong)
  await mustBeNew(session, sight, name)
  for (const line of findingLines(looked, ['warning'], outside.calledAs, given)) terminal.err(line)
  return sight.members.ok ? undefined : sight.members.fault.message
}

/** Of two TalosClusters for the same machines the controller works on the older one only. */
const mustBeNew = async (session: Session, sight: ClusterSight, name: string): Promise<void> => {
  const { api, namespace } = session
  const ids = new Set(answering(sight).map(({ facts }) => facts.clusterID))
  const everywhere = await api.list(CLUSTER)
  // Who may see his own namespace only is told of the others by the controller.
  const known = everywhere.ok ? everywhere : await api.list(CLUSTER, namespace)
  const twin = must(session, known, 'list clusters').find(({ status }) => {
    const id = (status as TalosClusterStatus | undefined)?.clusterID
    return id !== undefined && ids.has(id)
  })
  if (!twin) return
  const { name: other, namespace: place = '' } = twin.metadata
  throw new Stop('refused', `cluster ${name} is there already, as TalosCluster ${place}/${other}; nothing was created`, [
    `These machines have the same Talos cluster id. Look at it with: ${nextCommand(session, `cluster get ${other} -n ${place}`)}`,
  ])
}

const checkedKubeconfig = async ({ outside }: Session, path: string): Promise<string> => {
  const text = await outside.readFile(path)
  const { loadKubeConfig } = await import('../../../adapters/kube/kubeconfig.ts')
  const config = await loadKubeConfig({ text, origin: path })
  if (!config.ok) throw new Stop('error', config.fault.message)
  return text
}

const mustBeFree = async (session: Session, name: string, secrets: readonly string[]): Promise<void> => {
  const { api, namespace, server } = session
  const listed = await api.list(CLUSTER, namespace)
  if (!listed.ok && listed.fault.kind === 'notFound') throw crdsMissing(server)
  const isTaken = must(session, listed, 'list clusters').some((o: KubeObject) => o.metadata.name === name)
  if (isTaken) throw new Stop('error', `cluster ${name} exists already in namespace ${namespace}`)
  for (const secret of secrets) {
    const found = await api.get(SECRET, namespace, secret)
    if (found.ok)
      throw new Stop('error', `Secret ${secret} exists already in namespace ${namespace}`, [
        'Delete it first, or choose another name for the cluster.',
      ])
    // Who may write Secrets but not read them learns of a double from the write itself.
    if (found.fault.kind !== 'notFound' && found.fault.kind !== 'forbidden')
      throw faultStop(found.fault, `look for Secret ${secret}`, server)
  }
}

/** Takes back the Secrets that were made, so that the same command can simply be given again. */
const undone = async ({ api, namespace }: Session, made: readonly string[], stop: Stop): Promise<Stop> => {
  const results = await Promise.all(made.map(async name => ({ name, result: await api.delete(SECRET, namespace, name) })))
  const left = results.filter(({ result }) => !result.ok).map(({ name }) => name)
  return left.length === 0
    ? stop
    : new Stop(stop.exit, stop.message, [...stop.hints, `Secrets that could not be taken back: ${left.join(', ')}`])
}
