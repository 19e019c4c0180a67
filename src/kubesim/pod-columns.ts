import type { KubeObject } from '../world/store.ts'
import { age } from './age.ts'
import type { CellColumn } from './columns.ts'
import { listAt, numberAt, textAt, valueAt } from './fields.ts'

const statuses = (pod: KubeObject): readonly unknown[] => listAt(pod, 'status', 'containerStatuses')

const ready = (pod: KubeObject): string => {
  const running = statuses(pod).filter(status => valueAt(status, 'ready') === true && valueAt(status, 'state', 'running') !== undefined)
  return `${running.length}/${listAt(pod, 'spec', 'containers').length}`
}

/** The word for a container that does not run, if it has one. */
const stateWord = (status: unknown): string => {
  const waiting = textAt(status, 'state', 'waiting', 'reason')
  if (waiting !== '') return waiting
  if (valueAt(status, 'state', 'terminated') === undefined) return ''
  const reason = textAt(status, 'state', 'terminated', 'reason')
  if (reason !== '') return reason
  const signal = numberAt(status, 'state', 'terminated', 'signal')
  return signal === 0 ? `ExitCode:${numberAt(status, 'state', 'terminated', 'exitCode')}` : `Signal:${signal}`
}

const podStatus = (pod: KubeObject): string => {
  let word = textAt(pod, 'status', 'reason') || textAt(pod, 'status', 'phase')
  // The first container that is not running speaks for the pod.
  for (const status of statuses(pod).toReversed()) word = stateWord(status) || word
  const isReady = listAt(pod, 'status', 'conditions').some(
    condition => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
  )
  const anyRunning = statuses(pod).some(status => valueAt(status, 'ready') === true && valueAt(status, 'state', 'running') !== undefined)
  if (word === 'Completed' && anyRunning) word = isReady ? 'Running' : 'NotReady'
  if (pod.metadata.deletionTimestamp === undefined) return word
  if (textAt(pod, 'status', 'reason') === 'NodeLost') return 'Unknown'
  return ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase')) ? word : 'Terminating'
}

const restarts = (pod: KubeObject, nowMs: number): string => {
  const count = statuses(pod).reduce<number>((sum, status) => sum + numberAt(status, 'restartCount'), 0)
  const ends = statuses(pod)
    .map(status => textAt(status, 'lastState', 'terminated', 'finishedAt'))
    .filter(end => end !== '')
    .toSorted()
  const last = ends.at(-1)
  return count > 0 && last !== undefined ? `${count} (${age(last, nowMs)} ago)` : String(count)
}

const orNone = (text: string): string => text || '<none>'

const gates = (pod: KubeObject): string => {
  const wanted = listAt(pod, 'spec', 'readinessGates').map(gate => textAt(gate, 'conditionType'))
  if (wanted.length === 0) return '<none>'
  const met = listAt(pod, 'status', 'conditions').filter(
    condition => wanted.includes(textAt(condition, 'type')) && textAt(condition, 'status') === 'True',
  )
  return `${met.length}/${wanted.length}`
}

export const podColumns: readonly CellColumn[] = [
  { name: 'Name', cell: pod => pod.metadata.name },
  { name: 'Ready', description: 'Containers that are ready, of all.', cell: ready },
  { name: 'Status', description: 'What its containers do.', cell: podStatus },
  { name: 'Restarts', description: 'How often its containers were started again.', cell: restarts },
  { name: 'Age', description: 'How long ago it was created.', cell: (pod, nowMs) => age(pod.metadata.creationTimestamp, nowMs) },
  { name: 'IP', wide: true, cell: pod => orNone(textAt(pod, 'status', 'podIP')) },
  { name: 'Node', wide: true, cell: pod => orNone(textAt(pod, 'spec', 'nodeName')) },
  { name: 'Nominated Node', wide: true, cell: pod => orNone(textAt(pod, 'status', 'nominatedNodeName')) },
  { name: 'Readiness Gates', wide: true, cell: gates },
]
