import { EXIT } from '../cli/exit-codes.ts'
import { leaderPaused, twoOperations } from './competition.ts'
import { bootsOldVersion, etcdUnhealthy, pdbBlocks } from './obstacles.ts'
import type { ScenarioName } from './options.ts'
import { tracesOn } from './outcome.ts'
import { explain, flawsOf, nthEntry, operationName, reading, type Scenario, unless, upgrade } from './stage.ts'

const happy: Scenario = async stage => ({ flaws: flawsOf(stage, await upgrade(stage)) })

const imageNotFound: Scenario = async stage => {
  const { cli, options, screen, world } = stage
  const { colors } = screen.terminal
  world.registry.remove(`:${options.to}`)
  screen.say(`No registry has the installer image of ${options.to}, as if its mirror lagged behind.`)
  const refused = await upgrade(stage)
  const touched = tracesOn(world, options.from)
  await explain(
    stage,
    `FAILED: ImageNotFound. The operation is Paused: nothing advances until it is resumed. ${touched.length === 0 ? 'No machine was touched: none was drained, installed or rebooted.' : ''}`,
    'bring the image to the registry, then resume. The demo does both now.',
  )
  world.registry.restore(`:${options.to}`)
  screen.say(colors.dim('(The image is in the registry now.)'))
  const name = await operationName(cli)
  const code = await cli.run('operation', 'resume', name, '--wait')
  return {
    flaws: [
      ...unless(refused === EXIT.stopped.code, `the upgrade without an image ended with exit code ${refused}, not ${EXIT.stopped.code}`),
      ...touched,
      ...flawsOf(stage, code),
    ],
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
  if (typeof first === 'number') return { flaws: [`the upgrade ended with exit code ${first} before the controller was killed`] }
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
  if (flaws.length === 0)
    await explain(
      stage,
      `nothing but time was lost. Every machine runs ${options.to} and was rebooted exactly once, ${first.machine} too.`,
      'nothing. In a cluster whatever runs the controller, a Deployment for example, starts the new one by itself.',
    )
  return { flaws }
}

export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  happy,
  'image-not-found': imageNotFound,
  'controller-killed': controllerKilled,
  'pdb-blocks': pdbBlocks,
  'etcd-unhealthy': etcdUnhealthy,
  'boots-old-version': bootsOldVersion,
  'two-operations': twoOperations,
  'leader-paused': leaderPaused,
}
