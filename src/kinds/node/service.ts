import type { Stage, Step } from '../../core/kind.ts'
import { YES, no, unknown } from '../../core/kind.ts'
import { nodeReady } from '../../core/machine-steps/coming-back.ts'
import { asAnswer, etcdNeed } from '../../core/machine-steps/etcd.ts'
import { asRecorded, both, denied, since } from '../../core/machine-steps/guards.ts'
import { addressOf, chosen, isControlPlane } from '../../core/machine-steps/target.ts'
import type { View } from '../../core/world.ts'
import { displayName, serviceFacts } from '../../core/world.ts'
import { actionStage } from './stage.ts'
import { settled, specOf } from './view.ts'

const MINUTE = 60_000
const RESTART_MS = 5 * MINUTE

const serviceOf = (view: View): string => {
  const { service = 'kubelet' } = specOf(view.operation)
  return service
}
const serviceNeed = (view: View) => [{ what: 'service', name: view.target.name, service: serviceOf(view) } as const]

/** Talos stops it, then starts it; where who asked dies in between, it does not start it, and nobody else would. */
const isLeftStopped = (view: View): boolean => {
  const service = serviceFacts(view.world, view.target.name, serviceOf(view))
  return service.ok && service.value?.state === 'Finished'
}

const restart: Step = {
  name: 'restart',
  summary: 'Restarts the service. Done when Talos tells a later start of it than before, and it is well.',
  needs: serviceNeed,
  guardNeeds: etcdNeed,
  done: view => {
    const service = serviceFacts(view.world, view.target.name, serviceOf(view))
    if (!service.ok) return unknown(`it does not answer: ${service.fault.message}`)
    if (!service.value) return no(`it has no service ${serviceOf(view)} now`)
    const { state, health, startedAt } = service.value
    if (startedAt === undefined || String(startedAt) === chosen(view.target, 'startedAt'))
      return no(state === 'Running' ? 'the service has not been started since' : `the service is ${state}`)
    // Services of extensions need have no health check; the kubelet has one, which takes a moment.
    return health === 'healthy' || (health === 'unknown' && serviceOf(view) !== 'kubelet')
      ? YES
      : no(`the service is ${state}, and not healthy yet`)
  },
  guard: view =>
    both(asRecorded(view), () => {
      if (!isControlPlane(view) || view.operation.spec.override) return YES
      const answer = asAnswer(settled(view))
      if (answer.is === 'failed') return { may: 'no', reason: answer.reason, message: answer.message }
      return answer.is === 'yes' ? YES : { may: 'wait', why: answer.why, reason: 'EtcdUnhealthy' }
    }),
  act: {
    long: false,
    disruptive: true,
    describe: view => `restarting ${serviceOf(view)}`,
    run: ({ talos }, view) => talos.restartService(addressOf(view), serviceOf(view)),
    fatal: (fault, view) =>
      fault.kind === 'unsupported' || fault.kind === 'notFound'
        ? { reason: 'ServiceRestartRefused', message: `${displayName(view.target)}: ${fault.message}.` }
        : denied(fault, view),
  },
  settleMs: view => (isLeftStopped(view) ? 5 * view.world.timing.pollMs : MINUTE),
  deadlineMs: view => since(view, RESTART_MS),
  failure: 'MachineNotReady',
  remedy: 'Look at its log with `talosctl logs`.',
}

export const restartServiceStage: Stage = actionStage('restart-service', {
  summary: 'The service is restarted; pods go on running meanwhile.',
  takesAway: false,
  openNeeds: serviceNeed,
  open: view => {
    const service = serviceFacts(view.world, view.target.name, serviceOf(view))
    if (!service.ok) return { wait: `it does not answer: ${service.fault.message}`, reason: 'MachineUnreachable' }
    if (!service.value) {
      const message = `${displayName(view.target)} has no service ${serviceOf(view)}.`
      return { fail: { reason: 'ServiceRestartRefused', message } }
    }
    return { open: { goal: { drain: 'none', startedAt: String(service.value.startedAt ?? '') } } }
  },
  steps: [restart, { ...nodeReady, applies: view => serviceOf(view) === 'kubelet' }],
  becomes: view => `${serviceOf(view)} restarted`,
  loses: view => (serviceOf(view) === 'kubelet' ? ['its kubelet, for seconds; pods go on running'] : [`${serviceOf(view)}, for seconds`]),
  outcome: () => 'restarted',
})
