import { RESOURCE } from '../world/objects.ts'
import type { Scene } from './scene.ts'
import { LEADER_LEASE } from './story.ts'

/** Whoever does not renew its leadership for so long has lost it, or was stopped. */
const STEADY_MS = 10_000

/** Tells of each sign of life of the leader: who it is, and since when it leads without a gap. */
export const onSignOfLife = (scene: Scene, tell: (leader: string, since: number) => void): void => {
  let leads = { leader: '', since: 0, until: 0 }
  scene.world.store.watch(RESOURCE.leases, undefined, ({ object: lease }) => {
    if (lease.metadata.name !== LEADER_LEASE) return
    const now = scene.now()
    const { holderIdentity: leader = '' } = lease['spec'] as { holderIdentity?: string }
    const isSteady = leads.leader === leader && now - leads.until < STEADY_MS
    leads = { leader, since: isSteady ? leads.since : now, until: now }
    tell(leader, leads.since)
  })
}
