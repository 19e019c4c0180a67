import type { TalosOperation } from '../../api/talos-operation.ts'
import type { PatchNote } from '../../core/config-patch/note.ts'
import { ms, targetsOf } from '../../core/ledger.ts'
import { chosen } from '../../core/machine-steps/target.ts'
import { sha256 } from '../../core/sha256.ts'
import type { Need, View, World } from '../../core/world.ts'
import { configurationFacts, machineFacts } from '../../core/world.ts'
import type { ApplyMode, MachineConfiguration } from '../../ports/configuration.ts'
import type { Fault } from '../../ports/fault.ts'
import { type Missing, patched, patchesOf, textNeeds } from './patches.ts'
import { specOf } from './spec.ts'

/** What the steps of this kind ask again and again. */

/** In which mode the patched configuration is given to a machine first. */
export const firstMode = (operation: TalosOperation): ApplyMode => {
  const { mode } = specOf(operation)
  return mode === 'reboot' ? 'staged' : mode
}

/** The text that is patched: what runs; or what the next boot takes, where the patch is for that. */
const patchedText = (operation: TalosOperation, { running, onDisk }: MachineConfiguration): string =>
  firstMode(operation) === 'staged' ? onDisk : running

export const configNeeds = ({ operation, target }: Pick<View, 'operation' | 'target'>): readonly Need[] => [
  { what: 'configuration', name: target.name },
  ...textNeeds(operation),
]

/** For how long Talos is asked to keep a configuration on trial: three minutes, by the pace of the waits that are ours. */
export const tryMs = ({ world }: Pick<View, 'world'>): number => 9 * world.timing.etcdStableMs

/** It runs what one of our operations, this one or another, gave it on trial and left there, and Talos may not have put back yet what was before. */
const isLeftOnTrial = (operation: TalosOperation, world: World, name: string, running: string): boolean => {
  const left = [operation, ...world.others]
    .flatMap(one => targetsOf(one.status))
    .filter(t => t.name === name && t.goal?.['computed'] !== undefined && t.phase !== 'Running' && t.committed === undefined)
    .filter(t => world.now - ms(t.finishedAt ?? t.failure?.at) < tryMs({ world }))
  return left.some(t => t.goal?.['computed'] === sha256(running))
}

/** What the patches make of the configuration of a machine as it is now. */
export type Wish =
  | {
      readonly is: 'made'
      readonly from: string
      readonly to: string
      /** Another configuration is staged there, or on trial. */
      readonly pending: MachineConfiguration['pending']
      readonly warnings: readonly PatchNote[]
      /** As `Patches` has them. */
      readonly pins: Readonly<Record<string, string>>
      /** The patches once more would change nothing more in it. */
      readonly isRepeatable: () => boolean
    }
  | { readonly is: 'wrong'; readonly faults: readonly PatchNote[] }
  | { readonly is: 'missing'; readonly missing: readonly [Missing, ...Missing[]] }
  | { readonly is: 'unread'; readonly fault: Fault }

export const wishFor = (operation: TalosOperation, world: World, name: string): Wish => {
  const [facts, configuration, patches] = [machineFacts(world, name), configurationFacts(world, name), patchesOf(operation, world)]
  if (!patches.ok) return { is: 'missing', missing: patches.missing }
  if (!facts.ok) return { is: 'unread', fault: facts.fault }
  if (!configuration.ok) return { is: 'unread', fault: configuration.fault }
  const from = patchedText(operation, configuration.value)
  const made = patched(from, patches.texts, facts.value.version)
  if (!made.ok) return { is: 'wrong', faults: made.faults }
  const to = made.changed ? made.text : from
  const isRepeatable = (): boolean => {
    const twice = patched(to, patches.texts, facts.value.version)
    return twice.ok && !twice.changed
  }
  // One that does not tell what is on its disk shows no trial.
  const {
    running,
    isDiskUntold = false,
    pending = isDiskUntold && isLeftOnTrial(operation, world, name, running) ? 'trial' : undefined,
  } = configuration.value
  return { is: 'made', from, to, pending, warnings: made.warnings, pins: patches.pins, isRepeatable }
}

/** Nothing is left to do on a machine. One that only waits for its reboot is still given that, and what is on trial is not there for good. */
export const isNothing = (operation: TalosOperation, wish: Extract<Wish, { is: 'made' }>): boolean =>
  wish.from === wish.to && wish.pending !== 'trial' && !(specOf(operation).mode === 'reboot' && wish.pending !== undefined)

/** What is staged may be staged anew. Anything else that is pending would be undone, or a trial made into something that nothing ends. */
export const isInTheWay = (operation: TalosOperation, pending: MachineConfiguration['pending']): boolean =>
  pending === 'trial' || (pending === 'staged' && firstMode(operation) !== 'staged')

/** Shown to the machine only where there is something to show, and where no trial would be ended by it. */
export const dryRunNeeds = (operation: TalosOperation, world: World, name: string): readonly Need[] => {
  const wish = wishFor(operation, world, name)
  const mode = dryRunMode(operation)
  if (wish.is !== 'made' || wish.from === wish.to || isInTheWay(operation, wish.pending)) return []
  return [{ what: 'dryRun', name, text: wish.to, mode }]
}

/** What a machine takes at once is the same for a while and for good, and only to be shown a trial ends none. */
export const dryRunMode = (operation: TalosOperation): ApplyMode => (firstMode(operation) === 'staged' ? 'staged' : 'try')

/** The hashes of the configuration that was read when the machine was opened, and of the one that was made of it. */
export const recorded = (view: Pick<View, 'target'>): { readonly read: string; readonly computed: string } => ({
  read: chosen(view.target, 'read'),
  computed: chosen(view.target, 'computed'),
})

export type Held = 'read' | 'computed' | 'other' | Fault

/** Which configuration the machine has now, where this mode writes one: proof of what was done, and of what others did. */
export const heldNow = (view: View): Held => heldIn(view, configuration => patchedText(view.operation, configuration))

/** The same of the one that runs. */
export const runsNow = (view: View): Held => heldIn(view, ({ running }) => running)

const heldIn = (view: View, textOf: (configuration: MachineConfiguration) => string): Held => {
  const configuration = configurationFacts(view.world, view.target.name)
  if (!configuration.ok) return configuration.fault
  const { read, computed } = recorded(view)
  const hash = sha256(textOf(configuration.value))
  return hash === computed ? 'computed' : hash === read ? 'read' : 'other'
}

/** Enough to tell hashes apart, for people. */
export const short = (hash: string): string => hash.slice(0, 12)
