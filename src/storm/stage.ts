import { ANNOTATION } from '../api/names.ts'
import type { TalosOperation } from '../api/talos-operation.ts'
import type { Fault } from '../ports/fault.ts'
import type { PortCall, Verdict } from '../world/calls.ts'
import type { Machine } from '../world/machine.ts'
import type { Random } from '../world/random.ts'
import { createRandom } from '../world/random.ts'
import { requestReboot } from '../world/reboot.ts'
import type { Plan } from './plan.ts'
import type { Process, Story } from './story.ts'
import type { Weather } from './weather.ts'

/** One place for a controller: who runs there now. */
export type Replica = { readonly slot: number; process: Process; isFrozen: boolean; generation: number }

/** Where a plan is played: the story, and the hands of those who make trouble in it. */
export type Stage = {
  readonly plan: Plan
  readonly story: Story
  readonly weather: Weather
  /** For what is drawn while it plays; apart from the world's own, so that a strike less leaves the others as they were. */
  readonly random: Random
  readonly replicas: readonly Replica[]
  readonly machine: (index: number | undefined) => Machine
  /** What a person or the hardware does: not to be laid at Ichor's door. The machine named is not what it was from now on. */
  readonly byHand: <T>(machine: Machine | undefined, run: () => T) => T
  readonly isByHand: () => boolean
  /** When somebody else laid hands on a machine last; -Infinity where nobody did. */
  readonly touchedAt: (machine: Machine) => number
  /** A line of the story. */
  readonly note: (text: string) => void
  readonly notes: () => readonly { readonly at: number; readonly text: string }[]
  readonly kill: (replica: Replica, backMs: number) => void
  readonly freeze: (replica: Replica, forMs: number) => void
  readonly replicaOf: (client: string) => Replica | undefined
  /** The next calls that match get this verdict; the answer ends it. */
  readonly disturb: (verdict: (call: PortCall) => Verdict | undefined) => () => void
  /** Whether calls may get another verdict than their own now. */
  readonly isDisturbed: () => boolean
  readonly operations: () => readonly TalosOperation[]
  readonly ask: (
    name: string,
    what: { readonly paused?: boolean; readonly cancelled?: boolean; readonly retry?: 'by hand' | 'by apply' },
  ) => void
  readonly rebootByHand: (machine: Machine) => void
}

export const createStage = (plan: Plan, story: Story, weather: Weather): Stage => {
  const { world } = story
  const { schedule } = world
  const begin = schedule.now()
  const notes: { at: number; text: string }[] = []
  const touched = new Map<string, number>()
  const disturbances = new Set<() => void>()
  const replicas: Replica[] = []
  let isByHand = false

  const note = (text: string): void => void notes.push({ at: schedule.now() - begin, text })
  const byHand: Stage['byHand'] = (machine, run) => {
    const was = isByHand
    isByHand = true
    if (machine) touched.set(machine.name, schedule.now())
    const result = run()
    isByHand = was
    return result
  }
  const start = (replica: Replica): void => {
    replica.generation++
    replica.isFrozen = false
    replica.process = story.start(`ichor-${replica.slot}-${replica.generation}`)
  }
  for (let slot = 0; slot < plan.shape.replicas; slot++)
    replicas.push({ slot, generation: 0, isFrozen: false, process: story.start(`ichor-${slot}-0`) })

  const operations = (): readonly TalosOperation[] =>
    story.names().flatMap(name => {
      const found = story.operation(name)
      return found ? [found] : []
    })

  return {
    plan,
    story,
    weather,
    random: createRandom(plan.seed + 11 * 2 ** 32),
    replicas,
    machine: index => world.machine(index ?? 0),
    byHand,
    isByHand: () => isByHand,
    touchedAt: machine => touched.get(machine.name) ?? Number.NEGATIVE_INFINITY,
    note,
    notes: () => notes,
    kill: (replica, backMs) => {
      replica.process.kill()
      const { generation } = replica
      schedule.after(backMs, () => {
        if (replica.generation === generation) start(replica)
      })
    },
    freeze: (replica, forMs) => {
      if (replica.isFrozen) return
      replica.isFrozen = true
      const { process, generation } = replica
      process.freeze()
      schedule.after(forMs, () => {
        if (replica.generation === generation) replica.isFrozen = false
        process.thaw()
      })
    },
    replicaOf: client => replicas.find(r => r.process.ports.client.name === client),
    disturb: verdict => {
      const stop = world.calls.intercept(verdict)
      disturbances.add(stop)
      return () => {
        disturbances.delete(stop)
        stop()
      }
    },
    isDisturbed: () => disturbances.size > 0,
    operations,
    ask: (name, { paused, cancelled, retry }) => {
      if (!story.operation(name)) return
      story.edit(name, {
        spec: { ...(paused === undefined ? {} : { paused }), ...(cancelled ? { cancelled } : {}) },
        ...(retry ? { annotations: { [ANNOTATION.retry]: 'true' } } : {}),
        ...(retry === 'by apply'
          ? {
              managedFields: [
                {
                  manager: 'gitops',
                  operation: 'Apply',
                  time: new Date(schedule.now()).toISOString(),
                  fieldsV1: { 'f:metadata': { 'f:annotations': { [`f:${ANNOTATION.retry}`]: {} } } },
                },
              ],
            }
          : {}),
      })
    },
    rebootByHand: machine => {
      if (!machine.powered || !machine.apid || machine.cut) return
      byHand(machine, () => requestReboot(world.site, machine, 'default'))
    },
  }
}

export const busy = (message: string): Fault => ({ kind: 'busy', message })
