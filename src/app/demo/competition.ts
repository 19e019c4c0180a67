// Scenarios in which two want to work on the cluster at the same time.
import { formatDuration } from '../../api/duration.ts'
import { LEADER_LEASE_MS } from '../../engine/leader.ts'
import { EXIT } from '../cli/exit-codes.ts'
import { acknowledged, explain, flawsOf, nthEntry, operationName, type Scenario, unless, untilStatus, upgrade } from './stage.ts'

export const twoOperations: Scenario = async stage => {
  const { cli, options, screen, world } = stage
  const victim = world.machines.at(-1)?.name ?? ''
  const started = await upgrade(stage, { wait: false })
  if (started !== EXIT.ok.code) return { flaws: [`the upgrade was not started: exit code ${started}`] }
  const name = await operationName(cli)
  await untilStatus(cli, name, 'it works', ({ phase, machines }) => phase === 'Running' && machines !== undefined)
  screen.say()
  screen.say(`While ${name} works, somebody else wants to reboot ${victim}.`)
  const code = await cli.run('node', 'reboot', victim, '--yes', '--wait', ...acknowledged(options.controlPlanes))
  await explain(
    stage,
    `the second operation was Queued (Paused, ClusterLockHeld) and named who holds the lock of the cluster. It began by itself when ${name} was done, and ${victim} was rebooted then.`,
    'nothing. Whoever cannot wait looks with ichor lock who holds it, and pauses or cancels that operation: a lock is never taken from one that works.',
  )
  await cli.run('operation', 'list')
  return {
    flaws: [
      ...unless(code === EXIT.ok.code, `the reboot ended with exit code ${code}, not ${EXIT.ok.code}`),
      ...flawsOf(stage, EXIT.ok.code, { [victim]: 1 }),
      ...inTurn(
        world.journal.of('boot').map(({ machine }) => machine),
        victim,
      ),
    ],
    end: `The upgrade came first and was done before ${victim} was rebooted once more.`,
  }
}

const inTurn = (boots: readonly (string | undefined)[], last: string): readonly string[] =>
  unless(boots.at(-1) === last, `${boots.at(-1)} was booted after ${last}`)

export const leaderPaused: Scenario = async stage => {
  const { cli, controller, options, screen, secondController, world } = stage
  const { colors } = screen.terminal
  screen.say('A second controller stands by, as with two replicas of a Deployment.')
  const second = await secondController()
  const began = nthEntry(world, 'install-began', Math.min(2, world.machines.length))
  const upgraded = upgrade(stage)
  const first = await Promise.race([began, upgraded])
  if (typeof first === 'number') return { flaws: [`the upgrade ended with exit code ${first} before the leader was stopped`] }
  const pid = controller.pid()
  process.kill(pid, 'SIGSTOP')
  screen.say(
    colors.yellow(
      `kill -STOP ${pid}: the leader stands still in the middle of ${first.machine}, as on a computer that sleeps. Its Lease runs out in ${formatDuration(LEADER_LEASE_MS)}.`,
    ),
  )
  const name = await operationName(cli)
  const machine = first.machine
  await untilStatus(cli, name, `${machine} is done by the second controller`, ({ machines = [] }) =>
    machines.some(one => one.phase === 'Completed' && (one.hostname ?? one.name) === machine),
  )
  screen.say(
    colors.yellow(
      `Process ${second.pid()} leads and has finished ${machine}. kill -CONT ${pid}: the first one wakes in the middle of its call.`,
    ),
  )
  process.kill(pid, 'SIGCONT')
  const flaws = flawsOf(stage, await upgraded)
  if (flaws.length === 0)
    await explain(
      stage,
      `the one that woke asked its clock before it did anything, saw that it does not lead any more, and did nothing. Every machine runs ${options.to} and was rebooted exactly once.`,
      'nothing. ichor_leader in the metrics tells which replica leads; nobody has to choose one.',
    )
  return { flaws }
}
