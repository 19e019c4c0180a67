import type { Checker } from '../checker.ts'
import { GATED, controlPlanesOf } from './control-planes.ts'

/** Whatever a member said that is not as it has to be when it was asked last, nothing is done to a control plane. */
export const oddEtcdIsHeeded: Checker = {
  name: 'odd-etcd-is-heeded',
  rule: 'I2',
  post: (scene, object) =>
    scene.onAct(({ what, machine, askedAt }) => {
      // One alone agrees with itself.
      if (machine.role !== 'controlplane' || !GATED.has(what) || controlPlanesOf(scene).length < 3) return
      // To defragment is the way out of a full database, and what is taken out is not asked for its own.
      const { spec } = scene.openOn(machine)?.operation ?? {}
      const { action } = (spec?.['node'] ?? {}) as { action?: string }
      if (action === 'etcd-defrag') return
      // Of three, the two that are left may agree on a leader that is none.
      if (action === 'reset' && controlPlanesOf(scene).length === 3 && scene.stage.plan.strikes.some(s => s.what === 'sees another leader'))
        return
      // Discovery asks one alone, and decides nothing by it.
      const asked = Math.min(...controlPlanesOf(scene).map(one => askedAt('etcd', ...one.addresses)))
      for (const other of controlPlanesOf(scene)) {
        // Nor is one whose reboot may be its cure, where somebody went past that.
        if (other === machine && (action === 'reset' || (action === 'reboot' && spec?.override))) continue
        const odd = other.addresses.map(address => scene.stage.weather.etcdSays.get(address)).find(said => said !== undefined)
        if (odd?.isOdd && odd.since < asked) object(`${what} on ${machine.name} while etcd of ${other.name} said something odd`)
      }
    }),
}
