import type { Command } from 'commander'
import { typeOf } from '../../../install/installation.ts'
import { talosAccessPatch } from '../../../install/talos-access-patch.ts'
import type { KubeObject } from '../api.ts'
import { CRD, DEPLOYMENT, NAMESPACE } from '../resource-types.ts'
import { mustBeOurs, mustHavePolicies, mustKeepController } from '../install-guards.ts'
import { tellStaying } from '../installed-policies.ts'
import { type InstallOptions, wantedOf, withInstallOptions } from '../install-options.ts'
import { type Found, type Judged, lookAt, mustBeTaken, tell, write, type Writing } from '../install-writes.ts'
import type { GlobalOptions, Outside, Session } from '../session.ts'
import { defaultNamespace, openSession, whoAmI } from '../session.ts'
import { Stop } from '../stop.ts'
import { bringUpStored, type Move, plannedMoves } from '../stored-versions.ts'
import { timeoutOf } from '../timeout.ts'
import { until } from '../until.ts'
import type { Shell } from './command.ts'
import { group, withExamples } from './command.ts'

const ESTABLISHED_MS = 60_000
export const installCommand = (shell: Shell): Command => {
  const install = withInstallOptions(group('install', 'Install Ichor into the cluster, or bring it up to date'))
  withExamples(install, shell, [
    'install --image registry.example.org/ichor:0.1.0',
    'install --image registry.example.org/ichor:0.1.0 --talos-cluster home',
    'install --talos-patch > talos-access.yaml',
    'install --image registry.example.org/ichor:0.1.0 -o yaml > ichor.yaml',
    'install --no-controller',
  ])
  return install.action(async () => {
    const options = install.optsWithGlobals<InstallOptions & GlobalOptions>()
    if (options.talosPatch || options.output) await print(shell.outside, options)
    else await (options.crdsOnly ? installCrds : installAll)(await openSession(shell.outside, options), options)
    shell.leave('ok')
  })
}

/** What needs no API server, so that it is the same wherever it is printed. */
const print = async (outside: Outside, options: InstallOptions & GlobalOptions): Promise<void> => {
  const namespace = options.namespace ?? defaultNamespace
  if (options.talosPatch) return outside.terminal.out(talosAccessPatch(namespace).trimEnd())
  const rest = options.crdsOnly
    ? []
    : [
        namespaceObject(namespace),
        ...(await outside.installed(
          wantedOf(options, namespace, () => {
            throw new Stop('usage', 'as which user of the API server the controller runs cannot be asked here: add --controller-user')
          }),
        )),
      ]
  const texts = await Promise.all([...(await outside.crds()), ...rest].map(object => outside.yaml(object)))
  outside.terminal.out(`# Ichor ${outside.version}, as ichor install -o yaml prints it.\n${texts.join('---\n').trimEnd()}`)
}

const installAll = async (session: Session, options: InstallOptions): Promise<void> => {
  const { outside, namespace } = session
  const me = options.controller ? '' : await whoAmI(session)
  const asked = wantedOf(options, namespace, () => me)
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
  // After what the API server misses: the controller that is here may be what brings it.
  await mustKeepController(session, asked, options.controllerUser !== undefined)
  await tellStaying(session, asked)
  if (options.dryRun) return tellAll(session, judged, moves)
  if (isNew) await write(session, space)
  await writeTypes(session, types, moves)
  for (const one of rest) await write(session, one)
  if (options.wait && options.controller) await available(session, timeoutMs)
}

const namespaceObject = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

const installCrds = async (session: Session, { dryRun }: Pick<InstallOptions, 'dryRun'>): Promise<void> => {
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

type DeploymentStatus = { readonly observedGeneration?: number; readonly replicas?: number; readonly updatedReplicas?: number }

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
    (conditions, { metadata, status }) => {
      const { observedGeneration, replicas = 0, updatedReplicas = 0 } = (status ?? {}) as DeploymentStatus
      // What was there before stays available for as long as what is new does not come up.
      return (
        observedGeneration === metadata.generation &&
        replicas <= updatedReplicas &&
        conditions.some(({ type, status: is }) => type === 'Available' && is === 'True')
      )
    },
  )
