import type { Machine } from './machine.ts'
import type { Disk } from './slots.ts'
import { runningSlot } from './slots.ts'

/**
 * While a machine is off somebody installs it anew, by an older Talos, and gives it the configuration that it had: for Talos it is another machine then,
 * which joins under the same name.
 */
export const installOther = (machine: Machine, version: string, nodeID: string): void => {
  const disk: Disk = machine.disk
  const { secureBoot } = runningSlot(disk)
  machine.nodeID = nodeID
  disk.slots.A = { version, schematic: '', factory: '', extensions: [], secureBoot }
  disk.slots.B = undefined
  Object.assign(disk, { booted: 'A', next: 'A', slotless: undefined } satisfies Partial<Disk>)
  disk.meta.clear()
}
