import type { KubeObject as RawObject } from '../../adapters/kube/client.ts'
import { kubeClient } from '../../adapters/kube/client.ts'
import { loadKubeConfig } from '../../adapters/kube/kubeconfig.ts'
import { startReflector } from '../../adapters/kube/reflector.ts'
import { openTransport } from '../../adapters/kube/transport.ts'
import type { ApiResult } from '../../adapters/kube/classify.ts'
import type { Clock } from '../../ports/clock.ts'
import { type Api, type Connection, FIELD_MANAGER, type KubeObject } from './api.ts'
import type { ConnectionChoice } from './session.ts'
import { Stop } from './stop.ts'

const clock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

/** An API server that is just starting says so for some seconds (503 with Retry-After), and again while its CRDs load. */
const PATIENCE_MS = 30_000

/** The API server of a kubeconfig. Throws Stop with what is wrong with the kubeconfig. */
export const connect = async (choice: ConnectionChoice, userAgent: string): Promise<Connection & { readonly close: () => void }> => {
  const config = await loadKubeConfig({
    ...(choice.kubeconfig === undefined ? {} : { kubeconfigPath: choice.kubeconfig }),
    ...(choice.context === undefined ? {} : { context: choice.context }),
  })
  if (!config.ok) throw new Stop('error', config.fault.message)
  const { server, namespace, userName } = config.value
  const transport = openTransport({ config: config.value, clock, userAgent, env: process.env, patienceMs: PATIENCE_MS })
  const client = kubeClient(transport, { fieldManager: FIELD_MANAGER })

  const api: Api = {
    get: async (type, namespace, name) => read(await client.get(type, { namespace, name })),
    list: async (type, namespace) => {
      const listed = await client.list(type, { namespace })
      return listed.ok ? { ok: true, value: listed.value.items.map(objectOf) } : listed
    },
    table: async (type, namespace, name) => {
      const table = await client.table(type, { namespace, name })
      if (!table.ok) return table
      return {
        ok: true,
        value: {
          columnDefinitions: table.value.columns,
          rows: table.value.rows.map(row => ({ cells: row.cells, object: objectOf(row.object) })),
        },
      }
    },
    create: async (type, namespace, object) => read(await client.create(type, { namespace }, object as RawObject)),
    patch: async (type, namespace, name, change, options) =>
      read(await client.patch(type, { namespace, name, ...options }, change as RawObject)),
    apply: async (type, namespace, name, object, options) =>
      read(await client.patch(type, { namespace, name }, object as RawObject, { ...options, type: 'apply', force: true })),
    replace: async (type, namespace, name, object, options) =>
      read(await client.replace(type, { namespace, name }, object as RawObject, options)),
    delete: async (type, namespace, name, { uid } = {}) => {
      const result = await client.delete(type, { namespace, name }, uid === undefined ? {} : { preconditions: { uid } })
      return result.ok ? { ok: true, value: undefined } : result
    },
    watch: (type, namespace, name, notify) => {
      const fieldSelector = `metadata.name=${name}`
      const key = namespace === undefined ? name : `${namespace}/${name}`
      let isLost = false
      const look = () => {
        isLost = false
        const object = reflector.get(key)
        notify(object ? { is: 'there', object } : { is: 'gone' })
      }
      const reflector = startReflector<KubeObject>({
        source: {
          list: signal => client.list(type, { namespace, fieldSelector, signal }),
          watch: (options, on) =>
            client.watch(
              type,
              { namespace, fieldSelector, ...options },
              {
                event: on.event,
                opened: () => {
                  on.opened()
                  // A watch that goes on where it broke brings no event by itself.
                  if (isLost) look()
                },
              },
            ),
        },
        parse: objectOf,
        clock,
        random: Math.random,
        listed: look,
        changed: change => notify(change.type === 'deleted' ? { is: 'gone' } : { is: 'there', object: change.object }),
        problem: ({ message }) => {
          isLost = true
          notify({ is: 'unseen', why: message })
        },
      })
      return reflector.stop
    },
    serverVersion: () => client.version(),
    clockAhead: () => client.clockAhead(),
    storageHash: async ({ group, version, kind }) => {
      const served = await client.typeOf(group, version, kind)
      return served.ok ? { ok: true, value: served.value?.storageHash } : served
    },
  }
  return { api, server, user: userName, namespace: namespace === 'default' ? undefined : namespace, close: transport.close }
}

const read = (result: ApiResult<RawObject>): ApiResult<KubeObject> => (result.ok ? { ok: true, value: objectOf(result.value) } : result)

// The server's word is taken for the outer shape only; what is inside is read with care where it is used.
const objectOf = (raw: RawObject): KubeObject => {
  const metadata = (raw['metadata'] ?? {}) as KubeObject['metadata']
  return { ...raw, metadata: { ...metadata, name: typeof metadata.name === 'string' ? metadata.name : '' } }
}
