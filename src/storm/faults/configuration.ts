import { setConfig, stageConfig, tryConfig } from '../../world/configuration.ts'
import { answers } from '../../world/machine.ts'
import type { Trouble } from '../plan.ts'
import { machinesOf } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** What other people and tools do to the configurations of machines, and what machines have against one. */

const WHATS = ['changed', 'changed', 'staged', 'tried', 'refused'] as const

export const configuration: Trouble<Stage> = {
  family: 'configuration',
  harmless: false,
  draw: ({ random, shape, horizonMs }) => ({
    family: 'configuration',
    what: random.pick(WHATS),
    when: { at: random.between(0, horizonMs) },
    machine: random.between(0, machinesOf(shape) - 1),
    forMs: random.between(1000, 120_000),
  }),
  strike: (stage, { what, machine: index, forMs = 1000 }) => {
    const { world } = stage.story
    const machine = stage.machine(index)
    if (!answers(machine) || machine.config === '') return
    stage.note(`the configuration of ${machine.name} is ${what}`)
    const [is, was] = machine.config.includes('wipe: true') ? ['wipe: false', 'wipe: true'] : ['wipe: true', 'wipe: false']
    const other = machine.config.replace(was, is)
    switch (what) {
      case 'changed':
        return stage.byHand(machine, () => setConfig(world.site, machine, other))
      case 'staged':
        return stage.byHand(machine, () => stageConfig(world.site, machine, other))
      case 'tried':
        return stage.byHand(machine, () => tryConfig(world.site, machine, other, forMs))
      case 'refused': {
        const faults = world.faults.of(machine)
        faults.refusesConfig = '1 error occurred: it is not to its taste'
        return () => {
          faults.refusesConfig = undefined
        }
      }
    }
  },
}
