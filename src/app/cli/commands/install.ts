import { type Command, InvalidArgumentError, Option } from 'commander'
import { INSTANCE, isOurs, MANAGED_BY, typeOf } from '../../../install/installation.ts'
import { talosAccessPatch } from '../../../install/talos-access-patch.ts'
import type { KubeObject } from '../api.ts'
import { CRD, DEPLOYMENT, NAMESPACE } from '../resource-types.ts'
import type { Wanted } from '../install-objects.ts'
import { type Found, type Judged, lookAt, mustBeTaken, nameOf, tell, write, type Writing } from '../install-writes.ts'
import type { GlobalOptions, Outside, Session } from '../session.ts'
import { defaultNamespace, must, openSession, whoAmI } from '../session.ts'
import { Stop } from '../stop.ts'
import { bringUpStored, type Move, plannedMoves } from '../stored-versions.ts'
import { timeoutOf } from '../timeout.ts'
import { until } from '../until.ts'
import type { Shell } from './command.ts'
import { group, withExamples } from './command.ts'

type Options = {
  readonly crdsOnly?: boolean
  readonly controller: boolean
  readonly controllerUser?: string
  readonly image?: string
  readonly replicas?: number
  readonly allNamespaces?: boolean
  readonly talosCluster?: string
  readonly talosPatch?: boolean
  readonly output?: 'yaml'
  readonly withoutPolicies?: boolean
  readonly dryRun?: boolean
  readonly wait: boolean
  readonly timeout: string
}

const ESTABLISHED_MS = 60_000
/** ValidatingAdmissionPolicy is stable since then. */
const POLICIES_SINCE = 30

export const installCommand = (shell: Shell): Command => {
  const install = group('install', 'Install Ichor into the cluster, or bring it up to date')
    .option('--image <image>', 'the container image of the controller, with its tag or digest')
    .addOption(
      new Option('--replicas <n>', 'how many controllers run; one leads (default: 2)').argParser(text => {
        const n = Number(text)
        if (!/^\d$/.test(text)) throw new InvalidArgumentError('It must be a number from 0 to 9.')
        return n
      }),
    )
    .option(
      '--all-namespaces',
      "look after TalosClusters in all namespaces, not only in the controller's own; it may then read all Secrets",
    )
    .option('--talos-cluster <name>', 'in a Talos cluster: a TalosCluster for it, with a talosconfig that Talos writes and renews')
    .option('--talos-patch', 'only print what Talos has to be told before --talos-cluster: a patch for its control planes')
    .option('--without-policies', 'leave out the admission policies; the controller then refuses what can take a cluster down')
    .option('--no-controller', 'all but the controller, for one that you run yourself (ichor controller)')
    .option('--controller-user <name>', 'with --no-controller: the user of the API server that it runs as (default: the one who installs)')
    .option('--crds-only', 'only the resource types')
    .addOption(new Option('-o, --output <format>', 'print the objects, for Git, ask no API server and write nothing').choices(['yaml']))
    .option('--dry-run', 'let the API server judge everything and write nothing')
    .option('--no-wait', 'do not wait until a controller is available')
    .option('--timeout <duration>', 'how long to wait for it', '5m')
  withExamples(install, shell, [
    'install --image registry.example.org/ichor:0.1.0',
    'install --image registry.example.org/ichor:0.1.0 --talos-cluster home',
    'install --talos-patch > talos-access.yaml',
    'install --image registry.example.org/ichor:0.1.0 -o yaml > ichor.yaml',
    'install --no-controller',
  ])
  return install.action(async () => {
    const options = install.optsWithGlobals<Options & GlobalOptions>()
    if (options.talosPatch || options.output) await print(shell.outside, options)
    else await (options.crdsOnly ? installCrds : installAll)(await openSession(shell.outside, options), options)
    shell.leave('ok')
  })
}

