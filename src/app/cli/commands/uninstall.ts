import type { Command } from 'commander'
import type { ApiResult } from '../../../adapters/kube/classify.ts'
import type { Resource } from '../../../adapters/kube/resource.ts'
import { isFinished } from '../../../api/phases.ts'
import { openTargets } from '../../../core/ledger.ts'
import { INSTANCE, MANAGED_BY, typeOf } from '../../../install/installation.ts'
import { ok, type Result } from '../../../ports/fault.ts'
import { FIELD_MANAGER, type KubeObject } from '../api.ts'
import { nameOf } from '../install-writes.ts'
import { CLUSTER, CRD, OPERATION, SECRET, TALOS_ACCOUNT } from '../resource-types.ts'
import type { Session } from '../session.ts'
import { confirm, confirmName, must, operationOf } from '../session.ts'
import { named, Stop } from '../stop.ts'
import { nextCommand, typed } from '../typed.ts'
import type { Shell } from './command.ts'
import { group, withExamples, works } from './command.ts'

type Options = { readonly crds?: boolean; readonly dryRun?: boolean; readonly yes?: boolean; readonly confirm?: string }

export const uninstallCommand = (shell: Shell): Command => {
  const uninstall = group('uninstall', 'Remove what ichor install wrote, and nothing else; clusters and operations stay')
    .option('--crds', 'the resource types as well, and with them every TalosCluster, machine and operation')
    .option('--confirm <namespace>', 'with --crds: the namespace of the installation, instead of being asked for it')
    .option('--dry-run', 'only say what would be removed')
    .option('-y, --yes', 'do not ask')
  withExamples(uninstall, shell, ['uninstall --dry-run', 'uninstall'])
  return works<Options>(uninstall, shell, (session, _, options) => remove(session, options))
}

type Found = { readonly type: Resource; readonly object: KubeObject }

const remove = async (session: Session, options: Options): Promise<void> => {
  const { api, terminal, namespace } = session
  const found = await installedHere(session)
  const crds = options.crds ? await ourCrds(session) : []
  const all = [...found, ...crds]
  if (all.length === 0) return terminal.out(`nothing of ichor install is in namespace ${namespace}`)
  await mustBeAtRest(session, options.crds === true)
  const left = await secretsLeft(session, options.crds === true)
  if (options.dryRun) {
    for (const { type, object } of all) terminal.out(`${nameOf(type, object)} would be removed`)
    terminal.out('Nothing was removed.')
    return tellLeft(session, left)
  }
  const question = `Remove Ichor (${all.length} objects) from ${session.server}?`
  if (options.crds) await confirmName(terminal, `${question} Every TalosCluster and operation goes with it.`, namespace, options.confirm)
  else await confirm(terminal, question, options.yes)
  // The controller first, so that nothing acts while what guards it goes away.
  for (const { type, object } of all.toReversed()) {
    const gone = await api.delete(type, object.metadata.namespace, object.metadata.name)
    if (!gone.ok && gone.fault.kind !== 'notFound') must(session, gone, `remove ${nameOf(type, object)}`)
    terminal.out(`${nameOf(type, object)} removed`)
  }
  if (!options.crds)
    terminal.err(
      `The resource types and what is stored of them stay; this removes them: ${nextCommand(session, `uninstall --crds -n ${session.namespace}`)}`,
    )
  tellLeft(session, left)
}

/** Neither an object nor a type of that name is there. */
const isUnknown = (answer: ApiResult<unknown>): boolean =>
  !answer.ok && (answer.fault.kind === 'notFound' || answer.fault.kind === 'unsupported')

/** What `ichor cluster add` wrote, a Secret for each credential. With the types go the clusters of all namespaces. */
const secretsLeft = async ({ api, namespace }: Session, everywhere: boolean): Promise<Result<readonly KubeObject[]>> => {
  const listed = await api.list(SECRET, everywhere ? undefined : namespace)
  if (!listed.ok) return listed
  const isWrittenHere = ({ metadata: { managedFields } }: KubeObject): boolean =>
    Array.isArray(managedFields) && managedFields.some(entry => (entry as { readonly manager?: string }).manager === FIELD_MANAGER)
  return ok(listed.value.filter(isWrittenHere))
}

