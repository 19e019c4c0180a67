/**
 * Why an operation does not advance: the closed list, each with the sentence that the CLI, the CRD's docs and the reference page show.
 * A reason is part of the API. Add one here with its sentence or it does not exist.
 */
export const REASONS = {
  PreflightRefused: 'The checks before the start refused the operation. No machine was written to and no lock is held.',
  ClusterLockHeld: 'Another holder has the cluster lock. The operation starts by itself when that holder finishes.',
  EtcdUnhealthy: 'etcd did not become healthy within the time allowed, so no control plane may be touched.',
  EtcdAlarm: 'etcd reports an alarm (NOSPACE or CORRUPT). It has to be resolved before a control plane may be touched.',
  QuorumWouldBeLost: 'Taking this control plane away would leave etcd without quorum.',
  MachineUnreachable: 'The Talos API of a machine did not answer within the time allowed.',
  MachineNotReady: 'A machine came back but Talos did not report it running and ready within the time allowed.',
  MachineAmbiguous: 'Two machines claim the same address or identity, or an address is answered by another machine than recorded.',
  NodeNotReady: 'The Kubernetes Node of a machine did not become Ready with the boot id of the machine within the time allowed.',
  DrainBlocked: 'A PodDisruptionBudget refused the eviction of a pod for the whole drain time, or can never allow it.',
  DrainTimeout: 'Pods or their volumes did not leave the node within the drain time.',
  ImageNotFound: 'An image does not exist in the registry: the installer, or a program of Kubernetes.',
  SchematicMismatch: 'The image to install does not carry the schematic (system extensions) that the machine runs.',
  InstallFailed:
    'The installer image could not be pulled in time, or the installer ended with an error. The machine still runs what it ran before.',
  RebootTimeout: 'The machine took the reboot but did not come back with a new boot id within the time allowed.',
  BootedOldVersion: 'The machine rebooted into the version it had before: the new one did not start and Talos fell back.',
  VersionMismatch: 'A machine runs another version or schematic than the one that was asked for.',
  ConfigRejected: 'Talos refused the machine configuration.',
  ConfigChangedByOthers: 'Someone else changed the machine configuration while the operation worked on it.',
  StaticPodTimeout: 'A static pod did not come up with its new configuration within the time allowed.',
  KubeletTimeout: 'The kubelet did not come up with its new version within the time allowed.',
  ManifestSyncFailed: 'The bootstrap manifests could not be applied.',
  JobFailed: 'A Job that the operation started failed.',
  HelmReleasePending: 'A Helm release is in the middle of another change.',
  CNIUnhealthy: 'The CNI is not healthy on every node.',
  SnapshotFailed: 'The etcd snapshot could not be taken or stored.',
  SnapshotInvalid: 'The etcd snapshot does not pass its check.',
  WrongCluster: 'The object, credential or snapshot belongs to another cluster.',
  RestoreFailed: 'etcd could not be restored.',
  RotationUnverified: 'A stage of a rotation could not be proven on every machine.',
  HealthGateTimeout: 'A health gate of the cluster did not hold within its timeout, so the next machine was not begun.',
  CredentialRejected: 'The Talos or Kubernetes API refused our credential.',
  PermissionDenied: 'Our credential is valid but its roles do not allow a call that the operation needs.',
  UnfinishedOperation: 'An earlier operation left a machine half done. It has to be finished or undone first.',
  ServiceRestartRefused: 'Talos refused to restart the service.',
  ResetFailed: 'The machine was asked to reset itself and came back as it was.',
  MachineDidNotStop: 'The machine did not stop within the time allowed.',
  ClusterRewound: 'The cluster was rewound to an etcd snapshot while the operation was in it. It is not resumed.',
  InternalError:
    'A fault of Ichor itself, or a status that a hand or another version has written; the message tells which. Only this operation was stopped. Please report a fault, with the id in the message.',
} as const satisfies Record<string, string>

export type Reason = keyof typeof REASONS
export const REASON_NAMES = Object.keys(REASONS) as [Reason, ...Reason[]]
