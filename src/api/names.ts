/** The words that Ichor puts on other people's objects: API group, labels, annotations, finalizers. */

export const GROUP = 'ichor.maesh.dev'
export const VERSION = 'v1alpha1'
export const API_VERSION = `${GROUP}/${VERSION}`

export const ANNOTATION = {
  /** Asks once for the failed step to be run again; only the value `true` counts. */
  retry: `${GROUP}/retry`,
  /** Who asked for an operation. Set by the CLI and the UI. */
  requestedBy: `${GROUP}/requested-by`,
  /** Who turned `spec.override` on. */
  overrideBy: `${GROUP}/override-by`,
  /** On a TalosMachine or a Node: upgrades leave this machine alone. Any value but `false`. */
  upgradeHold: `${GROUP}/upgrade-hold`,
  /** On a Node: cordoned by this operation (its UID). Only a cordon with this mark is ever lifted. */
  cordonedBy: `${GROUP}/cordoned-by`,
  /** On the Lease: the UID of its holder, so that a namesake created later is known to be another. */
  holderUid: `${GROUP}/holder-uid`,
  /** On the Lease: what operations did within the last hour, as JSON. */
  deeds: `${GROUP}/deeds`,
  /** On a TalosMachine: the host name as the machine itself spells it. */
  hostname: `${GROUP}/hostname`,
} as const

export const LABEL = {
  /** On TalosMachines, operations and Leases: the TalosCluster they belong to. */
  cluster: `${GROUP}/cluster`,
  /** On a TalosMachine, kept by the controller: `controlplane` or `worker`, as `spec.role` says it. */
  role: `${GROUP}/role`,
  /** On a TalosMachine or a Node: smaller numbers are upgraded first within their tier. */
  upgradeOrder: `${GROUP}/upgrade-order`,
} as const

/** On an operation while one of its machines is open, so that a deletion can first close it. */
export const FINALIZER = `${GROUP}/open-machine`

/** What `metadata.managedFields` and Events call us. */
export const CONTROLLER = 'ichor-controller'

/** Node role labels as kubeadm and Talos set them. */
export const CONTROL_PLANE_LABEL = 'node-role.kubernetes.io/control-plane'

export const leaseName = (cluster: string): string => `ichor-${cluster}`
export const operationHolder = (namespace: string, name: string): string => `${CONTROLLER}/op/${namespace}/${name}`
