import type { TalosOperation } from '../../api/talos-operation.ts'
import type { PatchNote } from '../../core/config-patch/note.ts'
import { noteText } from '../../core/config-patch/note.ts'
import { checkPatches } from '../../core/config-patch/patch-config.ts'
import type { EtcdGateVerdict } from '../../core/etcd-gate.ts'
import type { Checked, Refusal } from '../../core/kind.ts'
import { etcdViews, gate, gateText } from '../../core/machine-steps/etcd.ts'
import { heldBecause } from '../../core/machine-steps/order.ts'
import { controlPlanesOf, isSelected } from '../../core/machine-steps/target.ts'
import type { Known } from '../../core/preflight.ts'
import {
  besideUnwell,
  identity,
  knownOf,
  nodesRefusal,
  noneSelected,
  once,
  overridable,
  refuse,
  unanswered,
  unregistered,
  sentence,
} from '../../core/preflight.ts'
import { compareVersions, parseVersion, versionSpan } from '../../core/versions.ts'
import type { Need, World } from '../../core/world.ts'
import { dryRunFacts, isKnown, machineFacts, nodeFacts, machineTitle } from '../../core/world.ts'
import { apiServerGoes } from './api-server.ts'
import { sameAddresses, sameHostname } from './by-machine.ts'
import { changesOf } from './change.ts'
import { follows } from './follows.ts'
import { keptArguments } from './kept-arguments.ts'
import { grouped, type Objection } from './objections.ts'
import { isTrap, patchesOf, saidByMachine, textNeeds } from './patches.ts'
import { restartGate } from './reboot.ts'
import { skew } from './skew.ts'
import { specOf } from './spec.ts'
import type { Wish } from './view.ts'
import { dryRunMode, dryRunNeeds, firstMode, isInTheWay, isNothing, wishFor } from './view.ts'

/** Each machine is shown its patched configuration before any of them is given one. */
export const checkNeeds = (operation: TalosOperation, world: World): readonly Need[] => {
  const known: readonly Need[] = [
    ...world.machines.map((m): Need => ({ what: 'machine', name: m.metadata.name })),
    { what: 'nodes' },
    { what: 'etcd' },
    { what: 'controlPlane' },
    ...textNeeds(operation),
    ...world.machines.filter(m => isSelected(operation, m)).map((m): Need => ({ what: 'configuration', name: m.metadata.name })),
  ]
  if (!known.every(need => isKnown(world.facts, need))) return known
  const shown = world.machines
    .filter(m => isMine(operation, world, m.metadata.name) && mayShow(operation, world))
    .flatMap(m => dryRunNeeds(operation, world, m.metadata.name))
  return [...known, ...shown]
}

/**
 * To show a configuration to be staged ends a trial, also that of another operation which is at work: so that waits until the lock is there, and the
 * checks are made once more.
 */
const mayShow = (operation: TalosOperation, { lock }: World): boolean =>
  dryRunMode(operation) === 'try' || lock === undefined || lock.holder === '' || lock.holder.endsWith(`/${operation.metadata.name}`)

/** Selected, and held back by nobody. */
const isMine = (operation: TalosOperation, world: World, name: string): boolean => {
  const machine = world.machines.find(m => m.metadata.name === name)
  return machine !== undefined && isSelected(operation, machine) && heldBecause(world, machine) === undefined
}

