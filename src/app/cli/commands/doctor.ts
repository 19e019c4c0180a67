import type { Command } from 'commander'
import type { InstallationSight } from '../../../core/looks/installation-sight.ts'
import { unaskedText } from '../../../core/looks/unasked.ts'
import { fine, type Finding, lookAt, type Looked, plural, type Severity, unseen, unseenFor } from '../../../core/looks/look.ts'
import type { Fault } from '../../../ports/fault.ts'
import type { Exit } from '../exit-codes.ts'
import { reportLines } from '../findings.ts'
import type { Output } from '../output.ts'
import { outputOption, printValue } from '../output.ts'
import { bareName, CLUSTER } from '../resource-types.ts'
import type { GlobalOptions, Outside, Session } from '../session.ts'
import { choiceOf, defaultNamespace, mustGet, openSession } from '../session.ts'
import { Stop } from '../stop.ts'
import { type Given, typed } from '../typed.ts'
import type { Shell } from './command.ts'
import { group, withExamples } from './command.ts'

type Options = GlobalOptions & {
  readonly cluster?: string
  readonly talosconfig?: string
  readonly talosContext?: string
  readonly output: Output
}

/** What was looked at, and what the looks found. */
type Part = { readonly about: string; readonly cluster?: string; readonly given: Given; readonly looked: readonly Looked[] }

export const doctorCommand = (shell: Shell): Command => {
  const { outside, leave } = shell
  const doctor = group(
    'doctor',
    'Look for what is wrong with the installation and the clusters, and say what to do about it. Changes nothing',
  )
    .option('--cluster <name>', 'only this TalosCluster (default: every one of the namespace)')
    .option('--talosconfig <file>', 'look at the machines of a talosconfig as well: also where the Kubernetes API does not answer')
    .option('--talos-context <name>', "the talosconfig's context (default: its current one)")
    .addOption(outputOption(['table', 'json', 'yaml']))
  doctor.action(async () => leave(await examineAll(outside, doctor.optsWithGlobals<Options>())))
  return withExamples(doctor, shell, ['doctor', 'doctor --cluster home -o json', 'doctor --talosconfig ~/.talos/config'])
}

const examineAll = async (outside: Outside, options: Options): Promise<Exit> => {
  if (options.talosContext !== undefined && options.talosconfig === undefined)
    throw new Stop('usage', '--talos-context chooses a context of --talosconfig: add that, too')
  const talosconfig = options.talosconfig === undefined ? undefined : await outside.readFile(options.talosconfig)
  const parts = [
    ...(await registered(outside, options)),
    ...(talosconfig === undefined ? [] : [await stranger(outside, options, talosconfig)]),
  ]
  await print(outside, options.output, parts)
  const has = (severity: Severity): boolean => countOf(parts, severity) > 0
  return has('error') ? 'refused' : has('unknown') ? 'error' : 'ok'
}

const registered = async (outside: Outside, options: Options): Promise<readonly Part[]> => {
  let session: Session
  try {
    session = await openSession(outside, options)
  } catch (error) {
    // Where there is no API server to ask, there may be machines.
    if (!(error instanceof Stop) || options.talosconfig === undefined) throw error
    return [{ about: 'Installation', given: choiceOf(options), looked: [{ look: 'kubeconfig', findings: [unseen(`${error.message}.`)] }] }]
  }
  const [{ installationSight }, { installationLooks }] = await Promise.all([import('../../doctor/installation.ts'), looksAtInstallations()])
  const sight = await installationSight(session, await outside.certificates(session.choice))
  const about = `Installation in namespace ${sight.namespace}, ${session.server}`
  return [{ about, given: session.choice, looked: lookAt(installationLooks, sight) }, ...(await clusters(session, options, sight))]
}

