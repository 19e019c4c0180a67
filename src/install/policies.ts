import { ANNOTATION, CONTROLLER, GROUP, leaseName } from '../api/names.ts'
import type { StartRight } from '../api/start-rights.ts'
import type { KubeObject } from './object.ts'
import { object } from './object.ts'

/**
 * What the API server itself refuses, whoever writes (spec 8). CEL, evaluated by ValidatingAdmissionPolicy v1 (Kubernetes 1.30 and newer) with its
 * authorizer, which is asked for the verbs `start`, `override` and `unlock`. Each fails closed.
 */

const API = 'admissionregistration.k8s.io/v1'

/** Names of the policies; each is bound by a binding of the same name. */
export const POLICY = { operations: 'ichor-operations', status: 'ichor-status', leases: 'ichor-leases' } as const

type Validation = { readonly expression: string; readonly messageExpression: string; readonly reason: 'Forbidden' | 'Invalid' }
type Policy = {
  readonly name: string
  /** Absent: Ichor's own. */
  readonly group?: string
  readonly operations: readonly string[]
  readonly resources: readonly string[]
  readonly conditions?: readonly { readonly name: string; readonly expression: string }[]
  readonly variables: Readonly<Record<string, string>>
  readonly validations: readonly Validation[]
}

const quoted = (text: string): string => `'${text}'`
const username = 'request.userInfo.username'

/** Who deletes what a namespace or an owner held. Refusing them would leave a namespace that never ends. */
const CLEANERS = [
  'system:serviceaccount:kube-system:namespace-controller',
  'system:serviceaccount:kube-system:generic-garbage-collector',
  // Of a controller manager whose loops have no accounts of their own.
  'system:kube-controller-manager',
]

const isCleaner = `${username} in [${CLEANERS.map(quoted).join(', ')}]`
const notTheController = (controller: string) => ({ name: 'not-the-controller', expression: `${username} != ${quoted(controller)}` })

const isOf = ({ kind, block, action }: StartRight): string =>
  action === undefined
    ? `variables.spec.kind == ${quoted(kind)}`
    : `(variables.spec.kind == ${quoted(kind)} && variables.spec.?${block}.?action.orValue('') == ${quoted(action)})`

const annotation = (of: 'object' | 'oldObject', name: string): string => `${of}.metadata.?annotations[?${quoted(name)}].orValue('')`
const may = (verb: string, subresource = ''): string =>
  `authorizer.group(${quoted(GROUP)}).resource('talosoperations')${subresource}.namespace(request.namespace).check(${quoted(verb)}).allowed()`

/** Patches that lie in a Secret or a ConfigMap: the controller reads them for whoever names them, so who names one must be one who may read it. */
const READS = { secretKeyRef: 'secrets', configMapKeyRef: 'configmaps' } as const
const mayReadPatches = Object.entries(READS)
  .map(
    ([field, resource]) =>
      `variables.patches.all(patch, !has(patch.${field}) || authorizer.group('').resource(${quoted(resource)}).namespace(request.namespace).name(patch.${field}.name).check('get').allowed())`,
  )
  .join(' && ')

const operations = (rights: readonly StartRight[], controller: string): Policy => ({
  name: POLICY.operations,
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  resources: ['talosoperations'],
  conditions: [notTheController(controller)],
  variables: {
    spec: "request.operation == 'DELETE' ? oldObject.spec : object.spec",
    // The subresource on which the verb start is needed.
    right: rights.reduceRight((others, right) => `${isOf(right)} ? ${quoted(right.subresource)} : ${others}`, "''"),
    unpauses: "request.operation == 'UPDATE' && oldObject.spec.?paused.orValue(false) && !object.spec.?paused.orValue(false)",
    retries: `request.operation == 'UPDATE' && ${annotation('object', ANNOTATION.retry)} == 'true' && ${annotation('oldObject', ANNOTATION.retry)} != 'true'`,
    // Deleted while it may have a machine half done: Running, or Paused after it began.
    interrupts: `request.operation == 'DELETE' && oldObject.?status.?phase.orValue('') in ['Running', 'Paused'] && size(oldObject.?status.?machines.orValue([])) > 0 && !(${isCleaner})`,
    starts: "request.operation == 'CREATE' || variables.unpauses || variables.retries || variables.interrupts",
    overrides:
      "request.operation == 'CREATE' ? (object.spec.?override.orValue(false) || object.spec.?ignoreWindows.orValue(false)) : request.operation == 'UPDATE' && object.spec.?override.orValue(false) && !oldObject.spec.?override.orValue(false)",
    patches: "request.operation == 'CREATE' ? object.spec.?config.?patches.orValue([]) : []",
    requestedBy: `request.operation == 'DELETE' ? '' : ${annotation('object', ANNOTATION.requestedBy)}`,
    requestedByBefore: `request.operation == 'UPDATE' ? ${annotation('oldObject', ANNOTATION.requestedBy)} : ''`,
    overrideBy: `request.operation == 'DELETE' ? '' : ${annotation('object', ANNOTATION.overrideBy)}`,
    overrideByBefore: `request.operation == 'UPDATE' ? ${annotation('oldObject', ANNOTATION.overrideBy)} : ''`,
  },
  validations: [
    {
      expression: `!variables.starts || variables.right == '' || ${may('start', '.subresource(variables.right)')}`,
      messageExpression: `${username} + ' needs the verb start on talosoperations/' + variables.right + ' in namespace ' + request.namespace + ' to ' + (request.operation == 'CREATE' ? 'start' : request.operation == 'DELETE' ? 'delete' : variables.retries ? 'retry' : 'resume') + ' this operation; the ClusterRole ichor-admin has it'`,
      reason: 'Forbidden',
    },
    {
      expression: `!variables.overrides || ${may('override')}`,
      messageExpression: `${username} + ' needs the verb override on talosoperations in namespace ' + request.namespace + ' to set spec.override or spec.ignoreWindows; the ClusterRole ichor-admin has it'`,
      reason: 'Forbidden',
    },
    {
      expression: mayReadPatches,
      messageExpression: `${username} + ' needs the verb get on each Secret and ConfigMap in namespace ' + request.namespace + ' that a patch names: its text is written into machine configurations'`,
      reason: 'Forbidden',
    },
    {
      expression: `!(variables.overrides && object.spec.?override.orValue(false)) || variables.overrideBy == ${username}`,
      messageExpression: `'who sets spec.override signs it: set the annotation ${ANNOTATION.overrideBy} to "' + ${username} + '"'`,
      reason: 'Invalid',
    },
    {
      expression: `request.operation == 'DELETE' || variables.overrideBy == variables.overrideByBefore || (variables.overrides && variables.overrideBy == ${username})`,
      messageExpression: `'the annotation ${ANNOTATION.overrideBy} is set together with spec.override, to the name of who sets it, and is not changed after that'`,
      reason: 'Invalid',
    },
    {
      expression: `request.operation == 'DELETE' || variables.requestedBy == variables.requestedByBefore || (request.operation == 'CREATE' && variables.requestedBy == ${username})`,
      messageExpression: `'the annotation ${ANNOTATION.requestedBy} is set when the operation is created, to "' + ${username} + '" or not at all, and is not changed after that'`,
      reason: 'Invalid',
    },
  ],
})