/** Each lets whoever reads it do anything with its machines. */
const tellLeft = ({ terminal, outside, choice }: Session, left: Result<readonly KubeObject[]>): void => {
  if (!left.ok) return terminal.err(`Whether Secrets of ichor cluster add stay is not known: ${left.fault.message}`)
  if (left.value.length === 0) return
  terminal.err('Secrets that ichor cluster add wrote stay, with the keys of their clusters. Where a cluster is not to come back:')
  for (const { metadata } of left.value)
    terminal.err(`  ${typed(`kubectl delete secret ${metadata.name} -n ${metadata.namespace}`, outside.calledAs, choice)}`)
}

/** What bears the marks of an installation in this namespace: whatever flags it was installed with. */
const installedHere = async (session: Session): Promise<readonly Found[]> => {
  const { api, outside, namespace } = session
  const wanted = { namespace, controller: { image: 'any' }, policies: true, talosCluster: 'any' }
  const candidates = [
    ...(await outside.installed({ ...wanted, allNamespaces: false })),
    ...(await outside.installed({ ...wanted, allNamespaces: true })),
  ]
  const isOf = ({ metadata: { labels } }: KubeObject): boolean => labels?.[MANAGED_BY] === 'ichor' && labels[INSTANCE] === namespace
  const seen = new Map<string, Found>()
  for (const candidate of candidates) {
    const type = typeOf(candidate as never)
    if (type.kind === CLUSTER.kind || type.group === TALOS_ACCOUNT.group) continue
    const key = nameOf(type, candidate)
    if (seen.has(key)) continue
    const now = await api.get(type, candidate.metadata.namespace, candidate.metadata.name)
    // An API server before Kubernetes 1.30 knows no admission policies.
    if (isUnknown(now)) continue
    const object = must(session, now, `look whether ${key} exists`)
    if (isOf(object)) seen.set(key, { type, object })
  }
  const lists = await Promise.all(
    [CLUSTER, TALOS_ACCOUNT].map(async type => {
      const listed = await api.list(type, namespace)
      // Types that are not served have no objects.
      if (isUnknown(listed)) return []
      const word = type === CLUSTER ? 'clusters' : "Talos' ServiceAccounts"
      return must(session, listed, `list ${word}`)
        .filter(isOf)
        .map(object => ({ type, object }))
    }),
  )
  return [...seen.values(), ...lists.flat()]
}

const ourCrds = async (session: Session): Promise<readonly Found[]> => {
  const all = await Promise.all((await session.outside.crds()).map(crd => session.api.get(CRD, undefined, crd.metadata.name)))
  return all.flatMap(found => (isUnknown(found) ? [] : [{ type: CRD, object: must(session, found, 'look for the resource types') }]))
}

/** A machine that is half done would stay so, cordoned perhaps, with nobody to bring it to its end. */
const mustBeAtRest = async (session: Session, everywhere: boolean): Promise<void> => {
  const { api, namespace } = session
  const listed = await api.list(OPERATION)
  // Without the type there is none. Whoever may not see them, or is not answered, does not know that.
  if (isUnknown(listed)) return
  const open = must(session, listed, 'look whether operations are at work').filter(object => {
    const { metadata, status } = operationOf(object)
    // One that failed on a machine still carries the others that are open to their end.
    const isAtWork = status.phase === 'Running' || (!isFinished(status.phase) && openTargets(status).length > 0)
    return isAtWork || (everywhere && metadata.finalizers.length > 0)
  })
  if (open.length > 0)
    throw new Stop(
      'refused',
      `operations are at work: ${named(open.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))}; nothing was removed`,
      [`Let them end, or stop them: ${nextCommand(session, `operation cancel NAME -n ${open[0]?.metadata.namespace ?? namespace}`)}`],
    )
}
