import { ANNOTATION } from '../api/names.ts'
import type { TalosOperation } from '../api/talos-operation.ts'
import type { State } from './operation-state.ts'

/** Something that a person can do next, as commands that can be pasted. */
export type FollowUp = { readonly purpose: string; readonly ichor: string; readonly kubectl: string }

/** What can be done about an operation in that state, most useful first. */
export const followUps = ({ metadata, spec, status }: TalosOperation, state: State): readonly FollowUp[] => {
  const where = `${metadata.name} -n ${metadata.namespace}`
  const patch = (change: object) => `kubectl patch talosoperation ${where} --type=merge -p '${JSON.stringify(change)}'`
  const retry = { metadata: { annotations: { [ANNOTATION.retry]: 'true' } } }

  const resume = (purpose: string): FollowUp => ({
    purpose,
    ichor: `ichor operation resume ${where}`,
    kubectl: !hasFailed
      ? patch({ spec: { paused: false } })
      : spec.paused
        ? patch({ ...retry, spec: { paused: false } })
        : `kubectl annotate talosoperation ${where} ${ANNOTATION.retry}=true --overwrite`,
  })
  const hasFailed = status.phase === 'Paused' && status.failureReason !== undefined && status.failureReason !== 'ClusterLockHeld'
  const pause: FollowUp = { purpose: 'pause it', ichor: `ichor operation pause ${where}`, kubectl: patch({ spec: { paused: true } }) }
  const cancel: FollowUp = {
    purpose: 'stop it for good',
    ichor: `ichor operation cancel ${where}`,
    kubectl: patch({ spec: { cancelled: true } }),
  }
  const watch: FollowUp = {
    purpose: 'watch it',
    ichor: `ichor operation watch ${where}`,
    kubectl: `kubectl get talosoperation ${where} --watch`,
  }

  switch (state) {
    case 'failing':
      return [watch, resume('run the failed step again, once the cause is mended'), cancel]
    case 'failed':
      return [resume('run the failed step again, once the cause is mended'), cancel]
    case 'refused':
      return [resume('check again, once the causes are mended'), cancel]
    case 'paused':
    case 'pausing':
      return [resume(hasFailed ? 'let it go on and run the failed step again' : 'let it go on'), cancel]
    case 'queued':
      return [
        {
          purpose: 'see who holds the lock',
          ichor: `ichor lock ${spec.clusterRef.name} -n ${metadata.namespace}`,
          kubectl: `kubectl get talosoperation -n ${metadata.namespace} -o wide`,
        },
        cancel,
      ]
    case 'pending':
    case 'running':
    case 'waiting':
    case 'resuming':
      return [watch, pause, cancel]
    case 'cancelling':
    case 'deleting':
      return [watch]
    case 'completed':
    case 'cancelled':
    case 'ended':
      return []
  }
}
