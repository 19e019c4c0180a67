import type { RequestRecord } from '../../adapters/kube/transport.ts'
import type { Controller } from '../../engine/controller.ts'
import { type Check, livenessChecks, readinessChecks, type Vitals } from './health.ts'

/** What the probes of a process need to know, gathered where it shows. */
export const createVitals = () => {
  let answeredAt = -Infinity
  let look: (() => Omit<Vitals, 'silenceMs'>) | undefined
  const now = (): Vitals | undefined => look && { ...look(), silenceMs: performance.now() - answeredAt }
  return {
    /** Every replica asks for the Lease of the election every two seconds, and asks nobody else for Leases. */
    onRequest: ({ resource, code }: RequestRecord): void => {
      if (code > 0 && resource === 'leases') answeredAt = performance.now()
    },
    /** The controller has started: from here on it is looked at. */
    look: (controller: Controller, home: { readonly stalenessMs: () => number }): void => {
      look = () => ({ isLeading: controller.isLeading(), stalenessMs: home.stalenessMs(), queue: controller.queue() })
    },
    liveness: (): readonly Check[] => livenessChecks(now()),
    readiness: (): readonly Check[] => readinessChecks(now()),
  }
}
