import { setTimeout as pause } from 'node:timers/promises'
import type { World } from '../../world/cluster.ts'
import type { JournalEntry } from '../../world/journal.ts'
import { EXIT } from '../cli/exit-codes.ts'
import { OPERATION } from '../cli/resource-types.ts'
import type { CommandLine } from './command-line.ts'
import type { ControllerProcess } from './controller.ts'
import { NAMESPACE } from './demo-world.ts'
import type { DemoOptions, ScenarioName } from './options.ts'
import { flawsAfter, tracesOn } from './outcome.ts'
import type { Screen } from './screen.ts'

export type Stage = {
  readonly options: DemoOptions
  readonly world: World
  readonly screen: Screen
  readonly cli: CommandLine
  readonly controller: ControllerProcess
}

/** Plays a scenario to its end. Answers what is not as the scenario says; empty when all is well. */
export type Scenario = (stage: Stage) => Promise<readonly string[]>

/** So long that one can read what the demo says before it goes on. */
const READING_MS = 4_000

const reading = ({ screen, options }: Stage): Promise<void> => pause(screen.terminal.isLive ? READING_MS : READING_MS / options.speed)

const upgrade = ({ cli, screen, options: { to, controlPlanes } }: Stage): Promise<number> => {
  const isOutage = controlPlanes < 3
  if (isOutage)
    screen.say(
      `With ${controlPlanes === 1 ? 'one control plane' : 'two control planes'} the Kubernetes API goes away during a reboot. That has to be acknowledged.`,
    )
  return cli.run('upgrade', 'talos', to, '--yes', '--wait', ...(isOutage ? ['--acknowledge', 'api-outage'] : []))
}

const unless = (holds: boolean, flaw: string): readonly string[] => (holds ? [] : [flaw])

/** After an upgrade that was to go well. One that did not start or stopped says itself what is wrong. */
const flawsOf = ({ world, options }: Stage, code: number): readonly string[] =>
  code === EXIT.ok.code ? flawsAfter(world, options.to) : [`the upgrade ended with exit code ${code}, not ${EXIT.ok.code}`]

const happy: Scenario = async stage => flawsOf(stage, await upgrade(stage))

const imageNotFound: Scenario = async stage => {
  const { cli, options, screen, world } = stage
  const { colors } = screen.terminal
  world.registry.remove(`:${options.to}`)
  screen.say(`No registry has the installer image of ${options.to}, as if its mirror lagged behind.`)
  const refused = await upgrade(stage)
  const touched = tracesOn(world, options.from)
  screen.say()
  screen.say(
    `What you see: FAILED: ImageNotFound. The operation is Paused: nothing advances until it is resumed. ${touched.length === 0 ? 'No machine was touched: none was drained, installed or rebooted.' : ''}`,
  )
  screen.say('What to do: bring the image to the registry, then resume. The demo does both now.')
  await reading(stage)
  world.registry.restore(`:${options.to}`)
  screen.say()
  screen.say(colors.dim('(The image is in the registry now.)'))
  const name = await operationName(cli)
  const code = await cli.run('operation', 'resume', name, '--wait')
  return [
    ...unless(refused === EXIT.stopped.code, `the upgrade without an image ended with exit code ${refused}, not ${EXIT.stopped.code}`),
    ...touched,
    ...flawsOf(stage, code),
  ]
}

const operationName = async (cli: CommandLine): Promise<string> => {
  const { api, close } = await cli.open()
  try {
    const listed = await api.list(OPERATION, NAMESPACE)
    return (listed.ok && listed.value[0]?.metadata.name) || ''
  } finally {
    close()
  }
}

const controllerKilled: Scenario = async stage => {
  const { controller, options, screen, world } = stage
  const { colors } = screen.terminal
  screen.say('While a machine installs, the controller gets a kill -9.')
  // The second one, so that there is something done already.
  const began = nthEntry(world, 'install-began', Math.min(2, world.machines.length))
  const upgraded = upgrade(stage)
  const first = await Promise.race([began, upgraded])
  if (typeof first === 'number') return [`the upgrade ended with exit code ${first} before the controller was killed`]
  const pid = controller.pid()
  await controller.kill()
  screen.say(colors.yellow(`kill -9 ${pid}: the controller is gone, and ${first.machine} is in the middle of its install.`))
  await reading(stage)
  await controller.start()
  screen.say(
    colors.yellow(
      `Process ${controller.pid()} is a new controller: it reads the operation's status, looks at the machines, and goes on from there.`,
    ),
  )
  screen.say()
  const code = await upgraded
  const flaws = flawsOf(stage, code)
  if (flaws.length === 0) {
    screen.say()
    screen.say(
      `What you see: nothing but time was lost. Every machine runs ${options.to} and was rebooted exactly once, ${first.machine} too.`,
    )
    screen.say('What to do: nothing. In a cluster whatever runs the controller, a Deployment for example, starts the new one by itself.')
  }
  return flaws
}

const nthEntry = (world: World, what: string, n: number): Promise<JournalEntry> =>
  new Promise(resolve => {
    let seen = 0
    const stop = world.journal.onEntry(entry => {
      if (entry.what !== what || ++seen < n) return
      stop()
      resolve(entry)
    })
  })

export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  happy,
  'image-not-found': imageNotFound,
  'controller-killed': controllerKilled,
}
