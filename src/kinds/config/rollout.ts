import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { diffConfigs } from '../../core/config-patch/diff-configs.ts'
import { noteText } from '../../core/config-patch/note.ts'
import type { Candidate, Opening, PlannedMachine, Stage, Step, Turn } from '../../core/kind.ts'
import { YES, wait } from '../../core/kind.ts'
import { failureTriedAnew, openTargets, targetsOf } from '../../core/ledger.ts'
import { giveBack, soak } from '../../core/machine-steps/coming-back.ts'
import { etcdLeader } from '../../core/machine-steps/etcd.ts'
import { machineToOpen } from '../../core/machine-steps/opening.ts'
import { losses } from '../../core/machine-steps/losses.ts'
import { heldBecause, inOrder } from '../../core/machine-steps/order.ts'
import { othersNeed, othersServe } from '../../core/machine-steps/other-control-planes.ts'
import { candidateOf, drainGoal, isControlPlane, isSelected } from '../../core/machine-steps/target.ts'
import { controlPlanesFirst, fewAtATime, workerTurn } from '../../core/machine-steps/turn.ts'
import { sha256 } from '../../core/sha256.ts'
import type { Need, View, World } from '../../core/world.ts'
import { displayName, dryRunFacts, isKnown, machineFacts } from '../../core/world.ts'
import { pendingText } from '../../ports/configuration.ts'
import { apply, compare, keep, mayPatchAnew, stage, trialOver, tryOut } from './apply.ts'
import { saidByMachine } from './patches.ts'
import { aside, back } from './reboot.ts'
import type { ConfigSpec } from './spec.ts'
import { specOf } from './spec.ts'
import { configNeeds, dryRunMode, dryRunNeeds, heldNow, isInTheWay, isNothing, recorded, short, wishFor } from './view.ts'
import { trial, well } from './well.ts'

/** One machine first, then control planes one at a time, then workers. */

const viewOf = (operation: TalosOperation, world: World, candidate: Candidate): View => ({
  operation,
  world,
  target: { ...candidate, phase: 'Pending' },
})

/** Machines to which nothing is to be done are skipped when the order is made, all at once. */
const skipOf = (operation: TalosOperation, world: World, candidate: Candidate): string | undefined => {
  const machine = world.machines.find(m => m.metadata.name === candidate.name)
  const held = machine && heldBecause(world, machine)
  if (held !== undefined) return held
  const wish = wishFor(operation, world, candidate.name)
  return wish.is === 'made' && isNothing(operation, wish) ? NOTHING : undefined
}
const NOTHING = 'its configuration says all of it already'

const order = (operation: TalosOperation, world: World): readonly Candidate[] => {
  const machines = world.machines.filter(m => isSelected(operation, m))
  const all = inOrder(world, machines, etcdLeader(world)).map(machine => {
    const candidate = candidateOf(machine)
    const skip = skipOf(operation, world, candidate)
    return { ...candidate, ...(skip === undefined ? {} : { skip }) }
  })
  // A worker is missed least. Where none is to be done, the first control plane is the canary.
  const canary = all.find(c => c.role === 'worker' && c.skip === undefined)
  return canary ? [canary, ...all.filter(c => c !== canary)] : all
}

const orderNeeds = (operation: TalosOperation, world: World): readonly Need[] => [
  { what: 'nodes' },
  { what: 'etcd' },
  ...world.machines
    .filter(m => isSelected(operation, m))
    .flatMap((machine): readonly Need[] => [
      { what: 'machine', name: machine.metadata.name },
      ...configNeeds(viewOf(operation, world, candidateOf(machine))),
    ]),
]

/** The one that goes before all others; what happens to it tells whether they follow. */
const canaryOf = (operation: TalosOperation): Target | undefined => targetsOf(operation.status).find(t => t.phase !== 'Skipped')

const turn = (view: View): Turn => {
  const { operation, target } = view
  const canary = canaryOf(operation)
  const isStaged = specOf(operation).mode === 'staged'
  if (canary && canary.name === target.name) {
    if (openTargets(operation.status).length > 0) return wait('another machine is open')
    if (isStaged) return YES
    return isControlPlane(view) ? othersServe(view) : workerTurn(view)
  }
  if (canary && canary.phase !== 'Completed') return wait(`${displayName(canary)} goes first, alone`)
  return isStaged ? fewAtATime(view) : controlPlanesFirst(view)
}

/** What the patches were when the checks passed; another text under the same name is somebody else's change. */
const otherPatches = (operation: TalosOperation, pins: Readonly<Record<string, string>>): string | undefined => {
  const pinned = operation.status.preflight?.pins ?? {}
  const [changed] = Object.keys(pins).filter(name => pinned[name] !== undefined && pinned[name] !== pins[name])
  return (
    changed &&
    `${changed} holds another patch than when this operation began. Put the one from before back and resume; or cancel, and start another operation.`
  )
}

