// Nodes, pods and what surrounds them, from what the server said to the little that operations need.
import { cordonedByOperation } from '../../api/cordon-owner.ts'
import { CONTROL_PLANE_LABEL } from '../../api/names.ts'
import { claimsOf } from '../../api/pod-claims.ts'
import { CORDON_TAINT, toleratesCordon } from '../../api/tolerations.ts'
import type { LabelSelector } from '../../api/talos-operation.ts'
import type { BudgetFacts, NodeFacts, PodFacts } from '../../ports/kube.ts'
import type { KubeObject } from './client.ts'
import { at, isRecord, list, number, record, text, texts } from './json.ts'

export const nodeOf = (node: KubeObject): NodeFacts => {
  const labels = texts(at(node, 'metadata', 'labels'))
  const annotations = texts(at(node, 'metadata', 'annotations'))
  const unschedulable = at(node, 'spec', 'unschedulable') === true
  const cordonedBy = cordonedByOperation({ unschedulable, annotations, managedFields: at(node, 'metadata', 'managedFields') })
  const info = record(at(node, 'status', 'nodeInfo'))
  const ready = list(at(node, 'status', 'conditions'))
    .map(record)
    .find(condition => condition['type'] === 'Ready')
  return {
    name: text(at(node, 'metadata', 'name')),
    uid: text(at(node, 'metadata', 'uid')),
    resourceVersion: text(at(node, 'metadata', 'resourceVersion')),
    controlPlane: labels[CONTROL_PLANE_LABEL] !== undefined,
    ready: ready?.['status'] === 'True',
    // Of a Node that never said so: since it exists.
    readySince: Date.parse(text(ready?.['lastTransitionTime'])) || Date.parse(text(at(node, 'metadata', 'creationTimestamp'))) || 0,
    unschedulable,
    tainted: list(at(node, 'spec', 'taints'))
      .map(record)
      .some(({ key, effect }) => key !== CORDON_TAINT.key && (effect === 'NoSchedule' || effect === 'NoExecute')),
    bootID: text(info['bootID']),
    systemUUID: text(info['systemUUID']),
    kubeletVersion: text(info['kubeletVersion']),
    kernelVersion: text(info['kernelVersion']),
    osImage: text(info['osImage']),
    addresses: list(at(node, 'status', 'addresses'))
      .map(record)
      .filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP')
      .map(({ address }) => text(address)),
    labels,
    annotations,
    ...(cordonedBy === undefined ? {} : { cordonedBy }),
  }
}

/** Static pods carry it on their shadows in the API. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror'
const PHASES = ['Pending', 'Running', 'Succeeded', 'Failed'] as const

export const podOf = (pod: KubeObject): PodFacts => {
  const owner = list(at(pod, 'metadata', 'ownerReferences'))
    .map(record)
    .find(({ controller }) => controller === true)
  const phase = text(at(pod, 'status', 'phase'))
  const ready = list(at(pod, 'status', 'conditions'))
    .map(record)
    .find(({ type }) => type === 'Ready')
  const starts = list(at(pod, 'status', 'containerStatuses'))
    .map(container => Date.parse(text(at(record(container), 'state', 'running', 'startedAt'))))
    .filter(time => Number.isFinite(time))
  const claims = claimsOf(text(at(pod, 'metadata', 'name')), at(pod, 'spec', 'volumes'))
  return {
    namespace: text(at(pod, 'metadata', 'namespace')),
    name: text(at(pod, 'metadata', 'name')),
    uid: text(at(pod, 'metadata', 'uid')),
    node: text(at(pod, 'spec', 'nodeName')),
    phase: PHASES.find(one => one === phase) ?? 'Unknown',
    labels: texts(at(pod, 'metadata', 'labels')),
    mirror: texts(at(pod, 'metadata', 'annotations'))[MIRROR_ANNOTATION] !== undefined,
    ownerKind: text(owner?.['kind']),
    terminating: text(at(pod, 'metadata', 'deletionTimestamp')) !== '',
    ready: ready?.['status'] === 'True',
    ...(claims.length > 0 ? { claims } : {}),
    ...(toleratesCordon(at(pod, 'spec', 'tolerations')) ? { toleratesCordon: true } : {}),
    ...(starts.length === 0 ? {} : { startedAt: Math.max(...starts) }),
  }
}

/** How old a pod is that tolerates a cordon, where that may matter to who drains its Node; others stay as they are. */
export const withAge = (pod: KubeObject, facts: PodFacts, now: number): PodFacts => {
  const created = Date.parse(text(at(pod, 'metadata', 'creationTimestamp')))
  return mayComeBack(facts) && Number.isFinite(created) ? { ...facts, ageMs: now - created } : facts
}

/** One that is put on a cordoned Node by whatever makes it, and not because that has one on every Node. */
export const mayComeBack = ({ toleratesCordon: tolerates, ownerKind, mirror }: PodFacts): boolean =>
  tolerates === true && !mirror && ownerKind !== '' && ownerKind !== 'DaemonSet'

/** `namespace/name` of the claim that has a PersistentVolume; empty where none has it. */
export const claimOf = (volume: KubeObject): string => {
  const [namespace, name] = ['namespace', 'name'].map(key => text(at(volume, 'spec', 'claimRef', key)))
  return namespace && name ? `${namespace}/${name}` : ''
}

/** Undefined for a budget without a selector: it covers no pod. */
export const budgetOf = (budget: KubeObject): BudgetFacts | undefined => {
  const selector = at(budget, 'spec', 'selector')
  if (!isRecord(selector)) return undefined
  const expressions = list(selector['matchExpressions']).filter(isRecord)
  return {
    namespace: text(at(budget, 'metadata', 'namespace')),
    name: text(at(budget, 'metadata', 'name')),
    disruptionsAllowed: number(at(budget, 'status', 'disruptionsAllowed')),
    matchLabels: texts(selector['matchLabels']),
    ...(expressions.length === 0 ? {} : { matchExpressions: expressions as LabelSelector['matchExpressions'] }),
  }
}

/** `1.18.2` of `quay.io/cilium/cilium:v1.18.2@sha256:…`; empty where the image has no tag. */
export const tagVersion = (image: string): string => {
  const tag = /^[^@]*:([^:/@]+)(@|$)/.exec(image)?.[1] ?? ''
  return tag.replace(/^v(?=\d)/, '')
}
