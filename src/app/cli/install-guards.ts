// What an installation must not go over: a cluster that is too old for it, what others wrote, a controller that it would cut off.
import { INSTANCE, isOurs, MANAGED_BY } from '../../install/installation.ts'
import { CONTROLLER_ACCOUNT, userOf } from '../../install/roles.ts'
import { userOfPolicies } from './installed-policies.ts'
import type { Wanted } from './install-objects.ts'
import { type Found, nameOf } from './install-writes.ts'
import { CLUSTER, CRD, DEPLOYMENT, NAMESPACE } from './resource-types.ts'
import type { Session } from './session.ts'
import { must } from './session.ts'
import { Stop } from './stop.ts'
import { nextCommand } from './typed.ts'

/** ValidatingAdmissionPolicy is stable since then. */
const POLICIES_SINCE = 30

export const mustHavePolicies = async (session: Session, { policies }: Wanted): Promise<void> => {
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
export const mustBeOurs = (session: Session, found: readonly Found[]): void => {
  const { namespace } = session
  // Of a namespace and of types it is not asked whose they are: they may be there before, and stay.
  const whose = found.filter(({ type }) => type !== NAMESPACE && type !== CRD)
  const foreign = whose.filter(({ now }) => now && !isOurs(now.metadata.labels))
  if (foreign.length > 0) throw foreignStop(foreign)
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
        `-n ${elsewhere} brings that one up to date; one controller looks after all namespaces with --all-namespaces.`,
        `This removes it: ${nextCommand(session, `uninstall -n ${elsewhere}`)}`,
      ],
    )
}

const foreignStop = (foreign: readonly Found[]): Stop => {
  const clusters = foreign.filter(({ type }) => type.group === CLUSTER.group && type.plural === CLUSTER.plural)
  const isOnlyCluster = clusters.length === foreign.length
  return new Stop(
    'refused',
    isOnlyCluster
      ? 'the cluster of --talos-cluster is there already, and was not added by ichor install; nothing was installed'
      : 'objects of these names exist and are not of Ichor; nothing was installed',
    [
      ...foreign.map(({ type, object }) => nameOf(type, object)),
      ...(clusters.length > 0
        ? ['Leave --talos-cluster out; docs/install.md tells how a cluster that was added changes over to a talosconfig from Talos.']
        : []),
      ...(isOnlyCluster
        ? []
        : ['Look whose they are (kubectl get … -o yaml), delete those that nobody needs (kubectl delete …), and install again.']),
    ],
  )
}

/**
 * The policies know one controller, by its user. For another one they would let nothing of the first pass any more, which goes on running. `isNamed`:
 * whoever installs says which user it is.
 */
export const mustKeepController = async (session: Session, { controller, policies }: Wanted, isNamed: boolean): Promise<void> => {
  const { api, namespace } = session
  const account = userOf({ name: CONTROLLER_ACCOUNT, namespace })
  const user = 'user' in controller ? controller.user : account
  const known = await userOfPolicies(session)
  const isInside = (await api.get(DEPLOYMENT, namespace, CONTROLLER_ACCOUNT)).ok
  const now = isInside ? account : known
  const isHeld = policies || known !== undefined
  const isChosen = isNamed && policies && !isInside
  if (now === undefined || now === user || !isHeld || isChosen) return
  throw new Stop(
    'refused',
    `the controller that is here runs as ${now}, and one that runs as ${user} cannot stand beside it: the policies let only one write. Nothing was installed`,
    [
      `${isInside ? 'Remove it' : 'End it, and remove the installation'} first; clusters and operations stay: ${nextCommand(session, `uninstall -n ${namespace}`)}`,
      ...('user' in controller && !isInside && policies ? [`Or say that it has gone: --controller-user ${user}`] : []),
    ],
  )
}
