import { gapsBetween, type InstalledPolicy, POLICY_TYPES } from '../../adapters/kube/policies.ts'
import { RESOURCE } from '../../adapters/kube/resource.ts'
import { CONTROLLER } from '../../api/names.ts'
import type { Certificate } from '../../core/looks/cluster-sight.ts'
import type { CrdFacts, DeploymentSight, InstallationSight, PodSight } from '../../core/looks/installation-sight.ts'
import { unaskedText } from '../../core/looks/unasked.ts'
import { INSTANCE, MANAGED_BY } from '../../install/installation.ts'
import { POLICY } from '../../install/policies.ts'
import { CONTROLLER_ACCOUNT, userOf } from '../../install/roles.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { KubeObject } from '../cli/api.ts'
import { userOfPolicies } from '../cli/installed-policies.ts'
import { CRD, DEPLOYMENT, LEASE } from '../cli/resource-types.ts'
import { type Session, whoAmI } from '../cli/session.ts'
import { controllerLacks, ownAbilities } from './rights.ts'

/** Looks at the installation with the rights of whoever asks, in whatever namespace it is. Reads only. */
export const installationSight = async (asking: Session, certificates: readonly Certificate[]): Promise<InstallationSight> => {
  const { api, outside, server, terminal, namespace: asked } = asking
  const [version, serverClock, wanted] = await Promise.all([api.serverVersion(), api.clockAhead(), outside.crds()])
  const session = version.ok ? { ...asking, namespace: await placeOf(asking) } : asking
  const { namespace } = session
  const about = { now: terminal.now(), namespace, asked, program: outside.version, server, version, serverClock, certificates }
  const wantedCrds = Object.fromEntries(wanted.map(crd => [crd.metadata.name, crdFacts(crd)]))
  // Every question would wait for the same deadline, and be answered with the same words.
  if (!version.ok) {
    const away = failed(version.fault.kind, unaskedText(version.fault))
    return {
      ...{
        ...about,
        wantedCrds,
        policiesFor: undefined,
        self: session.user,
        serverClock: away,
        policies: away,
        own: away,
        controllerLacks: away,
        deployment: away,
        lease: away,
      },
      crds: Object.fromEntries(wanted.map(crd => [crd.metadata.name, away])),
    }
  }
  const [crds, deployment, lease, own, policiesFor, self] = await Promise.all([
    Promise.all(wanted.map(async ({ metadata: { name } }) => [name, await optional(session, CRD, undefined, name, crdFacts)] as const)),
    deploymentOf(session),
    optional(session, LEASE, namespace, CONTROLLER, leaseOf),
    ownAbilities(asking),
    userOfPolicies(session),
    whoAmI(session),
  ])
  const user = deployment.ok && deployment.value ? accountIn(namespace) : (policiesFor ?? accountIn(namespace))
  const [policies, lacks] = await Promise.all([
    policyFacts(session, user),
    controllerLacks(session, { user, isEverywhere: deployment.ok && deployment.value?.isEverywhere === true, self }),
  ])
  return {
    ...about,
    ...{ wantedCrds, crds: Object.fromEntries(crds), policies, policiesFor, self, own, controllerLacks: lacks, lease, deployment },
  }
}

/** The namespace that is asked about, unless nothing of a controller is in it, and the marks of an installation are of another one. */
const placeOf = async ({ api, namespace }: Session): Promise<string> => {
  const here = await Promise.all([api.get(DEPLOYMENT, namespace, CONTROLLER), api.get(LEASE, namespace, CONTROLLER)])
  if (here.some(found => found.ok || found.fault.kind !== 'notFound')) return namespace
  const marked = await api.get(POLICY_TYPES['ValidatingAdmissionPolicy']!, undefined, POLICY.status)
  if (!marked.ok) return namespace
  const { labels, annotations } = marked.value.metadata
  return (labels?.[MANAGED_BY] === 'Helm' ? annotations?.[RELEASE_NAMESPACE] : labels?.[INSTANCE]) ?? namespace
}

const optional = async <T>(
  { api }: Session,
  type: typeof CRD | typeof LEASE,
  namespace: string | undefined,
  name: string,
  read: (object: KubeObject) => T,
): Promise<Result<T | undefined>> => {
  const found = await api.get(type, namespace, name)
  if (found.ok) return ok(read(found.value))
  return found.fault.kind === 'notFound' ? ok(undefined) : found
}

