import { versionOrder } from '../../core/versions.ts'
import type { Machine } from '../../world/machine.ts'
import type { Checker } from '../checker.ts'

/** The programs of Kubernetes: which may be newer than which, how many may be away, and what done means. */

/** The version in its tag, without what a vendor or a variant puts behind it. Not as Ichor reads it. */
const taggedAs = (image: string): string => /:(v?\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?)[^:/]*(?:@|$)/.exec(image)?.[1] ?? ''
const versionOf = (machine: Machine): string => taggedAs(machine.pods.get('kube-apiserver')?.image ?? '')

export const nothingIsNewer: Checker = {
  name: 'nothing-is-newer-than-an-api-server',
  rule: 'I9',
  kinds: ['kubernetes'],
  post: (scene, object) =>
    scene.onEntry(({ what, machine, detail }, isByHand) => {
      const [component = '', image = ''] = detail.split(' ')
      if (what !== 'component-image' || isByHand || component === 'kube-apiserver') return
      const older = scene.world.machines.filter(
        m => m.role === 'controlplane' && m.pods.size > 0 && (versionOrder(versionOf(m), taggedAs(image)) ?? 0) < 0,
      )
      if (older.length > 0) object(`${component} of ${machine} becomes newer than kube-apiserver of ${older.map(m => m.name).join(', ')}`)
    }),
}

/** Also that of a machine that went down meanwhile is no longer waited for by its old name. */
export const oneComponentAway: Checker = {
  name: 'one-static-pod-at-a-time',
  rule: 'I1',
  kinds: ['kubernetes'],
  post: (scene, object) => {
    const away = new Map<string, { readonly machine: string; readonly component: string }>()
    scene.onEntry(({ what, machine, detail }, isByHand) => {
      const [component = ''] = detail.split(' ')
      // Those that stopped all at once start all at once, and are not named.
      if (what === 'down' || what === 'static-pods') for (const [key, one] of away) if (one.machine === machine) away.delete(key)
      if (what === 'static-pod' && component !== 'kube-apiserver') away.delete(`${machine} ${component}`)
      // Its process runs before it answers.
      if (what === 'api-server') away.delete(`${machine} kube-apiserver`)
      const replaced = (one: string): void => {
        const others = [...away.values()].filter(other => other.component === one && other.machine !== machine)
        if (others.length > 0)
          object(`${one} of ${machine} is replaced, and that of ${others.map(other => other.machine).join(', ')} is not there yet`)
        away.set(`${machine} ${one}`, { machine, component: one })
      }
      // A kubelet of another minor does that.
      if (what === 'static-pods-anew') for (const one of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']) replaced(one)
      if (what !== 'component-image' || isByHand || component === 'kubelet' || component === 'kube-proxy') return
      // The API server of a machine begins anew with its scheduler.
      const begin = component === 'kube-scheduler' ? [component, 'kube-apiserver'] : [component]
      for (const one of begin) replaced(one)
    })
  },
}

/** What somebody did to a machine in the last minutes is not to be laid at its door. */
const LATELY_MS = 600_000

export const allHaveTheVersion: Checker = {
  name: 'all-have-the-version',
  rule: 'I6',
  kinds: ['kubernetes'],
  post: (scene, object) =>
    scene.onOperation(({ before, after, isByHand }) => {
      if (isByHand || after?.spec.kind !== 'kubernetes' || after.status.phase !== 'Completed' || before?.status.phase === 'Completed')
        return
      const { version } = after.spec['kubernetes'] as { version: string }
      for (const machine of scene.world.machines) {
        if (machine.config === '' || scene.stage.touchedAt(machine) > scene.now() - LATELY_MS) continue
        for (const [component, { image }] of machine.pods)
          if (taggedAs(image) !== version) object(`completed, and ${component} of ${machine.name} is ${image}`)
      }
    }),
}
