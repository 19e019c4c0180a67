import { status as grpcStatus } from '@grpc/grpc-js'
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { RequestRecord } from '../../adapters/kube/transport.ts'
import type { CallReport } from '../../adapters/talos/calls.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import type { Pass } from '../../engine/controller.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Home } from '../../ports/home.ts'
import { stateMetrics, type StateSource } from './state-metrics.ts'
import { statusChanges } from './status-changes.ts'

export type Metrics = {
  readonly registry: Registry
  readonly onRequest: (record: RequestRecord) => void
  readonly onCall: (report: CallReport) => void
  readonly passed: (pass: Pass) => void
  /** The same home; what its writes say of an operation is counted. */
  readonly counted: <H extends Home>(home: H) => H
  /** From here on what the caches hold is shown, too. */
  readonly show: (source: StateSource) => void
}

/** Of steps and waits: from a call that is answered at once to an evening of draining. */
const MINUTES = [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400]
/** Of calls and passes. */
const MOMENTS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * What Prometheus reads. No label of a counter or histogram says which machine or operation, so that their number is bounded by what Ichor can do, not by how
 * much it did.
 */
export const createMetrics = (clock: Clock, version: string): Metrics => {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  new Gauge({ name: 'ichor_build_info', help: 'Always 1; the label says which Ichor this is.', labelNames: ['version'], registers }).set(
    { version },
    1,
  )
  const requests = new Counter({
    name: 'ichor_kubernetes_requests_total',
    help: 'Requests to Kubernetes APIs, of this cluster and of managed ones. Code 0: no answer.',
    labelNames: ['verb', 'resource', 'code'],
    registers,
  })
  const requestSeconds = new Histogram({
    name: 'ichor_kubernetes_request_duration_seconds',
    help: 'How long Kubernetes APIs took to answer; watches are left out.',
    labelNames: ['verb'],
    buckets: MOMENTS,
    registers,
  })
  const calls = new Counter({
    name: 'ichor_talos_calls_total',
    help: 'Calls to the Talos API of machines, by their gRPC code.',
    labelNames: ['method', 'code'],
    registers,
  })
  const callSeconds = new Histogram({
    name: 'ichor_talos_call_duration_seconds',
    help: 'How long calls to the Talos API took, streams to their end.',
    labelNames: ['method'],
    buckets: [...MOMENTS, 60, 300, 900],
    registers,
  })
  const passes = new Histogram({
    name: 'ichor_pass_duration_seconds',
    help: 'How long one look took: at an operation, a cluster, or who waits for a lock. Result failed: it backs off and looks again.',
    labelNames: ['of', 'result'],
    buckets: MOMENTS,
    registers,
  })
  const steps = new Histogram({
    name: 'ichor_step_duration_seconds',
    help: 'How long a machine was in a step. Result left: the machine was given back before the step was done.',
    labelNames: ['kind', 'step', 'result'],
    buckets: MINUTES,
    registers,
  })
  const lockWait = new Histogram({
    name: 'ichor_cluster_lock_wait_seconds',
    help: 'How long operations waited for the cluster lock, from their checks (or the last retry) until they had it.',
    labelNames: ['kind'],
    buckets: MINUTES,
    registers,
  })
  const failures = new Counter({
    name: 'ichor_operation_failures_total',
    help: 'How often operations stopped on a failure or were refused.',
    labelNames: ['kind', 'reason'],
    registers,
  })
  const finished = new Counter({
    name: 'ichor_operations_finished_total',
    help: 'Operations that came to their end.',
    labelNames: ['kind', 'phase'],
    registers,
  })

  const count = (operation: TalosOperation, status: TalosOperation['status']): void => {
    const { kind } = operation.spec
    for (const change of statusChanges(operation, status, clock.now())) {
      switch (change.is) {
        case 'step':
          steps.observe({ kind, step: change.step, result: change.end }, change.ms / 1000)
          break
        case 'lock-taken':
          if (change.waitedMs !== undefined) lockWait.observe({ kind }, change.waitedMs / 1000)
          break
        case 'failure':
          failures.inc({ kind, reason: change.reason })
          break
        case 'finished':
          finished.inc({ kind, phase: change.phase })
      }
    }
  }

  return {
    registry,
    onRequest: ({ verb, resource, code, ms }) => {
      requests.inc({ verb, resource, code })
      if (verb !== 'watch') requestSeconds.observe({ verb }, ms / 1000)
    },
    onCall: ({ method, code, ms }) => {
      calls.inc({ method, code: grpcStatus[code] ?? String(code) })
      callSeconds.observe({ method }, ms / 1000)
    },
    passed: ({ of, ms, failed }) => passes.observe({ of, result: failed ? 'failed' : 'done' }, ms / 1000),
    counted: home => ({
      ...home,
      writeOperationStatus: async (operation, status) => {
        const written = await home.writeOperationStatus(operation, status)
        if (written.ok) count(operation, status)
        return written
      },
    }),
    show: source => stateMetrics(registry, source),
  }
}
