import type { HealthGate } from '../../api/talos-cluster.ts'
import { RESOURCE } from '../../world/objects.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { Checker } from '../checker.ts'
import { STORAGE_SHELF, holdsNow } from '../gates.ts'

/** A TalosCluster out of a list may be as old as a watch that brings nothing. */
const STALE_MS = 190_000
/** In which an answer that was asked for is given. */
const ANSWER_MS = 10_000

/** Nobody begins a machine who has not just seen every health gate hold. */
export const gatesHold: Checker = {
  name: 'gates-hold-before-a-machine',
  rule: 'spec 5',
  post: (scene, object) => {
    const { world } = scene
    type Standing = {
      readonly gate: HealthGate
      readonly since: number
      readonly turns: { readonly at: number; readonly holds: boolean }[]
    }
    let standing: readonly Standing[] = []
    const look = (): void => {
      for (const { gate, turns } of standing) {
        const holds = holdsNow(world, gate)
        if (turns.at(-1)?.holds !== holds) turns.push({ at: scene.now(), holds })
      }
    }
    const read = (): void => {
      const [cluster] = world.store.list(ICHOR.clusters).items
      const gates = ((cluster?.['spec'] ?? {}) as { healthGates?: readonly HealthGate[] }).healthGates ?? []
      standing = gates.map(
        gate => standing.find(s => JSON.stringify(s.gate) === JSON.stringify(gate)) ?? { gate, since: scene.now(), turns: [] },
      )
      look()
    }
    for (const resource of [STORAGE_SHELF, RESOURCE.nodes]) world.store.watch(resource, undefined, look)
    world.store.watch(ICHOR.clusters, undefined, read)
    read()
    const begin = scene.now()

    /** By client and object. */
    const askedAt = new Map<string, number>()
    let writer = ''
    scene.onCall(({ port, name, client, target }) => {
      if (port === 'kube' && name === 'object') askedAt.set(`${client} ${target}`, scene.now())
      if (name === 'writeOperationStatus') writer = client
    })
    const heldAround = (turns: Standing['turns'], from: number): boolean =>
      turns.some(({ at, holds }, i) => holds && at <= from + ANSWER_MS && (turns[i + 1]?.at ?? Infinity) >= from)
    scene.onOperation(({ before, after, isByHand }) => {
      const opened = after?.status.machines?.find(
        t => t.phase === 'Running' && before?.status.machines?.find(o => o.name === t.name)?.phase === 'Pending',
      )
      if (!opened || isByHand) return
      for (const { gate, since, turns } of standing) {
        if (since > begin && scene.now() - since < STALE_MS) continue
        const asked = askedAt.get(`${writer} ${gate.objectRef.kind} ${gate.objectRef.name}`)
        if (asked === undefined) object(`${opened.hostname} is begun, and nobody asked gate ${gate.name}`)
        else if (!heldAround(turns, asked)) object(`${opened.hostname} is begun, and gate ${gate.name} does not hold`)
      }
    })
  },
}
