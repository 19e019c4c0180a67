import type { Resource } from '../../adapters/kube/resource.ts'
import type { KubeObject } from './api.ts'
import type { Session } from './session.ts'
import { Stop } from './stop.ts'

export type Condition = { readonly type: string; readonly status: string; readonly message?: string }
type Awaited = {
  readonly type: Resource
  readonly namespace?: string
  readonly name: string
  readonly timeoutMs: number
  /** What is said where it does not come, with the last conditions behind it. */
  readonly tried: string
}

/** Watches one object until its conditions are as wanted; ends the command when the time has passed. */
export const until = (
  { api, terminal }: Session,
  { type, namespace, name, timeoutMs, tried }: Awaited,
  isWanted: (conditions: readonly Condition[], object: KubeObject) => boolean,
): Promise<void> => {
  const begun = terminal.now()
  let last = 'not seen yet'
  return new Promise((resolve, reject) => {
    let stopTicking: (() => void) | undefined
    let stopWatching: (() => void) | undefined
    let hasEnded = false
    const end = (stop?: Stop) => {
      hasEnded = true
      stopTicking?.()
      stopWatching?.()
      if (stop) reject(stop)
      else resolve()
    }
    stopTicking = terminal.every(1000, () => {
      if (terminal.now() - begun >= timeoutMs) end(new Stop('error', `${tried}: ${last}`))
    })
    stopWatching = api.watch(type, namespace, name, sight => {
      if (hasEnded || sight.is !== 'there') return
      const conditions = conditionsOf(sight.object)
      if (isWanted(conditions, sight.object)) return end()
      last = conditions.map(({ type: what, status, message }) => `${what}=${status}${message ? ` (${message})` : ''}`).join(', ') || last
    })
    if (hasEnded) stopWatching()
  })
}

const conditionsOf = ({ status }: KubeObject): readonly Condition[] => {
  const conditions = (status as { conditions?: unknown } | undefined)?.conditions
  return Array.isArray(conditions) ? conditions : []
}
