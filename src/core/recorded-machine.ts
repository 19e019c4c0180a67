import type { TalosMachine } from '../api/talos-machine.ts'
import type { Fault, Result } from '../ports/fault.ts'
import type { MachineFacts } from '../ports/talos.ts'

/** Who a machine is taken for: by Talos' own node id where both are known, else by its UUID. */
export type Identity = { readonly nodeID?: string | undefined; readonly uuid?: string | undefined }

/** An address may go to another machine: what that one says is no fact of the machine that is meant. Then the Fault, of kind `wrongPeer`, that says so. */
export const impostor = (address: string, meant: Identity, facts: MachineFacts): Fault | undefined => {
  const { nodeID, uuid, hostname } = facts
  // While a machine boots it may not know its node id yet; a zero UUID tells nothing.
  const [what, recorded, seen] = meant.nodeID && nodeID ? ['Talos node id', meant.nodeID, nodeID] : ['UUID', meant.uuid, uuid]
  if (!recorded || !/[1-9a-z]/i.test(seen) || recorded === seen) return undefined
  return {
    kind: 'wrongPeer',
    message: `${address} is answered by ${hostname || 'another machine'} (${what} ${seen}), not by the machine that was recorded (${recorded})`,
  }
}

/** Only facts of the machine that was recorded. */
export const ofRecorded = ({ spec, status }: TalosMachine, facts: Result<MachineFacts>): Result<MachineFacts> => {
  const fault = facts.ok ? impostor(spec.address, status, facts.value) : undefined
  return fault ? { ok: false, fault } : facts
}
