import { evict } from './budgets.ts'
import type { ApiServer } from './api-server.ts'
import type { Machine } from './machine.ts'
import type { Nodes } from './nodes.ts'
import { RESOURCE } from './objects.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import type { KubeObject } from './store.ts'

/** Drains the machine's own node as Talos does; calls back when it gave up or was done. */
export type ServerDrain = (machine: Machine, end: (error?: string) => void) => void

/** Mirror pods, pods of DaemonSets and pods without an owner stay. */
const isEvictable = (pod: KubeObject): boolean => {
  if (pod.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false
  const owner = pod.metadata.ownerReferences?.find(o => o.controller)
  return owner !== undefined && owner.kind !== 'DaemonSet'
}

/**
 * Talos' own cordon and drain: waits a minute at most for the cordon, then evicts for five minutes at most, trying refused pods again every five
 * seconds. What is left by then is only logged. Without a cordon the sequence fails.
 */
export const createServerDrain =
  (site: Site, api: ApiServer, nodes: Nodes): ServerDrain =>
  (machine, end) => {
    const { schedule, durations, store, journal } = site
    const begun = schedule.now()
    const evictAll = (): void => {
      const left = store
        .list(RESOURCE.pods)
        .items.filter(pod => (pod.spec as { nodeName?: string }).nodeName === machine.name && isEvictable(pod))
      if (left.length === 0) return end()
      if (schedule.now() - begun > durations.fixed(300_000)) {
        journal.write(machine.name, 'drain-gave-up', left.map(pod => pod.metadata.name).join(' '))
        return end()
      }
      if (api.available())
        for (const pod of left)
          if (pod.metadata.deletionTimestamp === undefined) evict(site, pod.metadata.namespace ?? '', pod.metadata.name, pod.metadata.uid)
      later(site, machine, durations.fixed(5000), evictAll)
    }
    const waitForCordon = (): void => {
      if (!nodes.of(machine)) return end()
      if (!nodes.isSchedulable(machine.name)) return evictAll()
      if (schedule.now() - begun > durations.fixed(60_000)) return end('node was not cordoned: context deadline exceeded')
      later(site, machine, durations.fixed(1000), waitForCordon)
    }
    waitForCordon()
  }
