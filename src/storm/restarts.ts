import { RESOURCE } from '../world/objects.ts'
import type { World } from '../world/cluster.ts'

/** One program of Kubernetes that came to another image: how long it took from the configuration to the moment when it worked. */
export type Restart = { readonly machine: string; readonly component: string; readonly ms: number }

/** Looks on while programs come to a version. kube-proxy is not among them: its pods follow one after the other by themselves. */
export const restarts = (world: World, version: string): { readonly restarts: () => readonly Restart[]; readonly spanMs: () => number } => {
  const toldAt = new Map<string, number>()
  world.store.watch(RESOURCE.nodes, undefined, ({ object }) => {
    const { kubeletVersion } = (object.status as { nodeInfo: { kubeletVersion: string } }).nodeInfo
    if (kubeletVersion === version && !toldAt.has(object.metadata.name)) toldAt.set(object.metadata.name, world.schedule.now())
  })
  const { journal } = world
  const begun = () => journal.of('component-image').filter(e => !e.detail.startsWith('kube-proxy'))
  const serves = (machine: string, after: number): number | undefined => journal.of('api-server', machine).find(e => e.at > after)?.at
  const worksAt = (machine: string, component: string, after: number): number | undefined => {
    if (component === 'kubelet') {
      // Of another minor, on a control plane: it begins the static pods anew.
      const anew = journal.of('static-pods-anew', machine).find(e => e.at > after)
      return anew === undefined ? toldAt.get(machine) : Math.max(toldAt.get(machine) ?? Infinity, serves(machine, anew.at) ?? Infinity)
    }
    // With the scheduler the API server of the machine begins anew.
    if (component !== 'kube-controller-manager') return serves(machine, after)
    return journal.of('static-pod', machine).find(e => e.at > after && e.detail.startsWith(component))?.at
  }
  return {
    restarts: () =>
      begun().map(({ at, machine, detail }) => {
        const component = detail.split(' ')[0] ?? ''
        return { machine, component, ms: (worksAt(machine, component, at) ?? Infinity) - at }
      }),
    spanMs: () => (journal.of('manifest').at(-1)?.at ?? Infinity) - (begun()[0]?.at ?? 0),
  }
}