/** What needs no API server, so that it is the same wherever it is printed. */
const print = async (outside: Outside, options: Options & GlobalOptions): Promise<void> => {
  const namespace = options.namespace ?? defaultNamespace
  if (options.talosPatch) return outside.terminal.out(talosAccessPatch(namespace).trimEnd())
  const rest = options.crdsOnly
    ? []
    : [
        namespaceObject(namespace),
        ...(await outside.installed(
          wanted(options, namespace, () => {
            throw new Stop('usage', 'as which user of the API server the controller runs cannot be asked here: add --controller-user')
          }),
        )),
      ]
  const texts = await Promise.all([...(await outside.crds()), ...rest].map(object => outside.yaml(object)))
  outside.terminal.out(`# Ichor ${outside.version}, as ichor install -o yaml prints it.\n${texts.join('---\n').trimEnd()}`)
}

/** What the options ask for. `whoAmI` tells whom the controller runs as, where that is not said. */
const wanted = (options: Options, namespace: string, whoAmI: () => string): Wanted => {
  if (options.controller && !options.image)
    throw new Stop('usage', '--image is missing: there is no public image of Ichor yet', [
      'Build it from the Dockerfile of the project, push it, and name it here; or run the controller yourself, with --no-controller.',
    ])
  return {
    namespace,
    controller: options.controller
      ? { image: options.image ?? '', ...(options.replicas === undefined ? {} : { replicas: options.replicas }) }
      : { user: options.controllerUser ?? whoAmI() },
    policies: !options.withoutPolicies,
    allNamespaces: options.allNamespaces === true,
    ...(options.talosCluster === undefined ? {} : { talosCluster: options.talosCluster }),
  }
}

const installAll = async (session: Session, options: Options): Promise<void> => {
  const { outside, namespace } = session
  const me = options.controller ? '' : await whoAmI(session)
  const asked = wanted(options, namespace, () => me)
  const timeoutMs = timeoutOf(options.timeout)!
  await mustHavePolicies(session, asked)
  const types = await outside.crds()
  const rest = (await outside.installed(asked)).map(object => ({ type: typeOf(object as never), object }))
  const space = { type: NAMESPACE, object: namespaceObject(namespace) }
  const { found, unseen } = await lookAt(session, [space, ...types.map(ofType), ...rest])
  // Who may not look may not write either, mostly: both are told at once.
  if (unseen.length > 0) await mustBeTaken(session, found, unseen)
  mustBeOurs(session, found)
  const isNew = found.some(({ type, now }) => type === NAMESPACE && !now)
  const moves = await plannedMoves(session, types)
  const judged = await judgeNow(
    session,
    found.filter(({ type }) => type !== NAMESPACE || isNew),
    moves,
  )
  if (options.dryRun) return tellAll(session, judged, moves)
  if (isNew) await write(session, space)
  await writeTypes(session, types, moves)
  for (const one of rest) await write(session, one)
  if (options.wait && options.controller) await available(session, timeoutMs)
}

const mustHavePolicies = async (session: Session, { policies }: Wanted): Promise<void> => {
  const version = must(session, await session.api.serverVersion(), 'read the version of the API server')
  const minor = Number(/^v1\.(\d+)/.exec(version)?.[1])
  if (policies && minor < POLICIES_SINCE)
    throw new Stop(
      'refused',
      `this cluster runs Kubernetes ${version}; admission policies need 1.${POLICIES_SINCE}. Nothing was installed.`,
      ['--without-policies installs Ichor without them: it then refuses what can take a cluster down, such as the reset of a machine.'],
    )
}

