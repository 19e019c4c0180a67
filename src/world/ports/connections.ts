import { API_VERSION } from '../../api/names.ts'
import type { TalosCluster, TalosClusterSpec } from '../../api/talos-cluster.ts'
import type { Connections } from '../../ports/connections.ts'
import type { Result } from '../../ports/fault.ts'
import { failed, ok } from '../../ports/fault.ts'
import type { Talos } from '../../ports/talos.ts'
import type { World } from '../cluster.ts'
import { RESOURCE, ensure } from '../objects.ts'
import { asciiBytes, asciiText, decodeBase64, encodeBase64 } from './base64.ts'
import type { Client } from './client.ts'
import { apiObjection } from './client.ts'
import { ICHOR } from './home.ts'
import { createKube } from './kube.ts'
import type { Credential } from './talos.ts'
import { createTalos } from './talos.ts'

const SECRET = 'talosconfig'
const YEAR_MS = 365 * 86_400_000

/**
 * The world's talosconfig: not the real file, but five facts that the real one carries, one a line. That the real file is read rightly is proved
 * where the real client is.
 */
export const worldTalosconfig = (facts: {
  readonly clusterID: string
  readonly role: Credential['role']
  readonly begins: number
  readonly expires: number
  readonly authorityExpires: number
}): string =>
  `cluster: ${facts.clusterID}\nrole: ${facts.role}\nbegins: ${facts.begins}\nexpires: ${facts.expires}\nauthority: ${facts.authorityExpires}\n`

const parse = (text: string): { readonly clusterID: string; readonly credential: Credential } | undefined => {
  const fields = Object.fromEntries(text.split('\n').map(line => line.split(': ') as [string, string]))
  const { cluster, role, begins, expires, authority } = fields
  if (!cluster || !begins || !expires || !authority || (role !== 'os:admin' && role !== 'os:operator' && role !== 'os:reader'))
    return undefined
  return { clusterID: cluster, credential: { role, begins: Number(begins), expires: Number(expires), authorityExpires: Number(authority) } }
}

/** Writes the Secret that a TalosCluster refers to. */
export const writeTalosconfig = (
  world: World,
  key: { readonly namespace: string; readonly name?: string },
  facts: Partial<Credential> & { readonly clusterID?: string } = {},
): void => {
  const expires = facts.expires ?? world.schedule.now() + YEAR_MS
  const text = worldTalosconfig({
    clusterID: facts.clusterID ?? world.site.clusterID,
    role: facts.role ?? 'os:admin',
    begins: facts.begins ?? expires - YEAR_MS,
    expires,
    authorityExpires: facts.authorityExpires ?? world.schedule.now() + 10 * YEAR_MS,
  })
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: key.name ?? SECRET, namespace: key.namespace },
    type: 'Opaque',
    data: { [SECRET]: encodeBase64(asciiBytes(text)) },
  }
  ensure(world.store, RESOURCE.secrets, secret)
  world.store.update(RESOURCE.secrets, secret)
}

/** Makes the world's cluster known to Ichor: a TalosCluster and its Secret, as a person would write them. */
export const registerCluster = (
  world: World,
  key: { readonly namespace: string; readonly name: string },
  spec: Partial<TalosClusterSpec> = {},
): void => {
  writeTalosconfig(world, { namespace: key.namespace })
  ensure(world.store, ICHOR.clusters, {
    apiVersion: API_VERSION,
    kind: 'TalosCluster',
    metadata: { ...key },
    spec: { talosconfigSecretRef: { name: SECRET, key: SECRET }, ...spec },
  })
}

/** Opens the ports that a TalosCluster refers to. Its kubeconfig is not looked at: there is one cluster in the world. */
export const createConnections = (world: World, client: Client): Connections => {
  /** What a talosconfig says, and the port that it opens: as long as its Secret has the same bytes. */
  let read: { readonly data: string; readonly parsed: ReturnType<typeof parse>; talos?: Talos } | undefined
  const kube = createKube(world, client)
  const credentialOf = (cluster: TalosCluster): Result<Credential> => {
    const { name, key } = cluster.spec.talosconfigSecretRef
    const { namespace } = cluster.metadata
    const secret = world.store.get(RESOURCE.secrets, namespace, name)
    if (!secret) return failed('notFound', `Secret ${namespace}/${name} not found; create it with the talosconfig under the key ${key}`)
    const data = (secret.data as Record<string, string> | undefined)?.[key]
    if (data === undefined) return failed('invalid', `Secret ${namespace}/${name} has no key ${key}`)
    if (read?.data !== data) read = { data, parsed: parse(asciiText(decodeBase64(data))) }
    const { parsed } = read
    if (!parsed) return failed('invalid', `Secret ${namespace}/${name}: ${key} is not a talosconfig`)
    if (parsed.clusterID !== world.site.clusterID)
      return failed('wrongPeer', `Secret ${namespace}/${name}: the CA of ${key} is not the one of the machines`)
    if (parsed.credential.expires <= world.schedule.now())
      return failed('unauthenticated', `Secret ${namespace}/${name}: the client certificate of ${key} has expired`)
    return ok(parsed.credential)
  }
  const away = () => (world.homeOutside ? undefined : apiObjection(world))
  return {
    talos: cluster =>
      client.call({ port: 'connections', name: 'talos', target: cluster.metadata.name }, () => {
        const credential = away() ?? credentialOf(cluster)
        if (!credential.ok) return credential
        const talos = read?.talos ?? createTalos(world, client, credential.value)
        if (read) read.talos = talos
        return ok(talos)
      }),
    kube: cluster => client.call({ port: 'connections', name: 'kube', target: cluster.metadata.name }, () => ok(kube)),
    // Nothing is believed here: Secrets are looked at in every call.
    doubt: () => {},
    forget: () => {},
  }
}
