import type { World } from '../../world/cluster.ts'
import { versionOf } from '../../world/machine.ts'

/**
 * What is not as it should be after an upgrade to `version`, as the machines themselves have it. Empty: all is well. `more`: how many boots a machine had to make besides
 * that of the upgrade.
 */
export const flawsAfter = (world: World, version: string, more: Readonly<Record<string, number>> = {}): readonly string[] => [
  ...world.machines.flatMap(machine => {
    const { name } = machine
    const boots = world.journal.of('boot', name).length
    const wanted = 1 + (more[name] ?? 0)
    return [
      ...(versionOf(machine) === version ? [] : [`${name} runs ${versionOf(machine)}, not ${version}`]),
      ...(boots === wanted ? [] : [`${name} was booted ${boots} times, not ${wanted === 1 ? 'once' : `${wanted} times`}`]),
    ]
  }),
  ...flaws(world),
]

/** What is not as it should be where nothing was to be touched. */
export const tracesOn = (world: World, version: string): readonly string[] => [
  ...world.machines.filter(machine => versionOf(machine) !== version).map(machine => `${machine.name} runs ${versionOf(machine)}`),
  ...world.journal.of('install-began').map(({ machine }) => `an install began on ${machine}`),
  ...world.journal.of('boot').map(({ machine }) => `${machine} was booted`),
  ...flaws(world),
]

const flaws = (world: World): readonly string[] => [
  ...world.away().map(({ name }) => `${name} is away`),
  ...world.machines.filter(({ name }) => !world.nodes.isReady(name)).map(({ name }) => `Node ${name} is not ready`),
  ...world.machines.filter(({ name }) => !world.nodes.isSchedulable(name)).map(({ name }) => `Node ${name} is cordoned`),
]