/** Everything that speaks against the rollout, at once. */
export const checks = (operation: TalosOperation, world: World): Checked => {
  const nobody = unregistered(world)
  if (nobody.length > 0) return { found: {}, refusals: nobody, notes: [] }
  const known = knownOf(world, world.machines)
  const nodes = nodeFacts(world)
  const selected = world.machines.filter(m => isSelected(operation, m))
  const mine = known.filter(k => isMine(operation, world, k.machine.metadata.name))
  const patches = patchesOf(operation, world)
  const wishes = mine.map(k => ({ ...k, wish: wishFor(operation, world, k.machine.metadata.name) }))
  const changes = changesOf(wishes)
  const skewed = skew(world, changes)
  const ofPatches = patchRefusals(operation, world, mine)
  const refusals = [
    ...noneSelected(operation, world),
    ...unanswered(world, selected),
    ...(nodes.ok ? identity(world, known, nodes.value) : [nodesRefusal(nodes.fault)]),
    ...modes(operation, mine),
    ...health(mine),
    ...(specOf(operation).mode === 'staged'
      ? []
      : besideUnwell(
          world,
          mine.map(k => k.machine),
        )),
    ...ofPatches,
    // Where the patches are wrong by themselves, each machine would say the same again.
    ...(ofPatches.length > 0 ? [] : grouped(wishes.flatMap(one => ofMachine(operation, world, one)))),
    ...grouped([...skewed.objections, ...sameHostname(known, changes), ...keptArguments(changes)]),
    ...apiServerGoes(operation, world, changes),
    ...etcd(operation, world, mine),
  ]
  const talos = versionSpan(known.map(k => k.facts.version))
  const members = versionSpan(etcdViews(world).flatMap(v => (v.view.ok ? [v.view.value.status.protocolVersion] : [])))
  return {
    found: { ...(talos ? { talos } : {}), ...(members ? { etcd: members } : {}) },
    refusals: once(refusals),
    notes: [...notes(operation, world, wishes), ...skewed.notes, ...sameAddresses(changes), ...follows(specOf(operation).mode, changes)],
    ...(patches.ok ? { pins: patches.pins } : {}),
  }
}

/** Since this version Talos tells what it has on its disk. */
const FIRST_PERSISTENT = parseVersion('v1.10.0')

const modes = (operation: TalosOperation, mine: readonly Known[]): readonly Refusal[] => {
  const { mode } = specOf(operation)
  const isOld = ({ facts }: Known): boolean => {
    const running = parseVersion(facts.version)
    return running !== undefined && FIRST_PERSISTENT !== undefined && compareVersions(running, FIRST_PERSISTENT) < 0
  }
  const contained = mine.filter(k => mode === 'reboot' && k.facts.platform === 'container')
  const old = mine.filter(k => firstMode(operation) === 'staged' && isOld(k))
  return [
    ...(contained.length > 0
      ? [
          refuse(
            'ContainerMode',
            `${namesOf(contained)} ${contained.length === 1 ? 'runs' : 'run'} in container mode, in which Talos does not reboot.`,
          ),
        ]
      : []),
    ...old.map(k =>
      refuse(
        'ModeUnsupported',
        `${k.name} runs ${k.facts.version}, which does not tell what is staged; that came with Talos 1.10. Use the mode try or no-reboot.`,
        k.machine.metadata.name,
      ),
    ),
  ]
}

const namesOf = (machines: readonly Pick<Known, 'name'>[]): string => machines.map(k => k.name).join(', ')

/** One that runs may be cured by the patch. */
const health = (mine: readonly Known[]): readonly Refusal[] =>
  mine
    .filter(k => k.facts.stage !== 'running' || !k.facts.ready)
    .map(({ facts, name, machine }) => {
      const unmet = facts.unmet.length > 0 ? `, ${facts.unmet.join('; ')}` : ''
      const message = `${name} is not ready: stage ${facts.stage}${unmet}. Whether it is well with another configuration could not be told; mend it first, or hold it with \`ichor machine hold\`.`
      return facts.stage === 'running'
        ? overridable('MachineNotReady', `${message} Where the patch is its cure, override.`, machine.metadata.name)
        : refuse('MachineNotReady', message, machine.metadata.name)
    })

const RULES: Partial<Record<PatchNote['code'], string>> = {
  noMatch: 'PatchMatchesNothing',
  forbidden: 'PatchForbidden',
  trap: 'PatchAmbiguous',
  unknownKind: 'UnknownDocument',
  unknownField: 'UnknownField',
}
const ofNote = (note: PatchNote): Refusal => refuse(RULES[note.code] ?? 'PatchInvalid', sentence(noteText(note)))

/** What is wrong with the patches, whatever a machine has. */
const patchRefusals = (operation: TalosOperation, world: World, mine: readonly Known[]): readonly Refusal[] => {
  const patches = patchesOf(operation, world)
  if (!patches.ok)
    return patches.missing.map(({ message, fault }) =>
      refuse(fault?.kind === 'forbidden' ? 'PermissionDenied' : 'PatchMissing', sentence(message)),
    )
  const talos = versionSpan(mine.map(k => k.facts.version))
  if (!talos) return []
  const { faults, warnings } = checkPatches(patches.texts, talos.lowest)
  return [...faults, ...warnings.filter(isTrap)].map(ofNote)
}

