import type { TalosMachine } from '../../api/talos-machine.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import type { Opening } from '../kind.ts'
import type { View } from '../world.ts'
import { machineFacts } from '../world.ts'
import { heldBecause } from './order.ts'

/** How long the TalosMachine of a machine may be away before the machine is left out: who deletes it by mistake sees it discovered anew. */
const GONE_MS = 5 * 60_000

/** The machine of a target that is to be opened, by its own word; or why it cannot, or need not. */
export const machineToOpen = ({
  target,
  world,
}: View): { readonly machine: TalosMachine; readonly facts: MachineFacts } | { readonly instead: Opening } => {
  const machine = world.machines.find(m => m.metadata.name === target.name)
  if (!machine) return { instead: { skip: 'its TalosMachine was deleted', afterMs: GONE_MS } }
  const held = heldBecause(world, machine)
  if (held !== undefined) return { instead: { skip: held } }
  const known = machineFacts(world, target.name)
  if (!known.ok) return { instead: { wait: `it does not answer: ${known.fault.message}`, reason: 'MachineUnreachable' } }
  const facts = known.value
  // Early in a boot a machine has not read its own identity yet.
  if (facts.nodeID === '') return { instead: { wait: 'it does not tell its Talos node id yet', reason: 'MachineNotReady' } }
  if (machine.status.nodeID && machine.status.nodeID !== facts.nodeID) {
    const message = `${machine.spec.address} is answered by ${facts.hostname} (Talos node id ${facts.nodeID}), not by the machine that was recorded (${machine.status.nodeID}).`
    return { instead: { fail: { reason: 'MachineAmbiguous', message } } }
  }
  // What was written after the checks has no id of its own: discovery gives it none.
  const twin = machine.status.nodeID ? undefined : world.machines.find(m => m !== machine && m.status.nodeID === facts.nodeID)
  if (twin) {
    const message = `TalosMachines ${twin.metadata.name} and ${target.name} are the same machine (Talos node id ${facts.nodeID}). Delete the one that is wrong.`
    return { instead: { fail: { reason: 'MachineAmbiguous', message } } }
  }
  return { machine, facts }
}
