import type { MachineStage } from '../ports/talos.ts'
import type { Machine, RunningSequence } from './machine.ts'
import { setStage, versionOf } from './machine.ts'
import { parseVersion } from './releases.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'

export type SequenceName =
  | 'initialize'
  | 'install'
  | 'boot'
  | 'shutdown'
  | 'upgrade'
  | 'stageUpgrade'
  | 'maintenanceUpgrade'
  | 'reboot'
  | 'reset'
  | 'emergencyVolumeCleanup'

/** Tasks of a phase run together. Without `run` the phase takes a moment and succeeds. */
export type Phase = {
  readonly name: string
  readonly tasks: readonly string[]
  /** Calls `end` once, with an error's text if it failed. May never call it. */
  readonly run?: (end: (error?: string) => void) => void
  /** What its tasks fail at is logged, and the sequence goes on. */
  readonly mayFail?: boolean
}

export type Sequence = {
  readonly name: SequenceName
  readonly phases: readonly Phase[]
  /** Does not wait for the one that it takes over from. */
  readonly forced?: boolean
  /** Takes over from any other. */
  readonly takesOver?: boolean
  /** After the last phase, or after the one that failed; not when another sequence took over or the machine went down. */
  readonly ended?: (error: string | undefined) => void
}

/** Which running sequences give way to a new one. */
const GIVES_WAY: Readonly<Record<SequenceName, readonly SequenceName[]>> = {
  initialize: ['maintenanceUpgrade'],
  install: [],
  boot: ['reboot', 'reset', 'upgrade'],
  reboot: ['reboot'],
  reset: ['reboot'],
  upgrade: [],
  stageUpgrade: [],
  maintenanceUpgrade: [],
  emergencyVolumeCleanup: [],
  shutdown: [],
}

/** Since 1.14, and in late patches of 1.13, a machine in maintenance can be rebooted. */
const initializeGivesWay = (version: string): boolean => {
  const [, minor = 0, patch = 0] = parseVersion(version) ?? []
  return minor > 13 || (minor === 13 && patch >= 9)
}

const givesWay = (machine: Machine, running: SequenceName, name: SequenceName): boolean =>
  GIVES_WAY[running].includes(name) || (running === 'initialize' && name === 'reboot' && initializeGivesWay(versionOf(machine)))

/** What a sequence's START makes of the stage. Installing begins with its phase of that name. */
const STAGES: Readonly<Record<SequenceName, MachineStage | undefined>> = {
  initialize: 'booting',
  install: undefined,
  boot: 'booting',
  reboot: 'rebooting',
  reset: 'resetting',
  upgrade: 'upgrading',
  stageUpgrade: 'upgrading',
  maintenanceUpgrade: 'upgrading',
  emergencyVolumeCleanup: undefined,
  shutdown: 'shutting down',
}
const INSTALLS: readonly SequenceName[] = ['install', 'upgrade', 'stageUpgrade', 'maintenanceUpgrade']

/** What a phase's START makes of the stage. */
const stageOfPhase = (sequence: SequenceName, phase: string): MachineStage | undefined => {
  if (sequence === 'install' && phase === 'install') return 'installing'
  return phase === 'kexec' && INSTALLS.includes(sequence) ? 'rebooting' : undefined
}

/**
 * Starts a sequence in the background, as all of Talos' actions do: true when it runs, false when another one holds the lock. The caller of the
 * Talos API gets OK and the actor id either way. What the machine does by itself has an empty actor id.
 */
export const startSequence = (site: Site, machine: Machine, sequence: Sequence, actorID: string): boolean => {
  const { journal, schedule } = site
  const publish = machine.events.publish
  const victim = machine.sequence
  if (victim) {
    const isAllowed = sequence.takesOver === true || givesWay(machine, victim.name as SequenceName, sequence.name)
    const mayTakeOver = isAllowed && (!victim.stuck || sequence.forced === true)
    if (!mayTakeOver) {
      const error = { code: 'LOCKED', message: 'sequence not started: locked' } as const
      publish(schedule.now(), '', { type: 'SequenceEvent', sequence: sequence.name, action: 'NOOP', error })
      journal.write(
        machine.name,
        'locked',
        `${sequence.name}: ${victim.name} runs since ${((schedule.now() - victim.since) / 1000).toFixed(0)}s`,
      )
      return false
    }
    victim.abandoned = true
    for (const task of victim.tasks) publish(schedule.now(), victim.actorID, { type: 'TaskEvent', task, action: 'STOP' })
    publish(schedule.now(), victim.actorID, { type: 'PhaseEvent', phase: victim.phase, action: 'STOP' })
    publish(schedule.now(), victim.actorID, { type: 'SequenceEvent', sequence: victim.name, action: 'STOP' })
    const why = `error running phase ${victim.at + 1} in ${victim.name} sequence: task 1/${victim.tasks.length}: failed, context canceled`
    const error = { code: 'CANCELED', message: `sequence failed: ${why}` } as const
    publish(schedule.now(), victim.actorID, { type: 'SequenceEvent', sequence: victim.name, action: 'NOOP', error })
  }

  const running: RunningSequence = {
    ...{ name: sequence.name, actorID, phase: '', at: 0, tasks: [], since: schedule.now(), abandoned: false, stuck: false },
  }
  machine.sequence = running
  const { life } = machine
  publish(schedule.now(), actorID, { type: 'SequenceEvent', sequence: sequence.name, action: 'START' })
  const stage = STAGES[sequence.name]
  if (stage) setStage(site, machine, stage)

  const finish = (error: string | undefined): void => {
    publish(schedule.now(), actorID, { type: 'SequenceEvent', sequence: sequence.name, action: 'STOP' })
    machine.sequence = undefined
    if (error !== undefined) {
      const fatal = { code: 'FATAL', message: `sequence failed: ${error}` } as const
      publish(schedule.now(), actorID, { type: 'SequenceEvent', sequence: sequence.name, action: 'NOOP', error: fatal })
      journal.write(machine.name, 'sequence-failed', `${sequence.name}: ${error}`)
      if (sequence.name !== 'shutdown') setStage(site, machine, 'rebooting')
    }
    sequence.ended?.(error)
  }
  const runPhase = (at: number): void => {
    const phase = sequence.phases[at]
    if (!phase) return finish(undefined)
    running.phase = phase.name
    running.at = at
    running.tasks = phase.tasks
    publish(schedule.now(), actorID, { type: 'PhaseEvent', phase: phase.name, action: 'START' })
    const stageNow = stageOfPhase(sequence.name, phase.name)
    if (stageNow) setStage(site, machine, stageNow)
    for (const task of phase.tasks) publish(schedule.now(), actorID, { type: 'TaskEvent', task, action: 'START' })
    let ended = false
    const end = (error?: string): void => {
      if (ended || running.abandoned || machine.life !== life) return
      ended = true
      for (const task of phase.tasks) publish(schedule.now(), actorID, { type: 'TaskEvent', task, action: 'STOP' })
      publish(schedule.now(), actorID, { type: 'PhaseEvent', phase: phase.name, action: 'STOP' })
      if (error !== undefined && phase.mayFail) journal.write(machine.name, 'phase-failed', `${sequence.name}: ${phase.name}: ${error}`)
      if (error === undefined || phase.mayFail) return runPhase(at + 1)
      finish(`error running phase ${at + 1} in ${sequence.name} sequence: task 1/${phase.tasks.length}: failed, ${error}`)
    }
    if (phase.run) phase.run(end)
    else later(site, machine, site.durations.draw('task'), () => end())
  }
  runPhase(0)
  return true
}
