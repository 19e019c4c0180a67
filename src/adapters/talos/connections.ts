import { createHash } from 'node:crypto'
import type { TalosCluster } from '../../api/talos-cluster.ts'
import type { Clock } from '../../ports/clock.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { Home, Key } from '../../ports/home.ts'
import type { Talos } from '../../ports/talos.ts'
import type { CallReport } from './calls.ts'
import { type TalosConnection, talosConnection } from './connection.ts'

export type TalosConnectionsOptions = {
  readonly secret: Home['secret']
  readonly clock: Clock
  readonly onCall?: ((cluster: Key, report: CallReport) => void) | undefined
}

export type TalosConnections = {
  /** As `Connections.talos`. */
  readonly talos: (cluster: TalosCluster) => Promise<Result<Talos>>
  /** As `Connections.doubt`. */
  readonly doubt: (cluster: TalosCluster) => void
  /** As `Connections.forget`. */
  readonly forget: (cluster: Key) => void
  /** Ends all calls and closes all connections. */
  readonly close: () => void
}

type Kept = { readonly secret: string; readonly hash: string; readonly connection: TalosConnection; readUntil: number }

/** How long a Secret is believed unread; a credential that a machine refuses is read again at once. */
const believedMs = 15_000

/** Talos connections by TalosCluster: one per cluster, made anew when the content of its Secret changes. */
export function talosConnections({ secret, clock, onCall }: TalosConnectionsOptions): TalosConnections {
  const kept = new Map<string, Kept>()
  const opening = new Map<string, Promise<Result<Talos>>>()

  async function open(cluster: TalosCluster): Promise<Result<Talos>> {
    const key = keyOf(cluster)
    const id = idOf(key)
    const { name: secretName, key: dataKey } = cluster.spec.talosconfigSecretRef
    const source = `${secretName}/${dataKey}`
    const known = kept.get(id)
    if (known && known.secret === source && clock.monotonic() < known.readUntil) return usable(known, key, secretName)

    const text = await talosconfigIn(secret, key, secretName, dataKey)
    if (!text.ok) {
      const isGone = text.fault.kind !== 'unreachable' && text.fault.kind !== 'busy'
      // What worked a moment ago works while the API server is away.
      return known && known.secret === source && !isGone ? usable(known, key, secretName) : text
    }
    const hash = createHash('sha256').update(text.value).digest('hex')
    if (known && known.secret === source && known.hash === hash) {
      known.readUntil = clock.monotonic() + believedMs
      return usable(known, key, secretName)
    }

    const opened = talosConnection({
      talosconfig: text.value,
      clock,
      onCall: onCall && (report => onCall(key, report)),
      onFault: ({ kind }) => {
        if (kind !== 'unauthenticated' && kind !== 'wrongPeer') return
        const current = kept.get(id)
        if (current?.hash === hash) current.readUntil = -Infinity
      },
    })
    if (!opened.ok) return failed(opened.fault.kind, `${secretNamed(key, secretName)}, key ${dataKey}: ${opened.fault.message}`)
    known?.connection.close()
    const entry = { secret: source, hash, connection: opened.value, readUntil: clock.monotonic() + believedMs }
    kept.set(id, entry)
    return usable(entry, key, secretName)
  }

  /** A kept credential may have run out meanwhile. */
  function usable({ connection }: Kept, key: Key, secretName: string): Result<Talos> {
    if (connection.credentialExpires <= clock.now()) {
      const when = new Date(connection.credentialExpires).toISOString().replace('.000Z', 'Z')
      return failed('unauthenticated', `${secretNamed(key, secretName)}: the client certificate of its talosconfig expired on ${when}`)
    }
    if (!connection.roles.includes('os:admin')) {
      return failed(
        'forbidden',
        `${secretNamed(key, secretName)}: the client certificate of its talosconfig has ${rolesOf(connection)}; it needs os:admin (\`talosctl config new --roles os:admin\`)`,
      )
    }
    return ok(connection)
  }

  return {
    talos: async cluster => {
      const id = idOf(keyOf(cluster))
      const running = opening.get(id)
      if (running) return running
      const started = open(cluster).finally(() => opening.delete(id))
      opening.set(id, started)
      return started
    },
    doubt: cluster => {
      const known = kept.get(idOf(keyOf(cluster)))
      if (known) known.readUntil = -Infinity
    },
    forget: key => {
      kept.get(idOf(key))?.connection.close()
      kept.delete(idOf(key))
    },
    close: () => {
      for (const { connection } of kept.values()) connection.destroy()
      kept.clear()
    },
  }
}

async function talosconfigIn(secret: Home['secret'], cluster: Key, name: string, dataKey: string): Promise<Result<string>> {
  const where = secretNamed(cluster, name)
  const found = await secret({ namespace: cluster.namespace, name })
  if (!found.ok) {
    return found.fault.kind === 'notFound'
      ? failed('notFound', `${where} does not exist; TalosCluster ${cluster.name} takes its talosconfig from there`)
      : failed(
          found.fault.kind,
          `${where} cannot be read: ${found.fault.message}${found.fault.kind === 'forbidden' ? `; TalosCluster ${cluster.name} takes its talosconfig from there` : ''}`,
          found.fault.retryAfterMs,
        )
  }
  const bytes = Object.hasOwn(found.value, dataKey) ? found.value[dataKey] : undefined
  if (bytes === undefined) {
    const keys = Object.keys(found.value).toSorted()
    return failed('invalid', `${where} has no key ${dataKey}; it has ${keys.length > 0 ? keys.join(', ') : 'no keys at all'}`)
  }
  return ok(new TextDecoder().decode(bytes))
}

function rolesOf({ roles }: TalosConnection): string {
  return roles.length === 0 ? 'no role' : `only the ${roles.length === 1 ? 'role' : 'roles'} ${roles.join(', ')}`
}

function keyOf(cluster: TalosCluster): Key {
  return { namespace: cluster.metadata.namespace, name: cluster.metadata.name }
}

function idOf({ namespace, name }: Key): string {
  return `${namespace}/${name}`
}

function secretNamed(cluster: Key, name: string): string {
  return `Secret ${cluster.namespace}/${name}`
}
