/** META key under which the installer notes the slot to fall back to. */
export const META_FALLBACK = 6

export type SlotName = 'A' | 'B'

/** What is installed in one of the two boot slots. */
export type Slot = {
  /** Talos version with `v`. */
  readonly version: string
  /** Empty where no Image Factory made it. */
  readonly schematic: string
  readonly factory: string
  readonly extensions: readonly string[]
  readonly secureBoot: boolean
}

export type Disk = {
  /** Undefined: empty, or half written. */
  readonly slots: { A: Slot | undefined; B: Slot | undefined }
  /** The slot that runs, or ran last. */
  booted: SlotName
  /** The boot loader's choice for the next boot. */
  next: SlotName
  /** META partition. */
  readonly meta: Map<number, string>
}

export const createDisk = (slot: Slot): Disk => ({ slots: { A: slot, B: undefined }, booted: 'A', next: 'A', meta: new Map() })

const other = (name: SlotName): SlotName => (name === 'A' ? 'B' : 'A')

export const runningSlot = (disk: Disk): Slot => {
  const slot = disk.slots[disk.booted]
  if (!slot) throw new Error('a machine runs from an empty slot')
  return slot
}

/** The installer begins: what the other slot held is gone, and until the end the running slot stays the boot loader's choice. */
export const beginInstall = (disk: Disk): void => {
  disk.slots[other(disk.booted)] = undefined
  disk.next = disk.booted
}

/** The installer ends well: the other slot is written, is the next to boot, and the way back is noted. */
export const finishInstall = (disk: Disk, slot: Slot): void => {
  disk.slots[other(disk.booted)] = slot
  disk.next = other(disk.booted)
  disk.meta.set(META_FALLBACK, disk.booted)
}

/** Switches back to the slot that META names, and forgets it. */
export const revert = (disk: Disk): void => {
  const back = disk.meta.get(META_FALLBACK)
  if (back === 'A' || back === 'B') disk.next = back
  disk.meta.delete(META_FALLBACK)
}

/** The slot that boots now. */
export const chooseSlot = (disk: Disk): SlotName => (disk.slots[disk.next] ? disk.next : other(disk.next))
