import type { Resource } from '../../adapters/kube/resource.ts'
import { GROUP } from '../../api/names.ts'
import type { Ability, InstallationSight } from '../../core/looks/installation-sight.ts'
import { CONTROLLER_ACCOUNT, type Rule } from '../../install/roles.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { Session } from '../cli/session.ts'

const review = (kind: string): Resource => ({ group: 'authorization.k8s.io', version: 'v1', plural: `${kind.toLowerCase()}s`, kind })
const SELF = review('SelfSubjectAccessReview')
const OTHER = review('SubjectAccessReview')

type Attributes = { readonly verb: string; readonly group: string; readonly resource: string; readonly subresource?: string }
type Asked =
  | { readonly resourceAttributes: Attributes & { readonly namespace?: string } }
  | { readonly nonResourceAttributes: { readonly path: string; readonly verb: string } }

const allowed = async ({ api }: Session, type: Resource, spec: Asked): Promise<Result<boolean>> => {
  const answer = await api.create(type, undefined, { apiVersion: 'authorization.k8s.io/v1', kind: type.kind, metadata: {}, spec })
  return answer.ok ? ok((answer.value.status as { readonly allowed?: boolean } | undefined)?.allowed === true) : answer
}

const own = (verb: string, resource: string, subresource?: string): Attributes => ({
  ...{ verb, group: GROUP, resource },
  ...(subresource === undefined ? {} : { subresource }),
})

/** What people do with Ichor, and what each needs, all of it. `dangerous`: what the verb start is on. */
const abilities = (dangerous: readonly string[]): readonly { readonly what: string; readonly needs: readonly Attributes[] }[] => [
  { what: 'see operations, clusters and machines', needs: [own('list', 'talosoperations'), own('list', 'talosclusters')] },
  { what: 'start and steer operations', needs: [own('create', 'talosoperations'), own('patch', 'talosoperations')] },
  { what: 'start what can take a cluster down', needs: dangerous.map(subresource => own('start', 'talosoperations', subresource)) },
  { what: 'override refusals', needs: [own('override', 'talosoperations')] },
  { what: 'add clusters', needs: [own('create', 'talosclusters'), { verb: 'create', group: '', resource: 'secrets' }] },
  { what: 'read talosconfigs', needs: [{ verb: 'get', group: '', resource: 'secrets' }] },
]

export const ownAbilities = async (session: Session): Promise<Result<readonly Ability[]>> => {
  const { namespace, outside } = session
  const objects = await outside.installed({ namespace, controller: { image: 'any' }, policies: false, allNamespaces: false })
  const dangerous = objects
    .flatMap(rulesOf)
    .filter(({ verbs }) => verbs.includes('start'))
    .flatMap(({ resources = [] }) => resources.map(resource => resource.replace(/^.*\//, '')))
  const asked = await Promise.all(
    abilities([...new Set(dangerous)]).map(async ({ what, needs }) => {
      const answers = await Promise.all(needs.map(need => allowed(session, SELF, { resourceAttributes: { ...need, namespace } })))
      return { what, answers }
    }),
  )
  const fault = asked.flatMap(({ answers }) => answers).find(answer => !answer.ok)
  if (fault && !fault.ok) return fault
  return ok(asked.map(({ what, answers }) => ({ what, may: answers.every(answer => answer.ok && answer.value) })))
}

/** Each single thing that the controller's roles are to allow, asked of the API server itself: whatever grants it counts. */
export const controllerLacks = async (
  session: Session,
  { user, isEverywhere, self }: { readonly user: string; readonly isEverywhere: boolean; readonly self: string },
): Promise<InstallationSight['controllerLacks']> => {
  const { namespace, outside } = session
  const account = /^system:serviceaccount:([^:]+):/.exec(user)
  if (!account && user !== self)
    return failed('unsupported', `the controller runs as ${user}, and whose groups are told to nobody else: run ichor doctor as that user`)
  const objects = await outside.installed({ namespace, controller: { image: 'any' }, policies: false, allNamespaces: isEverywhere })
  const questions = objects
    .filter(({ kind, metadata }) => (kind === 'Role' || kind === 'ClusterRole') && metadata.name === CONTROLLER_ACCOUNT)
    .flatMap(object => questionsOf(rulesOf(object), object.metadata.namespace))
  const who = account ? { user, groups: ['system:serviceaccounts', `system:serviceaccounts:${account[1]}`, 'system:authenticated'] } : {}
  const answers = await Promise.all(questions.map(asked => allowed(session, account ? OTHER : SELF, { ...asked, ...who })))
  const fault = answers.find(answer => !answer.ok)
  if (fault && !fault.ok) return fault
  return ok(questions.filter((_, index) => !(answers[index]?.ok && answers[index].value)).map(said))
}

const rulesOf = (object: object): readonly Rule[] => (object as { readonly rules?: readonly Rule[] }).rules ?? []

const questionsOf = (rules: readonly Rule[], namespace: string | undefined): readonly Asked[] =>
  rules.flatMap(({ apiGroups = [], resources = [], nonResourceURLs = [], verbs }) => [
    ...nonResourceURLs.flatMap(path => verbs.map(verb => ({ nonResourceAttributes: { path, verb } }))),
    ...apiGroups.flatMap(group =>
      resources.flatMap(named => {
        const [resource = '', subresource] = named.split('/')
        return verbs.map(verb => ({
          resourceAttributes: {
            ...{ verb, group, resource },
            ...(subresource === undefined ? {} : { subresource }),
            ...(namespace === undefined ? {} : { namespace }),
          },
        }))
      }),
    ),
  ])

/** `patch nodes`, `create pods/eviction in ichor-system`. */
const said = (asked: Asked): string => {
  if ('nonResourceAttributes' in asked) return `${asked.nonResourceAttributes.verb} ${asked.nonResourceAttributes.path}`
  const { verb, group, resource, subresource, namespace } = asked.resourceAttributes
  const type = `${resource}${group === '' ? '' : `.${group}`}${subresource === undefined ? '' : `/${subresource}`}`
  return `${verb} ${type}${namespace === undefined ? '' : ` in ${namespace}`}`
}