/** Nothing that somebody else wrote is written over: not a namesake, not a Helm release, not an installation in another namespace. */
const mustBeOurs = ({ namespace, outside }: Session, found: readonly Found[]): void => {
  // Of a namespace and of types it is not asked whose they are: they may be there before, and stay.
  const whose = found.filter(({ type }) => type !== NAMESPACE && type !== CRD)
  const foreign = whose.filter(({ now }) => now && !isOurs(now.metadata.labels))
  if (foreign.length > 0)
    throw new Stop(
      'refused',
      'objects of these names exist and are not of Ichor; nothing was installed',
      foreign.map(({ type, object }) => nameOf(type, object)),
    )
  const labels = whose.flatMap(({ now }) => (now?.metadata.labels ? [now] : []))
  const byHelm = labels.find(now => now.metadata.labels?.[MANAGED_BY] === 'Helm')?.metadata
  if (byHelm)
    throw new Stop(
      'refused',
      `Ichor was installed by Helm here, as release ${byHelm.annotations?.['meta.helm.sh/release-name'] ?? byHelm.labels?.[INSTANCE]} in namespace ${byHelm.annotations?.['meta.helm.sh/release-namespace'] ?? 'unknown'}; nothing was installed`,
      ['Bring it up to date with helm upgrade, or remove it with helm uninstall first.'],
    )
  const elsewhere = labels.map(now => now.metadata.labels?.[INSTANCE]).find(instance => instance !== undefined && instance !== namespace)
  if (elsewhere !== undefined)
    throw new Stop(
      'refused',
      `Ichor is installed in namespace ${elsewhere} of this cluster; a second installation would fight it. Nothing was installed`,
      [
        `${outside.calledAs} install -n ${elsewhere} brings it up to date; ${outside.calledAs} uninstall -n ${elsewhere} removes it. One controller looks after all namespaces with --all-namespaces.`,
      ],
    )
}

const namespaceObject = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

const installCrds = async (session: Session, { dryRun }: Pick<Options, 'dryRun'>): Promise<void> => {
  const types = await session.outside.crds()
  const moves = await plannedMoves(session, types)
  if (!dryRun) return writeTypes(session, types, moves)
  const { found, unseen } = await lookAt(session, types.map(ofType))
  if (unseen.length > 0) await mustBeTaken(session, found, unseen)
  return tellAll(session, await judgeNow(session, found, moves), moves)
}

const ofType = (object: KubeObject): Writing => ({ type: CRD, object })

const writeTypes = async (session: Session, types: readonly KubeObject[], moves: readonly Move[]): Promise<void> => {
  for (const { isFirst, wanted } of moves) if (isFirst) await bringUpStored(session, wanted.metadata.name)
  for (const type of types) await write(session, ofType(type))
  await Promise.all(types.map(type => established(session, type.metadata.name)))
  for (const type of types) await bringUpStored(session, type.metadata.name)
}

/** The API server takes a CRD without a version that it lists as stored only when that is no longer listed. */
const judgeNow = async (session: Session, found: readonly Found[], moves: readonly Move[]): Promise<readonly Judged[]> => {
  const later = new Set(moves.flatMap(({ isFirst, wanted }) => (isFirst ? [wanted.metadata.name] : [])))
  const isLater = ({ type, object }: Found): boolean => type === CRD && later.has(object.metadata.name)
  const judged = await mustBeTaken(
    session,
    found.filter(one => !isLater(one)),
  )
  return [...found.filter(isLater).map(one => ({ ...one, after: undefined })), ...judged]
}

const tellAll = (session: Session, judged: readonly Judged[], moves: readonly Move[]): void => {
  for (const { wanted, from, to } of moves)
    session.terminal.out(`${wanted.metadata.name}: objects stored as ${from.join(', ')} would be rewritten as ${to}`)
  for (const one of judged) tell(session, one)
  session.terminal.out('Nothing was written.')
}

/** When the API server serves it: a type that is only written down answers 404. */
const established = (session: Session, name: string): Promise<void> =>
  until(
    session,
    { type: CRD, name, timeoutMs: ESTABLISHED_MS, tried: `${name} is written but the API server does not serve it` },
    conditions => conditions.some(({ type, status }) => type === 'Established' && status === 'True'),
  )

const available = (session: Session, timeoutMs: number): Promise<void> =>
  until(
    session,
    {
      type: DEPLOYMENT,
      namespace: session.namespace,
      name: 'ichor-controller',
      timeoutMs,
      tried: `Ichor is installed, but no controller became available (kubectl -n ${session.namespace} describe pods -l app.kubernetes.io/name=ichor tells why)`,
    },
    (conditions, { metadata, status }) =>
      (status as { observedGeneration?: number } | undefined)?.observedGeneration === metadata.generation &&
      conditions.some(({ type, status: is }) => type === 'Available' && is === 'True'),
  )
