import type { FaultKind } from '../../ports/fault.ts'
import { RESOURCE } from '../../world/objects.ts'
import { registerCluster, writeTalosconfig } from '../../world/ports/connections.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { Trouble } from '../plan.ts'
import { worldOf } from '../setting.ts'
import type { Stage } from '../stage.ts'
import { CLUSTER, NAMESPACE } from '../story.ts'
import { isRegisteredTwice } from './objects.ts'

/** What becomes of the keys that Ichor was given, and of the object that says where they lie. */

const WHATS = [
  ...['has expired', 'expires soon', 'is of a reader', 'is of an operator', 'is of another cluster', 'is gone', 'is none'],
  ...['Kubernetes forbids to write', 'Kubernetes forbids to read', 'Kubernetes does not know us', 'Talos does not know us'],
  ...['the cluster is deleted', 'the cluster is deleted', 'the cluster is registered twice'],
] as const

const KEY = { namespace: NAMESPACE }
const DAY = 86_400_000

export const access: Trouble<Stage> = {
  family: 'access',
  harmless: false,
  draw: ({ random, horizonMs }) => ({
    family: 'access',
    what: random.pick(WHATS),
    // Often from the begin, so that it is the checks that meet it.
    when: { at: random.chance(0.4) ? 0 : random.between(0, horizonMs) },
    forMs: random.between(5000, 240_000),
  }),
  strike: (stage, { what }) => {
    const { world } = stage.story
    const now = world.schedule.now()
    stage.note(/^(Kubernetes|Talos|the)/.test(what) ? what : `the talosconfig ${what}`)
    const mended = (): void => writeTalosconfig(world, KEY)
    const deny = (port: 'kube' | 'talos', kind: FaultKind, changes?: boolean) =>
      stage.disturb(call =>
        call.port === port && (changes === undefined || call.changes === changes)
          ? { do: 'fail', when: 'before', fault: { kind, message: `${call.target}: ${call.name}: ${kind}` } }
          : undefined,
      )
    switch (what) {
      case 'has expired':
        writeTalosconfig(world, KEY, { expires: now - 1 })
        return mended
      case 'expires soon':
        writeTalosconfig(world, KEY, { begins: now - 355 * DAY, expires: now + 10 * DAY })
        return mended
      case 'is of a reader':
        writeTalosconfig(world, KEY, { role: 'os:reader' })
        return mended
      case 'is of an operator':
        writeTalosconfig(world, KEY, { role: 'os:operator' })
        return mended
      case 'is of another cluster':
        writeTalosconfig(world, KEY, { clusterID: 'another' })
        return mended
      case 'is gone':
        world.store.remove(RESOURCE.secrets, NAMESPACE, 'talosconfig')
        return mended
      case 'is none': {
        const secret = world.store.get(RESOURCE.secrets, NAMESPACE, 'talosconfig')
        if (secret) world.store.update(RESOURCE.secrets, { ...secret, data: { talosconfig: 'bm8=' } })
        return mended
      }
      case 'Kubernetes forbids to write':
        return deny('kube', 'forbidden', true)
      case 'Kubernetes forbids to read':
        return deny('kube', 'forbidden', false)
      case 'Kubernetes does not know us':
        return deny('kube', 'unauthenticated')
      case 'Talos does not know us':
        return deny('talos', 'unauthenticated')
      case 'the cluster is deleted':
        if (isRegisteredTwice(stage.plan)) return undefined
        world.store.remove(ICHOR.clusters, NAMESPACE, CLUSTER)
        return () => registerCluster(world, { ...KEY, name: CLUSTER }, worldOf(stage.plan.shape.setting ?? {}, stage.plan.shape).cluster)
      default:
        registerCluster(world, { ...KEY, name: 'twin' })
        return () => void world.store.remove(ICHOR.clusters, NAMESPACE, 'twin')
    }
  },
}
