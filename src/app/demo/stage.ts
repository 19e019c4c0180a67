import { setTimeout as pause } from 'node:timers/promises'
import { isFinished } from '../../api/phases.ts'
import type { OperationStatus } from '../../api/talos-operation.ts'
import type { World } from '../../world/cluster.ts'
import type { JournalEntry } from '../../world/journal.ts'
import { EXIT } from '../cli/exit-codes.ts'
import { OPERATION } from '../cli/resource-types.ts'
import type { CommandLine } from './command-line.ts'
import type { ControllerProcess } from './controller.ts'
import { NAMESPACE } from './demo-world.ts'
import type { DemoOptions } from './options.ts'
import { flawsAfter } from './outcome.ts'
import type { Screen } from './screen.ts'

export type Stage = {
  readonly options: DemoOptions
  readonly world: World
  readonly screen: Screen
  readonly cli: CommandLine
  readonly controller: ControllerProcess
  /** One more replica, which leads when the first one does not. */
  readonly secondController: () => Promise<ControllerProcess>
}

/** What is not as the scenario says, empty when all is well; and how it ended, where that is more than an upgrade. */
export type Played = { readonly flaws: readonly string[]; readonly end?: string }

/** Plays a scenario to its end. */
export type Scenario = (stage: Stage) => Promise<Played>

/** So long that one can read what the demo says before it goes on. */
const READING_MS = 4_000

export const reading = ({ screen, options }: Stage): Promise<void> =>
  pause(screen.terminal.isLive ? READING_MS : READING_MS / options.speed)

/** The two sentences that a scenario ends or stands still with. */
export const explain = async (stage: Stage, seen: string, todo: string): Promise<void> => {
  stage.screen.say()
  stage.screen.say(`What you see: ${seen}`)
  stage.screen.say(`What to do: ${todo}`)
  await reading(stage)
  stage.screen.say()
}

/** The upgrade of the demo; with `wait`, to its end. Answers the exit code. */
export const upgrade = (
  { cli, screen, options: { to, controlPlanes } }: Stage,
  { wait = true, flags = [] }: { readonly wait?: boolean; readonly flags?: readonly string[] } = {},
): Promise<number> => {
  const isOutage = controlPlanes < 3
  if (isOutage)
    screen.say(
      `With ${controlPlanes === 1 ? 'one control plane' : 'two control planes'} the Kubernetes API goes away during a reboot. That has to be acknowledged.`,
    )
  return cli.run('upgrade', 'talos', to, '--yes', ...(wait ? ['--wait'] : []), ...flags, ...acknowledged(controlPlanes))
}

export const acknowledged = (controlPlanes: number): readonly string[] => (controlPlanes < 3 ? ['--acknowledge', 'api-outage'] : [])

export const unless = (holds: boolean, flaw: string): readonly string[] => (holds ? [] : [flaw])

/** After an upgrade that was to go well. One that did not start or stopped says itself what is wrong. `more`: machines that had other boots to make as well. */
export const flawsOf = ({ world, options }: Stage, code: number, more: Readonly<Record<string, number>> = {}): readonly string[] =>
  code === EXIT.ok.code ? flawsAfter(world, options.to, more) : [`the upgrade ended with exit code ${code}, not ${EXIT.ok.code}`]

export const nthEntry = (world: World, what: string, n: number): Promise<JournalEntry> =>
  new Promise(resolve => {
    let seen = 0
    const stop = world.journal.onEntry(entry => {
      if (entry.what !== what || ++seen < n) return
      stop()
      resolve(entry)
    })
  })

/** The name of the first operation there is; empty where there is none. */
export const operationName = async (cli: CommandLine): Promise<string> => {
  const { api, close } = await cli.open()
  try {
    const listed = await api.list(OPERATION, NAMESPACE)
    return (listed.ok && listed.value[0]?.metadata.name) || ''
  } finally {
    close()
  }
}

const SEEN_WITHIN_MS = 120_000

/** Until the status of an operation is so; one that ends or stops before is a fault. */
export const untilStatus = async (
  cli: CommandLine,
  name: string,
  what: string,
  holds: (status: OperationStatus) => boolean,
): Promise<void> => {
  const { api, close } = await cli.open()
  let stop = (): void => {}
  let timer: NodeJS.Timeout | undefined
  let last = 'nothing'
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(
        () => reject(new Error(`operation ${name} did not come to this within ${SEEN_WITHIN_MS / 1000} s: ${what}. It says ${last}`)),
        SEEN_WITHIN_MS,
      )
      stop = api.watch(OPERATION, NAMESPACE, name, sight => {
        if (sight.is !== 'there') return
        const status = (sight.object.status ?? {}) as OperationStatus
        if (holds(status)) return resolve()
        const said = [status.phase, status.failureReason, status.message].filter(Boolean).join(': ')
        if (isFinished(status.phase) || status.failureReason)
          return reject(new Error(`operation ${name} did not come to this: ${what}. It says ${said}`))
        last = said
      })
    })
  } finally {
    clearTimeout(timer)
    stop()
    close()
  }
}
