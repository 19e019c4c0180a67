// Scenarios in which something of the cluster is in the way: the operation waits or stops, says for what, and goes on when that is mended.
import { setTimeout as pause } from 'node:timers/promises'
import { RESOURCE } from '../../world/objects.ts'
import { EXIT } from '../cli/exit-codes.ts'
import { explain, flawsOf, nthEntry, operationName, type Scenario, type Stage, unless, untilStatus, upgrade } from './stage.ts'

/** A drain that goes well needs about three minutes of the machines' time at most. */
const drainSeconds = ({ options }: Stage): number => 5 + Math.ceil(200 / options.speed)

const WITHIN_MS = 30_000

/** The controller gives back what it took right after it has said that it stopped. */
const comesTrue = async (holds: () => boolean): Promise<boolean> => {
  for (const end = performance.now() + WITHIN_MS; !holds() && performance.now() < end;) await pause(20)
  return holds()
}

const BUDGET = { namespace: 'shop', name: 'ledger' } as const

export const pdbBlocks: Scenario = async stage => {
  const { cli, screen, world } = stage
  const { namespace, name } = BUDGET
  world.addWorkload({ ...BUDGET, replicas: 1, graceSeconds: 10, budget: { maxUnavailable: 0 } })
  screen.say(`A PodDisruptionBudget, ${namespace}/${name}, allows no eviction at all, as happens with one replica that must not be away.`)
  const stopped = await upgrade(stage, { flags: ['--drain-timeout', `${drainSeconds(stage)}s`] })
  const held = world.journal.of('install-began').at(-1)?.machine ?? ''
  const boots = world.journal.of('boot', held).length
  const isLifted = await comesTrue(() => world.nodes.isSchedulable(held))
  await explain(
    stage,
    'FAILED: DrainBlocked, with the budget and the pod that it protects. The machine was installed but not rebooted, its cordon is lifted, and its pods run as before.',
    `let the budget allow a disruption (or ask whoever owns the workload to move it), then resume. The demo sets maxUnavailable of ${namespace}/${name} to 1 and resumes.`,
  )
  const found = world.store.get(RESOURCE.budgets, namespace, name)
  if (!found) return { flaws: [`there is no budget ${namespace}/${name}`] }
  world.store.update(RESOURCE.budgets, { ...found, spec: { ...(found['spec'] as object), maxUnavailable: 1 } })
  const code = await cli.run('operation', 'resume', await operationName(cli), '--wait')
  return {
    flaws: [
      ...unless(stopped === EXIT.stopped.code, `the upgrade with that budget ended with exit code ${stopped}, not ${EXIT.stopped.code}`),
      ...unless(boots === 0, `${held} was booted although its drain was held up`),
      ...unless(isLifted, `the cordon of ${held} was not lifted`),
      ...flawsOf(stage, code),
    ],
  }
}

export const etcdUnhealthy: Scenario = async stage => {
  const { cli, screen, world } = stage
  const { colors } = screen.terminal
  const began = nthEntry(world, 'install-began', 2)
  const upgraded = upgrade(stage)
  const second = await Promise.race([began, upgraded])
  if (typeof second === 'number') return { flaws: [`the upgrade ended with exit code ${second} before etcd fell ill`] }
  const ill = world.machines.find(({ name, role }) => role === 'controlplane' && name !== second.machine)?.name ?? ''
  world.sicken(ill, true)
  screen.say(
    colors.yellow(
      `etcd on ${ill} falls ill now: it answers, but nothing can be read through it. ${second.machine} is about to be rebooted.`,
    ),
  )
  const name = await operationName(cli)
  await untilStatus(cli, name, 'it waits for etcd', ({ waiting }) => /etcd/.test(waiting?.for ?? ''))
  const boots = world.journal.of('boot', second.machine).length
  screen.say()
  await cli.run('operation', 'get', name)
  await explain(
    stage,
    `it waits. Without ${ill} and ${second.machine} etcd would have no quorum, so ${second.machine} is not rebooted; if that lasted, the operation would stop with EtcdUnhealthy.`,
    `mend the member: talosctl service etcd, talosctl logs etcd and talosctl etcd status on ${ill} tell what it lacks. The demo mends it now; nothing else has to be done.`,
  )
  world.sicken(ill, false)
  const flaws = flawsOf(stage, await upgraded)
  return { flaws: [...unless(boots === 0, `${second.machine} was rebooted while etcd on ${ill} was ill`), ...flaws] }
}

export const bootsOldVersion: Scenario = async stage => {
  const { cli, options, screen, world } = stage
  const victim = world.machines.at(-1)?.name ?? ''
  world.fault(victim, { failedBoots: 1 })
  screen.say(
    `The new Talos will not start on ${victim}, the last machine, at its first try: Talos then falls back to what ran before, by itself.`,
  )
  const stopped = await upgrade(stage)
  const boots = world.journal.of('boot', victim).length
  await explain(
    stage,
    `FAILED: BootedOldVersion. ${victim} runs ${options.from} again, is healthy and takes pods; the others run ${options.to}. Nothing else is touched.`,
    `look why it did not start (talosctl dmesg -n of ${victim}, its console, a missing driver or extension), mend that, then resume. The demo resumes: this time it starts.`,
  )
  const code = await cli.run('operation', 'resume', await operationName(cli), '--wait')
  return {
    flaws: [
      ...unless(stopped === EXIT.stopped.code, `the upgrade ended with exit code ${stopped}, not ${EXIT.stopped.code}`),
      ...flawsOf(stage, code, { [victim]: boots }),
    ],
    end: `All machines run Talos ${options.to}; ${victim} needed a second try.`,
  }
}
