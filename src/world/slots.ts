/** META key under which the installer notes the slot to fall back to. */
export const META_FALLBACK = 6
/** META keys of a staged upgrade: the installer's image, and its options. */
export const META_STAGED_IMAGE = 7
export const META_STAGED_OPTIONS = 8

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
  /** What the firmware boots where nothing is installed: a network or a stick. Undefined: such a machine does not boot. */
  media: Slot | undefined
  /** What runs, or ran last, and is in no slot: it came from there, or its slot was wiped meanwhile. */
  slotless: Slot | undefined
  /** The slot that runs, or ran last. */
  booted: SlotName
  /** The boot loader's choice for the next boot. */
  next: SlotName
  /** META partition. */
  readonly meta: Map<number, string>
}

/** An installed disk. */
export const createDisk = (slot: Slot): Disk => ({
  slots: { A: slot, B: undefined },
  media: slot,
  slotless: undefined,
  booted: 'A',
  next: 'A',
  meta: new Map(),
})

const other = (name: SlotName): SlotName => (name === 'A' ? 'B' : 'A')

export const isInstalled = (disk: Disk): boolean => disk.slots.A !== undefined || disk.slots.B !== undefined

export const runningSlot = (disk: Disk): Slot => {
  const slot = disk.slotless ?? disk.slots[disk.booted]
  if (!slot) throw new Error('a machine runs from an empty slot')
  return slot
}

/** The installer begins: what the other slot held is gone, and until the end the running slot stays the boot loader's choice. */
export const beginInstall = (disk: Disk): void => {
  if (disk.slotless) return
  disk.slots[other(disk.booted)] = undefined
  disk.next = disk.booted
}

/**
 * The installer ends well: the other slot is written, is the next to boot, and the way back is noted. On an empty disk there is neither another
 * slot nor a way back.
 */
export const finishInstall = (disk: Disk, slot: Slot): void => {
  if (!isInstalled(disk)) {
    disk.slots.A = slot
    disk.next = 'A'
    return
  }
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

/** The boot loader takes the slot that does not run; false where there is nothing in it. */
export const switchBack = (disk: Disk): boolean => {
  if (!disk.slots[other(disk.booted)]) return false
  disk.next = other(disk.booted)
  return true
}

/** All that was on it is gone. What runs from it goes on until the machine goes down. */
export const wipeDisk = (disk: Disk): void => {
  disk.slotless = runningSlot(disk)
  disk.slots.A = undefined
  disk.slots.B = undefined
  disk.meta.clear()
}

/** The slot that boots now. */
export const chooseSlot = (disk: Disk): SlotName => (disk.slots[disk.next] ? disk.next : other(disk.next))