const open = (view: View): Opening => {
  const { operation, target, world } = view
  const found = machineToOpen(view)
  if ('instead' in found) return found.instead
  const name = displayName(target)
  const wish = wishFor(operation, world, target.name)
  switch (wish.is) {
    case 'missing': {
      const [{ message, fault }] = wish.missing
      if (fault?.kind === 'forbidden') return { fail: { reason: 'PermissionDenied', message: `${message}.` } }
      return fault && fault.kind !== 'notFound'
        ? { wait: message, reason: 'MachineUnreachable' }
        : { fail: { reason: 'ConfigChangedByOthers', message: `${message}. It was there when this operation began.` } }
    }
    case 'unread':
      return { wait: `its configuration cannot be read: ${wish.fault.message}`, reason: 'MachineUnreachable' }
    case 'wrong': {
      const message = `${name}: the patches do not go into its configuration as it is by now: ${wish.faults.map(noteText).join('; ')}.`
      return { fail: { reason: 'ConfigRejected', message } }
    }
    case 'made': {
      const other = otherPatches(operation, wish.pins)
      if (other !== undefined) return { fail: { reason: 'ConfigChangedByOthers', message: other } }
      if (isNothing(operation, wish)) return { skip: NOTHING }
      if (found.facts.stage !== 'running') return { wait: `it is ${found.facts.stage}`, reason: 'MachineNotReady' }
      if (wish.pending && isInTheWay(operation, wish.pending)) return { wait: pendingText(wish.pending), reason: 'ConfigChangedByOthers' }
      const refused = dryRunRefusal(view, wish.to)
      if (refused) return refused
      const goal = { read: sha256(wish.from), computed: sha256(wish.to), ...drainGoal(view) }
      return { open: { goal: specOf(operation).mode === 'reboot' ? goal : { ...goal, drain: 'none' } } }
    }
  }
}

const dryRunRefusal = ({ operation, target, world }: View, text: string): Opening | undefined => {
  const shown = { what: 'dryRun', name: target.name, text, mode: dryRunMode(operation) } as const
  if (!isKnown(world.facts, shown)) return undefined
  const said = dryRunFacts(world, shown)
  if (!said.ok) return { wait: `it does not say whether it takes the configuration: ${said.fault.message}`, reason: 'MachineUnreachable' }
  if (said.value.takes) return undefined
  return {
    fail: {
      reason: 'ConfigRejected',
      message: `${displayName(target)} does not take the configuration any more: ${saidByMachine(operation, world, said.value.why)}.`,
    },
  }
}

const openNeeds = (view: View): readonly Need[] => {
  const beside = specOf(view.operation).mode === 'staged' ? [] : othersNeed(view)
  const known: readonly Need[] = [{ what: 'machine', name: view.target.name }, ...beside, ...configNeeds(view)]
  const isAllKnown = known.every(need => isKnown(view.world.facts, need))
  return isAllKnown ? [...known, ...dryRunNeeds(view.operation, view.world, view.target.name)] : known
}

/** Only where nothing of ours can be in its configuration: there it is read and patched anew. */
const outdated = (view: View): string | undefined => {
  const { operation, target, world } = view
  if (!configNeeds(view).every(need => isKnown(world.facts, need))) return undefined
  const held = heldNow(view)
  if (held === 'other')
    return failureTriedAnew(operation.status, target) && mayPatchAnew(view)
      ? 'somebody else changed its configuration; reading it anew'
      : undefined
  if (held !== 'read') return undefined
  const facts = machineFacts(world, target.name)
  if (facts.ok && target.before?.bootID !== undefined && facts.value.bootID !== target.before.bootID)
    return 'it was rebooted by somebody else before its configuration was written; opening it anew'
  const wish = wishFor(operation, world, target.name)
  return wish.is === 'made' && sha256(wish.to) !== recorded(view).computed ? 'its patched configuration is made anew' : undefined
}

const losesOf = (view: View): readonly string[] => {
  const { mode } = specOf(view.operation)
  if (mode === 'staged') return []
  return mode === 'reboot' ? losses(view, { drained: view.operation.spec.drain.policy !== 'skip' }) : ['what the change itself restarts']
}

const preview = (view: View): PlannedMachine => {
  const wish = wishFor(view.operation, view.world, view.target.name)
  if (wish.is !== 'made') return { from: 'unknown', to: '', loses: [] }
  const diff = diffConfigs(wish.from, wish.to)
  return {
    from: short(sha256(wish.from)),
    to: short(sha256(wish.to)),
    loses: losesOf(view),
    ...(diff ? { diff } : {}),
  }
}

type Mode = ConfigSpec['mode']

/** The same order, with other steps. */
const rollout = (mode: Mode, summary: string, steps: readonly Step[]): Stage => ({
  name: mode,
  summary: `${summary} One worker first, then control planes one at a time, the leader of etcd last, then the other workers.`,
  applies: operation => specOf(operation).mode === mode,
  orderNeeds,
  order,
  turn,
  openNeeds,
  open,
  outdated,
  // What was recorded of it tells whether the patches are in it already.
  retriesInPlace: true,
  steps: [compare, ...steps],
  abandon: mode === 'try' ? [trialOver, giveBack] : [giveBack],
  preview,
  outcome: target => {
    const { read, computed } = recorded({ target })
    return read === computed ? `rebooted into configuration ${short(read)}` : `configuration ${short(read)} -> ${short(computed)}`
  },
})

export const stages: readonly Stage[] = [
  rollout('try', 'Each machine tries the patched configuration, and keeps it when it is well with it.', [tryOut, trial, keep, soak]),
  rollout('no-reboot', 'Each machine is given the patched configuration, and has to be well with it.', [apply, well, soak]),
  rollout('staged', 'Each machine is given the patched configuration for its next boot.', [stage]),
  rollout('reboot', 'Each machine is drained and rebooted into the patched configuration.', [stage, ...aside, ...back]),
]
