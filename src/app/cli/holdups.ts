import { ANNOTATION } from '../../api/names.ts'
import type { Condition } from '../../api/talos-operation.ts'
import type { KubeObject } from './api.ts'

/** Why upgrades leave a machine alone: the words of its annotation (`true` where there are none); undefined where it is not held. */
export const holdOf = ({ annotations }: KubeObject['metadata']): string | undefined => {
  const value = annotations?.[ANNOTATION.upgradeHold]
  return value === 'false' ? undefined : value
}

/** What a row of columns has no room for: why the object is not ready, and that it is held back. */
export const holdupLines = ({ metadata, status }: KubeObject): string[] => {
  const conditions = (status as { conditions?: readonly Condition[] } | undefined)?.conditions
  const ready = Array.isArray(conditions) ? (conditions as readonly Condition[]).find(({ type }) => type === 'Ready') : undefined
  const lines: string[] = []
  if (ready && ready.status !== 'True')
    lines.push(`${ready.status === 'False' ? 'Not ready' : 'Ready is unknown'}: ${ready.message || ready.reason || 'it is not said why'}`)
  const hold = holdOf(metadata)
  if (hold !== undefined) lines.push(`Held back from upgrades${hold === 'true' ? '' : `: ${hold}`}`)
  return lines
}