const status = (controller: string): Policy => ({
  name: POLICY.status,
  operations: ['UPDATE'],
  resources: ['talosclusters/status', 'talosmachines/status', 'talosoperations/status', 'etcdsnapshots/status'],
  variables: {},
  validations: [
    {
      expression: `${username} == ${quoted(controller)}`,
      messageExpression: "'status is what the controller of Ichor has seen and done: nobody else writes it'",
      reason: 'Forbidden',
    },
  ],
})

const LOCK_PREFIX = leaseName('')

/**
 * A cluster lock that is empty, or in another's hands, lets two disruptive works overlap, and two leaders would do each act twice. Names beginning with
 * `ichor-` are ours in every namespace: the namespaces of clusters are not known before.
 */
const leases = (controller: string): Policy => ({
  name: POLICY.leases,
  group: 'coordination.k8s.io',
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  resources: ['leases'],
  conditions: [
    { name: 'of-ichor', expression: `(object == null ? oldObject : object).metadata.?name.orValue('').startsWith(${quoted(LOCK_PREFIX)})` },
    notTheController(controller),
  ],
  variables: {
    lease: "request.operation == 'DELETE' ? oldObject : object",
    name: 'variables.lease.metadata.name',
    cluster: `variables.name.substring(${LOCK_PREFIX.length})`,
    cleans: `request.operation == 'DELETE' && ${isCleaner}`,
    holder: "variables.lease.spec.?holderIdentity.orValue('')",
    holderBefore: "request.operation == 'UPDATE' ? oldObject.spec.?holderIdentity.orValue('') : ''",
  },
  validations: [
    {
      expression: `variables.cleans || variables.name != ${quoted(CONTROLLER)}`,
      messageExpression: `'the Lease ${CONTROLLER} says which controller of Ichor leads: nobody else writes it'`,
      reason: 'Forbidden',
    },
    {
      expression: `variables.cleans || variables.name == ${quoted(CONTROLLER)} || authorizer.group(${quoted(GROUP)}).resource('talosclusters').namespace(request.namespace).name(variables.cluster).check('unlock').allowed()`,
      messageExpression: `${username} + ' needs the verb unlock on talosclusters/' + variables.cluster + ' in namespace ' + request.namespace + ' to change the lock of that cluster; the ClusterRole ichor-admin has it'`,
      reason: 'Forbidden',
    },
    {
      expression: `request.operation == 'DELETE' || variables.holder == variables.holderBefore || !variables.holder.startsWith(${quoted(`${CONTROLLER}/`)})`,
      messageExpression: "'only the controller of Ichor gives the lock of a cluster to an operation'",
      reason: 'Forbidden',
    },
  ],
})

const objectsOf = ({
  name,
  group = GROUP,
  operations: verbs,
  resources,
  conditions = [],
  variables,
  validations,
}: Policy): readonly KubeObject[] => [
  object(
    API,
    'ValidatingAdmissionPolicy',
    { name },
    {
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: [{ apiGroups: [group], apiVersions: ['*'], operations: verbs, resources }] },
        ...(conditions.length === 0 ? {} : { matchConditions: conditions }),
        ...(Object.keys(variables).length === 0
          ? {}
          : { variables: Object.entries(variables).map(([variable, expression]) => ({ name: variable, expression })) }),
        validations,
      },
    },
  ),
  object(API, 'ValidatingAdmissionPolicyBinding', { name }, { spec: { policyName: name, validationActions: ['Deny'] } }),
]

/** The policies and their bindings. `rights` is what needs the verb start; `controller` is the user whose writes pass, as the API server knows it. */
export const policies = (rights: readonly StartRight[], controller: string): readonly KubeObject[] =>
  [operations(rights, controller), status(controller), leases(controller)].flatMap(objectsOf)
