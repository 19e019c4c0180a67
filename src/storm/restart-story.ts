import type { TalosOperation, Target } from '../api/talos-operation.ts'
import type { Key } from '../ports/home.ts'
import { ICHOR } from '../world/ports/home.ts'
import { restartKind } from './restart-kind.ts'
import type { Story, StoryOptions } from './story.ts'
import { NAMESPACE, createStory } from './story.ts'

export const MINUTE = 60_000
export const holderOf = (name: string): string => `ichor-controller/op/${NAMESPACE}/${name}`

/** A story whose operations install and restart all machines. */
export type RestartStory = Story & {
  readonly restart: (name: string, spec?: object) => Key
  readonly status: (name: string) => TalosOperation['status']
  readonly open: (name: string) => readonly Target[]
  readonly target: (name: string, hostname: string) => Target | undefined
  readonly untilDone: (...names: readonly string[]) => Promise<void>
  /** `Type=Status` of each condition, and whether all are about the present generation. */
  readonly conditions: (name: string) => string
  readonly finalizers: (name: string) => readonly string[]
}

/** One control plane and one worker, known to Ichor, whose resources live elsewhere so that its API never goes away; a controller leads. */
export const restartStory = async (options: StoryOptions & { readonly unled?: boolean } = {}): Promise<RestartStory> => {
  const { unled = false, ...rest } = options
  const story = createStory({ kinds: [restartKind], controlPlanes: 1, workers: 1, homeOutside: true, ...rest })
  const status = (name: string): TalosOperation['status'] => story.operation(name)?.status ?? {}
  const machines = (name: string): readonly Target[] => status(name).machines ?? []
  if (!unled) {
    story.start()
    const known = () => story.world.store.list(ICHOR.machines).items
    await story.until(
      'machines are discovered',
      () => known().length === story.world.machines.length && known().every(m => m['status'] !== undefined),
    )
  }
  return {
    ...story,
    status,
    restart: (name, spec = {}) => story.create({ name, spec: { kind: 'restart', restart: {}, ...spec } }),
    open: name => machines(name).filter(m => m.phase === 'Running'),
    target: (name, hostname) => machines(name).find(m => m.hostname === hostname),
    untilDone: (...names) => story.until(`${names.join(' and ')} done`, () => names.every(name => status(name).phase === 'Completed')),
    conditions: name => {
      const operation = story.operation(name)
      const conditions = operation?.status.conditions ?? []
      const generation = operation?.metadata.generation
      const isCurrent = operation?.status.observedGeneration === generation && conditions.every(c => c.observedGeneration === generation)
      return [...conditions.filter(c => c.status === 'True').map(c => c.type), ...(isCurrent ? [] : ['stale'])].join(' ') || 'none'
    },
    finalizers: name => story.operation(name)?.metadata.finalizers ?? [],
  }
}
