import type { TalosCluster } from '../api/talos-cluster.ts'
import type { TalosOperation } from '../api/talos-operation.ts'
import { openTargets } from '../core/ledger.ts'
import type { World } from '../core/world.ts'
import type { Connections } from '../ports/connections.ts'
import type { Key } from '../ports/home.ts'

type Options = {
  readonly connections: Connections
  /** A machine that this operation is at may have changed. */
  readonly changed: (operation: Key, cluster: Key) => void
}

/**
 * Watches the machines that operations are at, so that a change is looked at before the next poll. It is only a hint: facts are read as ever, and without
 * any watch everything is found out all the same, later.
 */
export type MachineWatches = {
  /** Watches the open machines of this operation from now on, and for it no others. */
  readonly follow: (operation: TalosOperation, world: World) => void
  /** The operation is gone, or nothing can be done for it. */
  readonly forget: (operation: Key) => void
  readonly stop: () => void
}

export const createMachineWatches = ({ connections, changed }: Options): MachineWatches => {
  /** What ends each watch, by address, of each operation. */
  const followed = new Map<string, Map<string, () => void>>()

  const open = (operation: Key, cluster: TalosCluster, address: string, drop: () => void): (() => void) => {
    let isOver = false
    let end = (): void => {}
    const begin = async (): Promise<void> => {
      const talos = await connections.talos(cluster)
      if (isOver) return
      // The next pass tries again.
      if (!talos.ok) return drop()
      end = talos.value.watch(address, what => {
        if (isOver) return
        if (what === 'ended') drop()
        changed(operation, cluster.metadata)
      })
    }
    void begin()
    return () => {
      isOver = true
      end()
    }
  }

  const follow = (operation: TalosOperation, { cluster, machines }: World): void => {
    const { namespace, name } = operation.metadata
    const id = idOf(operation.metadata)
    const isRunning = operation.status.phase === 'Running' && operation.metadata.deletionTimestamp === undefined
    const names = new Set(isRunning ? openTargets(operation.status).map(target => target.name) : [])
    const wanted = new Set(machines.filter(m => names.has(m.metadata.name)).map(m => m.spec.address))
    const own = followed.get(id) ?? new Map<string, () => void>()
    for (const [address, stop] of own) {
      if (wanted.has(address)) continue
      own.delete(address)
      stop()
    }
    for (const address of wanted) {
      if (own.has(address)) continue
      const stop = open({ namespace, name }, cluster, address, () => {
        if (own.get(address) === stop) own.delete(address)
      })
      own.set(address, stop)
    }
    if (own.size > 0) followed.set(id, own)
    else followed.delete(id)
  }

  const forget = (operation: Key): void => {
    for (const stop of followed.get(idOf(operation))?.values() ?? []) stop()
    followed.delete(idOf(operation))
  }

  return {
    follow,
    forget,
    stop: () => {
      for (const own of followed.values()) for (const stop of own.values()) stop()
      followed.clear()
    },
  }
}

const idOf = ({ namespace, name }: Key): string => `${namespace}/${name}`
