import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Resource } from '../../../adapters/kube/resource.ts'
import { INSTANCE, isOurs, MANAGED_BY, typeOf } from '../../../install/installation.ts'
import { talosAccessPatch } from '../../../install/talos-access-patch.ts'
import type { KubeObject } from '../api.ts'
import { CRD, DEPLOYMENT, MACHINE, NAMESPACE, qualifiedName, TALOS_ACCOUNT } from '../resource-types.ts'
import type { Wanted } from '../install-objects.ts'
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

/** What is there under the name of an object that we want to write. */
type Found = { readonly wanted: KubeObject; readonly type: Resource; readonly now: KubeObject | undefined }

const installAll = async (session: Session, options: Options): Promise<void> => {
  const { terminal, outside, namespace } = session
  const me = options.controller ? '' : await whoAmI(session)
  const asked = wanted(options, namespace, () => me)
  const timeoutMs = timeoutOf(options.timeout)!
  await mustHavePolicies(session, asked)
  const types = await outside.crds()
  const rest = (await outside.installed(asked)).map(object => ({ type: typeOf(object as never), object }))
  const space = { type: NAMESPACE, object: namespaceObject(namespace) }
  const all = [space, ...types.map(object => ({ type: CRD, object })), ...rest]
  const { found, unseen } = await lookAt(session, all)
  // Who may not look may not write either, mostly: both are told at once.
  if (unseen.length > 0) await mustBeTaken(session, all, unseen)
  mustBeOurs(session, found)
  const isNew = found.some(({ type, now }) => type === NAMESPACE && !now)
  const moves = await plannedMoves(session, types)
  await mustBeTaken(session, [...(isNew ? [space] : []), ...judgedNow(types, moves), ...rest])
  if (options.dryRun) {
    tellMoves(session, moves)
    for (const { type, wanted, now } of found.filter(({ type }) => type !== NAMESPACE && type !== CRD))
      terminal.out(`${nameOf(type, wanted)} ${now ? 'would be brought up to date' : 'would be created'}`)
    return terminal.out('Nothing was written.')
  }
  if (isNew) await write(session, NAMESPACE, space.object)
  await installCrds(session, {})
  for (const { type, object } of rest) await write(session, type, object)
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

type Writing = { readonly type: Resource; readonly object: KubeObject }

/** What is there, and what the API server does not let us see. */
const lookAt = async (
  session: Session,
  all: readonly Writing[],
): Promise<{ readonly found: readonly Found[]; readonly unseen: readonly Refusal[] }> => {
  const unseen: Refusal[] = []
  const found = await Promise.all(
    all.map(async ({ type, object }): Promise<Found> => {
      const { name, namespace } = object.metadata
      const now = await session.api.get(type, namespace, name)
      if (!now.ok && now.fault.kind === 'forbidden') unseen.push([nameOf(type, object), now.fault.sentence ?? now.fault.message])
      else if (!now.ok && now.fault.kind !== 'notFound' && now.fault.kind !== 'unsupported')
        must(session, now, `look whether ${nameOf(type, object)} exists`)
      return { wanted: object, type, now: now.ok ? now.value : undefined }
    }),
  )
  return { found, unseen }
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
      foreign.map(({ type, wanted }) => nameOf(type, wanted)),
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

/** The name of an object, and why it is not taken. */
type Refusal = readonly [name: string, why: string]

/** Everything is judged by the API server before anything is written: rights, and the objects themselves. All that it says is told at once. */
const mustBeTaken = async (session: Session, all: readonly Writing[], unseen: readonly Refusal[] = []): Promise<void> => {
  const { api } = session
  const said = await Promise.all(
    all.map(async ({ type, object }): Promise<Refusal | undefined> => {
      const { name, namespace: place } = object.metadata
      const judged = await api.apply(type, place, name, object, { dryRun: true })
      if (judged.ok) return undefined
      const hasNoTalos = judged.fault.kind === 'unsupported' && type.group === TALOS_ACCOUNT.group
      // What lies in a namespace, or is of a type, that is only about to be written cannot be judged yet.
      if (!hasNoTalos && (judged.fault.kind === 'notFound' || judged.fault.kind === 'unsupported')) return undefined
      return [nameOf(type, object), hasNoTalos ? NO_TALOS_ACCESS : (judged.fault.sentence ?? judged.fault.message)]
    }),
  )
  const refused = new Map([...unseen, ...said.filter(sentence => sentence !== undefined)])
  if (refused.size > 0)
    throw new Stop('refused', 'the API server does not take this; nothing was installed', [
      ...[...refused].map(([name, why]) => `${name}: ${why}`),
      ...([...refused.values()].includes(NO_TALOS_ACCESS) ? await howTalosIsTold(session) : []),
    ])
}

const NO_TALOS_ACCESS = 'this cluster has no Talos API access: its control planes have to allow it'

/** The patch, and the ways to bring it to the control planes: by an operation where Ichor knows them already. */
const howTalosIsTold = async ({ api, namespace, outside }: Session): Promise<readonly string[]> => {
  const machines = await api.list(MACHINE)
  const specs = (machines.ok ? machines.value : []).map(({ metadata, spec }) => ({
    ...metadata,
    ...(spec as { readonly clusterRef: { readonly name: string }; readonly role: string }),
  }))
  const first = specs.find(({ role }) => role === 'controlplane')
  const known = specs.filter(
    one => one.role === 'controlplane' && one.clusterRef.name === first?.clusterRef.name && one.namespace === first.namespace,
  )
  return [
    'This has to be in their machine configuration; it takes no reboot:',
    ...talosAccessPatch(namespace)
      .trimEnd()
      .split('\n')
      .map(line => `  ${line}`),
    `${outside.calledAs} install --talos-patch -n ${namespace} > talos-access.yaml writes it into a file.`,
    'For each of them: talosctl patch mc -n ADDRESS -p @talos-access.yaml',
    ...(first
      ? [
          `Or all of cluster ${first.clusterRef.name}: ${outside.calledAs} config rollout -f talos-access.yaml --cluster ${first.clusterRef.name} --machines ${known.map(({ name }) => name).join(',')} -n ${first.namespace} --wait`,
        ]
      : []),
  ]
}

const namespaceObject = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

const nameOf = (type: Resource, { metadata: { name, namespace } }: KubeObject): string =>
  `${qualifiedName(type, name)}${namespace ? ` in ${namespace}` : ''}`

const write = async (session: Session, type: Resource, object: KubeObject): Promise<void> => {
  const { name, namespace } = object.metadata
  const before = await session.api.get(type, namespace, name)
  const after = must(session, await session.api.apply(type, namespace, name, object), `install ${nameOf(type, object)}`)
  const isSame = before.ok && before.value.metadata.resourceVersion === after.metadata.resourceVersion
  session.terminal.out(`${nameOf(type, object)} ${!before.ok ? 'created' : isSame ? 'unchanged' : 'updated'}`)
}

const installCrds = async (session: Session, { dryRun }: Pick<Options, 'dryRun'>): Promise<void> => {
  const crds = await session.outside.crds()
  const moves = await plannedMoves(session, crds)
  if (dryRun) {
    await mustBeTaken(session, judgedNow(crds, moves))
    return tellMoves(session, moves)
  }
  for (const { isFirst, wanted } of moves) if (isFirst) await bringUpStored(session, wanted.metadata.name)
  for (const crd of crds) await write(session, CRD, crd)
  await Promise.all(crds.map(crd => established(session, crd.metadata.name)))
  for (const crd of crds) await bringUpStored(session, crd.metadata.name)
}

/** The API server takes a CRD without a version that it lists as stored only when that is no longer listed. */
const judgedNow = (crds: readonly KubeObject[], moves: readonly Move[]): readonly Writing[] =>
  crds
    .filter(crd => moves.every(({ isFirst, wanted }) => !isFirst || wanted.metadata.name !== crd.metadata.name))
    .map(object => ({ type: CRD, object }))

const tellMoves = ({ terminal }: Session, moves: readonly Move[]): void => {
  for (const { wanted, from, to } of moves)
    terminal.out(`${wanted.metadata.name}: objects stored as ${from.join(', ')} would be rewritten as ${to}`)
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