const clusters = async (session: Session, options: Options, installation: InstallationSight): Promise<readonly Part[]> => {
  const { api, namespace, outside, choice } = session
  const { cluster: only } = options
  const notSeen = (about: string, fault: Fault): Part => unseenPart(about, fault, options)
  if (!installation.version.ok)
    return [notSeen('Clusters', { ...installation.version.fault, message: unaskedText(installation.version.fault) })]
  const wanted = only === undefined ? undefined : bareName(CLUSTER, only)
  if (wanted !== undefined) await mustGet(session, CLUSTER, wanted)
  const listed = wanted === undefined ? await api.list(CLUSTER, namespace) : undefined
  if (listed && !listed.ok)
    return listed.fault.kind === 'notFound' || listed.fault.kind === 'unsupported' ? [] : [notSeen('Clusters', listed.fault)]
  const names = wanted === undefined ? (listed?.value ?? []).map(({ metadata }) => metadata.name) : [wanted]
  if (names.length === 0)
    return [
      {
        about: 'Clusters',
        given: choice,
        looked: [{ look: 'cluster', findings: [{ ...fine(`There is none in namespace ${namespace}.`), ...addOne(namespace) }] }],
      },
    ]
  const { deployment } = installation
  const pods = deployment.ok && deployment.value?.pods.ok ? deployment.value.pods.value : []
  const nodes = pods.filter(({ ready }) => ready).map(({ node }) => node)
  const silentMs = (await looksAtInstallations()).controllerSilence(installation)
  const clusterLooks = await looksAtClusters()
  return Promise.all(
    names.map(async (name): Promise<Part> => {
      const sight = await outside.registeredSight({ namespace, name }, choice, nodes)
      return sight.ok
        ? {
            about: `Cluster ${name}`,
            cluster: name,
            given: choice,
            looked: lookAt(clusterLooks, {
              ...sight.value,
              controllerNamespace: installation.namespace,
              isSeenBesides: options.talosconfig !== undefined,
              ...(silentMs === undefined ? {} : { controllerSilentMs: silentMs }),
            }),
          }
        : { ...notSeen(`Cluster ${name}`, sight.fault), cluster: name }
    }),
  )
}

const addOne = (namespace: string) => ({
  remedy: 'Add one, or choose another namespace with -n.',
  command: `ichor cluster add NAME --talosconfig FILE -n ${namespace}`,
})

const looksAtInstallations = () => import('../../../core/looks/installation-looks.ts')

/** Slow to load, with all that is known of versions. */
const looksAtClusters = async () => (await import('../../../core/looks/cluster-looks.ts')).clusterLooks

const unseenPart = (about: string, fault: Fault, options: Options): Part => ({
  about,
  given: choiceOf(options),
  looked: [{ look: 'cluster', findings: [{ ...unseenFor(about, fault), ...withoutServer(fault, options) }] }],
})

const withoutServer = ({ kind }: Fault, { talosconfig }: Options): Pick<Finding, 'remedy' | 'command'> =>
  talosconfig === undefined && (kind === 'unreachable' || kind === 'busy')
    ? { remedy: 'Machines can be looked at without it:', command: 'ichor doctor --talosconfig FILE' }
    : {}

const stranger = async (outside: Outside, options: Options, talosconfig: string): Promise<Part> => {
  const key = { namespace: options.namespace ?? defaultNamespace, name: options.cluster ?? 'CLUSTER' }
  const sight = await outside.strangerSight(
    { key, talosconfig, ...(options.talosContext === undefined ? {} : { context: options.talosContext }) },
    choiceOf(options),
  )
  const own = new Set(['lock', 'operations'])
  return {
    about: `Machines of ${options.talosconfig}`,
    given: options,
    looked: lookAt(await looksAtClusters(), sight).filter(({ look }) => !own.has(look)),
  }
}

const countOf = (parts: readonly Part[], severity: Severity): number =>
  parts.flatMap(({ looked }) => looked.flatMap(({ findings }) => findings)).filter(finding => finding.severity === severity).length

const print = async (outside: Outside, output: Output, parts: readonly Part[]): Promise<void> => {
  const { terminal, calledAs } = outside
  const counts = { errors: countOf(parts, 'error'), warnings: countOf(parts, 'warning'), unknown: countOf(parts, 'unknown') }
  if (output === 'json' || output === 'yaml') {
    const findings = parts.flatMap(({ about, cluster, given, looked }) =>
      looked.flatMap(({ look, findings: all }) =>
        all.map(({ command, ...finding }) => ({
          ...(cluster === undefined ? { about } : { cluster }),
          look,
          ...finding,
          ...(command === undefined ? {} : { command: typed(command, calledAs, given) }),
        })),
      ),
    )
    return printValue(outside, output, { ...counts, findings })
  }
  for (const { about, given, looked } of parts) {
    terminal.out(terminal.colors.bold(about))
    for (const line of reportLines(looked, terminal.colors, calledAs, given)) terminal.out(line)
    terminal.out('')
  }
  terminal.out(sumOf(counts))
}

const sumOf = ({ errors, warnings, unknown }: { readonly errors: number; readonly warnings: number; readonly unknown: number }): string => {
  const said = [
    ...(errors > 0 ? [plural(errors, 'error')] : []),
    ...(warnings > 0 ? [plural(warnings, 'warning')] : []),
    ...(unknown > 0 ? [`${unknown} could not be seen`] : []),
  ]
  return said.length === 0 ? 'Nothing is wrong.' : `${said.join(', ')}.`
}
