import type { TalosOperation, Target } from '../../api/talos-operation.ts'

/** What an operation changes on its machines, as a column of them: the title, and from what to what; empty where there is nothing to tell. */
export type ChangeColumn = { readonly title: string; readonly of: (target: Target) => string }

/**
 * The column of an operation; undefined where it changes no version. By the name of the kind alone: commands that only look at operations load no kinds.
 */
export const changeColumn = ({ spec, status }: TalosOperation): ChangeColumn | undefined => {
  if (spec.kind === 'talos') return { title: 'Talos', of: talosChange }
  if (spec.kind !== 'kubernetes') return undefined
  const { version = '' } = (spec['kubernetes'] ?? {}) as { readonly version?: string }
  // In the first stage images are only pulled.
  return { title: 'Kubernetes', of: target => kubernetesChange(target, status.progress?.stage === 1 ? '' : version) }
}

const talosChange = ({ before, after, goal }: Target): string => {
  const to = after?.version ?? goal?.['version'] ?? tagOf(goal?.['image'])
  if (!before?.version) return to
  return to && to !== before.version ? `${before.version} → ${to}` : before.version
}

/** A machine that is done keeps no images in status, but has the version by then. */
const kubernetesChange = ({ goal, phase }: Target, version: string): string => {
  const [from, to] = [tagOf(goal?.['from']), tagOf(goal?.['image'])]
  if (from !== '' && to !== '') return `${from} → ${to}`
  return phase === 'Completed' ? version : ''
}

const tagOf = (image = ''): string => /:(v[^@/:]+)(?:@|$)/.exec(image)?.[1] ?? ''
