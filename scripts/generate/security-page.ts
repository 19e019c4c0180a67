import type { StartRight } from '../../src/api/start-rights.ts'
import type { KubeObject } from '../../src/install/object.ts'
import { peoplesRoles } from '../../src/install/roles.ts'
import { DEEDS, IDENTITIES, mayDo } from '../../src/install/who-may.ts'
import type { Files } from './files.ts'
import { code, generatedFrom, list, page, table } from './markdown.ts'

export const securityPath = 'docs/security.md'

type Rule = { readonly apiGroups: readonly string[]; readonly resources: readonly string[]; readonly verbs: readonly string[] }

/** Who may do what. The table of deeds is the one that is asked of a real API server, cell by cell. */
export const securityPage = (rights: readonly StartRight[]): Files =>
  new Map([
    [
      securityPath,
      page(
        generatedFrom('src/install'),
        '# Who may do what',
        'An operation can reboot, upgrade or wipe machines. Who may start one is decided by the API server itself, whoever writes and with whatever program: by roles (RBAC) and by three admission policies, which fail closed. `ichor install` and the chart bring both.',
        '## Roles',
        'Bind them in the namespace where the TalosClusters live:',
        '```\nkubectl create rolebinding ada-operates --clusterrole=ichor-operator --user=ada -n ichor-system\n```',
        table(
          ['role', 'aggregated to', 'rules'],
          peoplesRoles(rights.map(right => right.subresource)).map(role => [code(role.metadata.name), aggregatedTo(role), rulesOf(role)]),
        ),
        "None of them reads a Secret. Kubernetes' own `edit` and `admin` do, in their namespace: who has one of them where the talosconfig lies can take it, and where the controller runs can run a pod as the controller. There, give `ichor-operator` and not `edit`.",
        '## What needs more than the right to create operations',
        table(
          ['what', 'verb', 'on'],
          [
            ...rights.map(({ subresource, kind, action }) => [
              action === undefined ? `an operation of kind ${code(kind)}` : `action ${code(action)} of kind ${code(kind)}`,
              code('start'),
              code(`talosoperations/${subresource}`),
            ]),
            [`${code('spec.override')}, ${code('spec.ignoreWindows')}`, code('override'), code('talosoperations')],
            ['`ichor lock release --force`, or any change of the Lease `ichor-CLUSTER`', code('unlock'), 'the TalosCluster of that name'],
            ['a patch that lies in a Secret or a ConfigMap (kind `config`)', code('get'), 'that Secret or ConfigMap'],
          ],
        ),
        'The same verb is needed to resume and to retry such an operation, and to delete it while it runs. Pausing and cancelling one needs none. What a namespace takes with it when it is deleted is let go.',
        'Where the policies are not there, not bound or narrowed, nobody is asked for these verbs, and the names below prove nothing. So the controller then refuses what needs `start` or `override` (`PoliciesMissing`).',
        'A role for one of them alone, for example for a job that resets machines:',
        '```yaml\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: resets\n  namespace: ichor-system\nrules:\n  - apiGroups: [ichor.maesh.dev]\n    resources: [talosoperations]\n    verbs: [create, get, list, watch]\n  - apiGroups: [ichor.maesh.dev]\n    resources: [talosoperations/node-reset]\n    verbs: [start]\n```',
        '## The locks',
        "The Lease `ichor-CLUSTER` is the lock of a cluster: while an operation has it, no other begins. The Lease `ichor-controller` says which controller leads. The controller writes both. Nobody else writes the leader's; the lock is changed, or deleted, by who may `unlock` that TalosCluster, and nobody but the controller gives it to an operation. The right to write Leases, which Kubernetes' `edit` and `admin` have, is not enough: a lock that was emptied while its holder works lets a second operation begin. Leases whose names begin with `ichor-` are taken for these in every namespace.",
        '## Names that cannot be forged',
        list([
          "`ichor.maesh.dev/requested-by` names who asked for an operation. It is that user's own name, as the API server knows it, or absent, and never changes. The CLI sets it.",
          '`ichor.maesh.dev/override-by` signs `spec.override`: who turns it on sets it to their own name in the same request; without it the request is refused. The Event `Overridden` then says who went past which rules.',
          '`status` is written by the controller alone; nobody else, a cluster-admin included, makes it say what was not done.',
          'The spec cannot be changed after creation, but for `paused`, `override` and `cancelled`, and the last two only to `true`.',
        ]),
        '## The table',
        'Asked of a real kube-apiserver with these roles and policies, for every kind, by every way that is named (`test/integration/rights.test.ts`). `GitOps` is the ServiceAccount of a tool such as Flux.',
        table(
          ['', ...IDENTITIES.map(({ name }) => name), 'asked by'],
          DEEDS.map(deed => [deed.name, ...IDENTITIES.map(identity => (mayDo(identity, deed) ? 'yes' : '–')), deed.ways.join(', ')]),
        ),
      ),
    ],
  ])

const aggregatedTo = ({ metadata }: KubeObject): string =>
  Object.keys(metadata.labels)
    .flatMap(label => /aggregate-to-(\w+)$/.exec(label)?.[1] ?? [])
    .map(code)
    .join(', ') || 'none'

const rulesOf = (role: KubeObject): string =>
  (role['rules'] as readonly Rule[]).map(({ resources, verbs }) => `${resources.map(code).join(', ')}: ${verbs.join(', ')}`).join('; ')