type Wished = Known & { readonly wish: Wish }

const IN_THE_WAY = {
  staged:
    'has another configuration that is staged for its next boot, which this would undo. Reboot it first, or use the mode staged or reboot',
  trial:
    'has a configuration on trial, which would stay then although nobody has kept it. Wait until Talos has put the one from before back, which takes minutes; or reboot the machine, which boots that one',
} as const

const ofMachine = (operation: TalosOperation, world: World, { name, machine, wish }: Wished): readonly Objection[] => {
  const object = (rule: string, what: string): Objection => ({ name, machine: machine.metadata.name, rule, what })
  switch (wish.is) {
    case 'missing':
      return []
    case 'unread':
      return [object('MachineUnreachable', `does not tell its configuration: ${wish.fault.message}`)]
    case 'wrong':
      return wish.faults.map(fault => object(RULES[fault.code] ?? 'PatchInvalid', `cannot be patched: ${noteText(fault)}`))
    case 'made': {
      if (wish.pending && isInTheWay(operation, wish.pending)) return [object('ConfigPending', IN_THE_WAY[wish.pending])]
      const shown = { what: 'dryRun', name: machine.metadata.name, text: wish.to, mode: dryRunMode(operation) } as const
      if (!isKnown(world.facts, shown)) return []
      const said = dryRunFacts(world, shown)
      if (!said.ok) return [object('MachineUnreachable', `does not say whether it takes the configuration: ${said.fault.message}`)]
      if (said.value.takes) return []
      return said.value.needsReboot
        ? [object('RebootNeeded', `takes this change only with a reboot; use the mode reboot, or staged`)]
        : [object('ConfigRejected', `refuses the patched configuration: ${saidByMachine(operation, world, said.value.why)}`)]
    }
  }
}

const etcd = (operation: TalosOperation, world: World, mine: readonly Known[]): readonly Refusal[] => {
  const { mode } = specOf(operation)
  if (mode === 'staged' || controlPlanesOf(world).some(m => !machineFacts(world, m.metadata.name).ok)) return []
  const members = mine.filter(k => k.machine.spec.role === 'controlplane')
  const verdicts: readonly EtcdGateVerdict[] =
    mode === 'reboot' && members.length > 0
      ? members.map(k => restartGate(operation, world, k.machine.metadata.name))
      : [gate(operation, world, { purpose: 'settled', etcdStepAllowed: true })]
  const worst = verdicts.find(v => !v.pass && v.kind !== 'hold') ?? verdicts.find(v => !v.pass)
  return worst && !worst.pass ? [refuse(worst.reason, gateText(worst), worst.machine)] : []
}

const notes = (operation: TalosOperation, world: World, wishes: readonly Wished[]): readonly string[] => {
  const { mode } = specOf(operation)
  const made = wishes.flatMap(({ name, wish }) => (wish.is === 'made' ? [{ name, wish }] : []))
  const warnings = new Set(made.flatMap(({ wish }) => wish.warnings.filter(note => !isTrap(note)).map(note => sentence(noteText(note)))))
  const list = [...warnings]
  if (mode === 'staged') list.push('Nothing changes before each machine is rebooted, whoever does that.')
  if (mode === 'no-reboot')
    list.push('A configuration that cuts a machine off its network is not put back by itself; the mode try has Talos do that.')
  if (mode === 'reboot')
    list.push('A configuration that keeps a machine from coming back is mended at its console only; the rollout stops at the first.')
  const pending = made.filter(({ wish }) => wish.pending === 'staged')
  if (pending.length > 0)
    list.push(
      `A configuration that has not been booted waits on the disk of ${namesOf(pending)} already; it is that one which is patched${mode === 'reboot' ? ' and booted' : ''}.`,
    )
  if (!mayShow(operation, world) && made.some(({ wish }) => !isNothing(operation, wish)))
    list.push('Whether the machines take the configuration is asked when the lock is free, before the first of them is given it.')
  const held = world.machines.filter(m => isSelected(operation, m) && heldBecause(world, m) !== undefined)
  if (held.length > 0) list.push(`Held, so their configurations stay as they are: ${held.map(machineTitle).join(', ')}.`)
  return list
}