type Spec = {
  readonly versions?: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean; readonly schema?: unknown }[]
}
type Condition = { readonly type: string; readonly status: string; readonly message?: string }

const crdFacts = ({ spec, status }: KubeObject): CrdFacts => {
  const { conditions = [], storedVersions = [] } = (status ?? {}) as {
    readonly conditions?: readonly Condition[]
    readonly storedVersions?: readonly string[]
  }
  const bad = conditions.find(({ type, status: is }) => (type === 'NamesAccepted' || type === 'Established') && is !== 'True')
  return {
    versions: ((spec as Spec | undefined)?.versions ?? []).map(({ name, served, storage, schema }) => ({ name, served, storage, schema })),
    stored: storedVersions,
    established: conditions.some(({ type, status: is }) => type === 'Established' && is === 'True'),
    message: bad?.message ?? '',
  }
}

const leaseOf = ({ spec }: KubeObject) => {
  const {
    holderIdentity = '',
    renewTime = '',
    leaseDurationSeconds = 0,
  } = (spec ?? {}) as {
    readonly holderIdentity?: string
    readonly renewTime?: string
    readonly leaseDurationSeconds?: number
  }
  return { holder: holderIdentity, renewed: Date.parse(renewTime) || 0, lastsMs: leaseDurationSeconds * 1000 }
}

const accountIn = (namespace: string): string => userOf({ name: CONTROLLER_ACCOUNT, namespace })

const policyFacts = async ({ api, namespace, outside }: Session, user: string): Promise<InstallationSight['policies']> => {
  const wanted = await outside.installed({ namespace, controller: { user }, policies: true, allNamespaces: false })
  const expected = wanted.filter(({ kind }) => kind !== undefined && kind in POLICY_TYPES) as readonly (KubeObject & InstalledPolicy)[]
  const gaps = await gapsBetween((type, name) => api.get(type, undefined, name), expected, user)
  return gaps.ok ? ok({ gaps: gaps.value, controller: user }) : gaps
}

type PodTemplate = { readonly containers?: readonly { readonly image?: string; readonly args?: readonly string[] }[] }

const deploymentOf = async (session: Session): Promise<Result<DeploymentSight | undefined>> => {
  const { api, namespace } = session
  const found = await api.get(DEPLOYMENT, namespace, CONTROLLER)
  if (!found.ok) return found.fault.kind === 'notFound' ? ok(undefined) : found
  const { replicas = 1, template } = (found.value.spec ?? {}) as {
    readonly replicas?: number
    readonly template?: { readonly spec?: PodTemplate }
  }
  const { labels, annotations } = found.value.metadata
  const [container] = template?.spec?.containers ?? []
  const { availableReplicas = 0 } = (found.value.status ?? {}) as { readonly availableReplicas?: number }
  return ok({
    ...{ replicas, available: availableReplicas, image: container?.image ?? '', pods: await podsOf(session) },
    isEverywhere: container?.args?.includes('--namespace=') === true,
    ...(labels?.[MANAGED_BY] === 'Helm' ? { release: annotations?.[RELEASE] ?? labels[INSTANCE] ?? CONTROLLER } : {}),
  })
}

const RELEASE = 'meta.helm.sh/release-name'
const RELEASE_NAMESPACE = 'meta.helm.sh/release-namespace'

const podsOf = async ({ api, namespace }: Session): Promise<Result<readonly PodSight[]>> => {
  const listed = await api.list(RESOURCE.pod, namespace)
  if (!listed.ok) return failed(listed.fault.kind, listed.fault.message)
  return ok(
    listed.value
      .filter(({ metadata: { labels, deletionTimestamp } }) => labels?.['app.kubernetes.io/name'] === 'ichor' && !deletionTimestamp)
      .map(podSight),
  )
}

type Waiting = { readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } } }

const podSight = ({ metadata, spec, status }: KubeObject): PodSight => {
  const { conditions = [], containerStatuses = [] } = (status ?? {}) as {
    readonly conditions?: readonly Condition[]
    readonly containerStatuses?: readonly Waiting[]
  }
  const waiting = containerStatuses.map(({ state }) => state?.waiting).find(one => one !== undefined)
  const unplaced = conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False')
  return {
    name: metadata.name,
    node: (spec as { readonly nodeName?: string } | undefined)?.nodeName ?? '',
    ready: conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    why: waiting ? [waiting.reason, waiting.message].filter(Boolean).join(': ') : (unplaced?.message ?? ''),
  }
}
