// Ichor's own resources and Leases, from what the server said to what the engine reads. The server validated and defaulted them already.
import { retryAppliedBy } from '../../api/retry-manager.ts'
import type { Metadata } from '../../api/schema.ts'
import type { OperationSpec, OperationStatus, TalosOperation } from '../../api/talos-operation.ts'
import type { TalosCluster, TalosClusterSpec, TalosClusterStatus } from '../../api/talos-cluster.ts'
import type { TalosMachine, TalosMachineSpec, TalosMachineStatus } from '../../api/talos-machine.ts'
import type { Lease, LeaseWrite } from '../../ports/home.ts'
import type { KubeObject } from './client.ts'
import type { Json } from './json.ts'
import { deepFreeze, list, number, record, text, texts } from './json.ts'

/** Throws where it is no object of a server: without name or UID. */
export const metadataOf = (object: KubeObject): Metadata => {
  const m = record(object['metadata'])
  const name = text(m['name'])
  const uid = text(m['uid'])
  if (name === '' || uid === '') throw new Error(`not an object of an API server: it has no ${name === '' ? 'name' : 'uid'}`)
  const deletionTimestamp = text(m['deletionTimestamp'])
  const manager = retryAppliedBy(m['managedFields'])
  return {
    name,
    namespace: text(m['namespace']),
    uid,
    resourceVersion: text(m['resourceVersion']),
    generation: number(m['generation']),
    creationTimestamp: text(m['creationTimestamp']),
    ...(deletionTimestamp === '' ? {} : { deletionTimestamp }),
    labels: texts(m['labels']),
    annotations: texts(m['annotations']),
    finalizers: list(m['finalizers']).map(text),
    ...(manager === undefined ? {} : { retryAppliedBy: manager }),
  }
}

export const operationOf = (object: KubeObject): TalosOperation =>
  deepFreeze({
    metadata: metadataOf(object),
    spec: record(object['spec']) as OperationSpec,
    status: record(object['status']) as OperationStatus,
  })

export const clusterOf = (object: KubeObject): TalosCluster =>
  deepFreeze({
    metadata: metadataOf(object),
    spec: record(object['spec']) as TalosClusterSpec,
    status: record(object['status']) as TalosClusterStatus,
  })

export const machineOf = (object: KubeObject): TalosMachine =>
  deepFreeze({
    metadata: metadataOf(object),
    spec: record(object['spec']) as TalosMachineSpec,
    status: record(object['status']) as TalosMachineStatus,
  })

export const leaseOf = (object: KubeObject): Lease => {
  const { name, namespace, uid, resourceVersion, annotations } = metadataOf(object)
  const spec = record(object['spec'])
  return deepFreeze({
    name,
    namespace,
    uid,
    resourceVersion,
    holder: text(spec['holderIdentity']),
    durationSeconds: number(spec['leaseDurationSeconds']),
    acquireTime: text(spec['acquireTime']),
    renewTime: text(spec['renewTime']),
    transitions: number(spec['leaseTransitions']),
    annotations,
  })
}

/** `metav1.MicroTime` has six digits of a second, or the server refuses it. */
export const microTime = (time: string): string => {
  const parts = /^(.*T\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time)
  return parts ? `${parts[1]}.${(parts[2] ?? '').padEnd(6, '0').slice(0, 6)}${parts[3]}` : time
}

/** null where nothing is meant: an empty holder or a duration of zero is refused by the server. */
export const leaseSpecOf = (write: LeaseWrite): Json => ({
  holderIdentity: write.holder === '' ? null : write.holder,
  leaseDurationSeconds: write.durationSeconds > 0 ? write.durationSeconds : null,
  acquireTime: write.acquireTime === '' ? null : microTime(write.acquireTime),
  renewTime: write.renewTime === '' ? null : microTime(write.renewTime),
  leaseTransitions: write.transitions,
})
