import type { Machine } from './machine.ts'
import { answers, isInMaintenance } from './machine.ts'
import type { Site } from './site.ts'

/** The deadline of a call that one machine passes on to another, as the adapter has it. */
const PASSED_ON_MS = 3_000

/** Whether a machine that does not answer us answers a control plane that passes our call on: then only our own way to it is cut. */
export const isHeardByOthers = (
  { machines, site }: { readonly machines: readonly Machine[]; readonly site: Site },
  machine: Machine,
): boolean => {
  const isWell = (one: Machine): boolean => answers(one) && !isInMaintenance(one) && site.faults.of(one).slowMs < PASSED_ON_MS
  return isWell(machine) && machines.some(one => one !== machine && one.role === 'controlplane' && isWell(one))
}
