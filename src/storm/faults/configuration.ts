import { pendingOf, setConfig, stageConfig, tryConfig } from '../../world/configuration.ts'
import { answers } from '../../world/machine.ts'
import type { Trouble } from '../plan.ts'
import { machinesOf } from '../plan.ts'
import type { Stage } from '../stage.ts'
import { deleteSources, setUpSources } from '../patch-sources.ts'

/** What other people and tools do to the configurations of machines, and what machines have against one. */

const WHATS = [
  ...(['changed', 'changed', 'staged', 'tried', 'unstaged', 'refused', 'spoiled', 'unreadable', 'kept too late'] as const),
  ...(['its patches are others', 'its patches are others', 'its patches are gone'] as const),
]

/** What Talos itself does not write, and whoever wrote it takes back. */
const SPOILS: Readonly<Record<string, string>> = { spoiled: '---\n- no mapping\n', unreadable: '---\nno: [YAML\n' }

export const configuration: Trouble<Stage> = {
  family: 'configuration',
  harmless: false,
  draw: ({ random, shape, horizonMs, calls }) => {
    const what = random.pick(WHATS)
    return {
      family: 'configuration',
      what,
      // Where something has just been done, or whenever.
      when: random.chance(0.5) ? { call: random.between(1, calls) } : { at: random.between(0, horizonMs) },
      machine: random.between(0, machinesOf(shape) - 1),
      // Some trials end before their configuration can be kept.
      forMs: what === 'kept too late' ? random.between(2, 20) * 60_000 : random.between(1000, 120_000),
    }
  },
  strike: (stage, { what, machine: index, forMs = 1000 }) => {
    const { world } = stage.story
    const machine = stage.machine(index)
    if (what === 'its patches are others') {
      stage.note('somebody pushes other patches')
      setUpSources(world, text => text.replace('10', '20').replace('somebody', 'another'))
      return () => setUpSources(world)
    }
    if (what === 'its patches are gone') {
      stage.note('somebody deletes the patches')
      deleteSources(world)
      return () => setUpSources(world)
    }
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
      case 'unstaged':
        return stage.byHand(machine, () => setConfig(world.site, machine, machine.config))
      case 'spoiled':
      case 'unreadable': {
        const spoil = SPOILS[what] ?? ''
        stage.byHand(machine, () => setConfig(world.site, machine, machine.config + spoil))
        return () => {
          if (machine.config !== '') stage.byHand(machine, () => setConfig(world.site, machine, machine.config.replace(spoil, '')))
        }
      }
      case 'kept too late':
        return stage.disturb(call =>
          call.name === 'applyConfiguration' && machine.addresses.includes(call.target) && pendingOf(machine) === 'trial'
            ? { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: `${call.target}: ${call.name}: unreachable` } }
            : undefined,
        )
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
