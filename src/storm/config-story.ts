// A rollout of a configuration, for the tests of that kind.
import { ANNOTATION } from '../api/names.ts'
import { createStory, type Story, type StoryOptions } from './story.ts'
import type { Machine } from '../world/machine.ts'

export const MINUTE = 60_000
export const SYSCTL = 'machine:\n  sysctls:\n    net.core.somaxconn: "65535"\n'
/** Adds to a list each time that it is applied. */
export const APPENDS = 'machine:\n  certSANs:\n    - ichor.example.com\n'
export const CUTS =
  'machine:\n  network:\n    interfaces:\n      - interface: eth0\n        routes:\n          - network: 0.0.0.0/0\n            gateway: 192.0.2.1\n'
export const ON_BOOT = 'machine:\n  env:\n    GODEBUG: http2debug=1\n'

export const begun = async (options: StoryOptions, config: object, spec: object = {}): Promise<Story> => {
  const story = createStory({ seed: 3, ...options })
  story.start()
  await story.pass(MINUTE)
  story.create({ name: 'op', spec: { kind: 'config', ...spec, config } })
  return story
}
export const status = (story: Story) => story.operation('op')?.status ?? {}
export const settled = (story: Story): Promise<void> =>
  story.until('it has settled', () => ['Completed', 'Paused'].includes(status(story).phase ?? ''))
export const rolledOut = async (config: object, options: StoryOptions = {}, spec: object = {}): Promise<Story> => {
  const story = await begun(options, config, spec)
  await settled(story)
  return story
}
export const resume = async (story: Story): Promise<void> => {
  const before = status(story).lastRetry
  story.edit('op', { annotations: { [ANNOTATION.retry]: 'true' } })
  await story.until('the new try has begun', () => status(story).lastRetry !== before)
}
export const applied = (story: Story, machine?: string): readonly string[] =>
  story.world.journal.of('config-applied', machine).map(e => (machine ? '' : `${e.machine} `) + e.detail)
export const times = (text: string, part: string): number => text.split(part).length - 1
export const machineNames = (story: Story): readonly string[] => story.world.machines.map(m => m.name)
/** Once, when a machine is open and `holds` of its entry in status. */
export const whenOpen = async (story: Story, name: string, holds: (step: string | undefined) => boolean): Promise<Machine> => {
  await story.until(`${name} is there`, () => {
    const target = status(story).machines?.find(t => t.hostname === name)
    return target?.phase === 'Running' && holds(target.step)
  })
  return story.world.machine(name)
}
