import { readFile } from 'node:fs/promises'
import type { Clock } from '../../ports/clock.ts'
import { ownError } from './classify.ts'
import type { Json } from './json.ts'
import { list, record, text } from './json.ts'
import type { KubeConfig } from './kubeconfig.ts'

/** What goes into a TLS handshake. The object stays the same one as long as its content does: connections are kept by it. */
export type TlsMaterial = {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
  readonly rejectUnauthorized?: false
}

export type Credentials = {
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly tls: TlsMaterial
  /** What must never be read in a message. */
  readonly secrets: readonly string[]
}

export type CredentialSource = {
  /** What to send now. Throws an error of code ICHOR_CREDENTIALS with one sentence. */
  readonly current: () => Promise<Credentials>
  /** The server did not accept them: read everything anew the next time. */
  readonly refused: () => void
}

/** Files are read again after this time: a ServiceAccount token turns over within the hour, a CA when it is rotated. */
const REREAD_MS = 10_000

/**
 * The credentials of a kubeconfig: tokens, certificates and passwords are applied here, with their files read again as they change. Commands
 * (exec) and OIDC are client-node's, imported only then, because its import costs more than everything else that the CLI does.
 */
export const credentialSource = (config: KubeConfig, clock: Clock): CredentialSource => {
  const usesPlugin = isSet(config.user['exec']) || isSet(config.user['auth-provider'])
  const plugin = usesPlugin ? pluginSource(config) : undefined
  let files: { readonly readAt: number; readonly credentials: Credentials } | undefined
  let last: Credentials | undefined
  const readsFiles =
    ['client-certificate', 'client-key', 'tokenFile'].some(name => isSet(config.user[name])) ||
    isSet(config.cluster['certificate-authority'])

  const own = async (): Promise<Credentials> => {
    const now = clock.monotonic()
    if (files && (!readsFiles || now - files.readAt < REREAD_MS)) return files.credentials
    const credentials = await readOwn(config)
    files = { readAt: now, credentials }
    return credentials
  }

  return {
    current: async () => {
      const base = await own()
      const added = await plugin?.current()
      const next: Credentials = added
        ? {
            headers: { ...base.headers, ...added.headers },
            tls: { ...base.tls, ...added.tls },
            secrets: [...base.secrets, ...added.secrets],
          }
        : base
      last = last && sameTls(last.tls, next.tls) ? { ...next, tls: last.tls } : next
      return last
    },
    refused: () => {
      files = undefined
      plugin?.forget()
    },
  }
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== ''

const sameTls = (a: TlsMaterial, b: TlsMaterial): boolean =>
  a.ca === b.ca && a.cert === b.cert && a.key === b.key && a.servername === b.servername && a.rejectUnauthorized === b.rejectUnauthorized

const readOwn = async ({ cluster, user, origin }: KubeConfig): Promise<Credentials> => {
  const file = async (path: string, what: string): Promise<string> => {
    try {
      return await readFile(path, 'utf8')
    } catch (error) {
      throw ownError(
        'ICHOR_CREDENTIALS',
        `the ${what} that ${origin} names cannot be read: ${path} (${text(record(error as object)['code']) || 'unknown error'})`,
      )
    }
  }
  // The inline form wins over the file, as with kubectl.
  const pem = async (from: Json, name: string): Promise<string | undefined> => {
    const data = text(from[`${name}-data`])
    if (data !== '') return Buffer.from(data, 'base64').toString('utf8')
    const path = text(from[name])
    return path === '' ? undefined : file(path, name)
  }
  const [ca, cert, key] = await Promise.all([
    pem(cluster, 'certificate-authority'),
    pem(user, 'client-certificate'),
    pem(user, 'client-key'),
  ])
  // The file wins over the inline token, as with kubectl.
  const token = isSet(user['tokenFile']) ? (await file(text(user['tokenFile']), 'tokenFile')).trim() : text(user['token']).trim()
  const password = text(user['password'])
  const servername = text(cluster['tls-server-name'])
  const groups = list(user['as-groups']).map(text)

  const headers: Record<string, string | string[]> = {}
  if (token !== '') headers['authorization'] = `Bearer ${token}`
  else if (isSet(user['username']))
    headers['authorization'] = `Basic ${Buffer.from(`${text(user['username'])}:${password}`).toString('base64')}`
  if (isSet(user['as'])) headers['impersonate-user'] = text(user['as'])
  if (isSet(user['as-uid'])) headers['impersonate-uid'] = text(user['as-uid'])
  if (groups.length > 0) headers['impersonate-group'] = groups

  return {
    headers,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(servername === '' ? {} : { servername }),
      ...(cluster['insecure-skip-tls-verify'] === true ? { rejectUnauthorized: false as const } : {}),
    },
    secrets: [token, password].filter(secret => secret !== ''),
  }
}

type PluginOptions = { headers?: Record<string, string>; cert?: string | Buffer; key?: string | Buffer }

/** Plugins that are written with client-go insist on this variable, which client-node does not set. */
const withExecInfo = (exec: Json, { cluster, server }: KubeConfig): Json => {
  const told = Object.fromEntries(
    ['tls-server-name', 'insecure-skip-tls-verify', 'certificate-authority-data', 'proxy-url']
      .filter(name => isSet(cluster[name]))
      .map(name => [name, cluster[name]]),
  )
  const spec = { interactive: false, ...(exec['provideClusterInfo'] === true ? { cluster: { server, ...told } } : {}) }
  const info = { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify({ apiVersion: exec['apiVersion'], kind: 'ExecCredential', spec }) }
  return { ...exec, env: [...list(exec['env']), info] }
}

const pluginSource = (config: KubeConfig) => {
  const { user, userName, origin } = config
  const load = async () => {
    // The submodule alone: the package's main file brings every typed API along.
    const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js')
    const loaded = new KubeConfig()
    const { exec, 'auth-provider': provider } = user
    // JSON is YAML. The server is not called by client-node, so its address does not matter; without a proxy no agent of its own is kept.
    loaded.loadFromString(
      JSON.stringify({
        clusters: [{ name: 'cluster', cluster: { server: 'https://server.invalid' } }],
        users: [{ name: userName, user: { exec: exec ? withExecInfo(record(exec), config) : undefined, 'auth-provider': provider } }],
        contexts: [{ name: 'context', context: { cluster: 'cluster', user: userName } }],
        'current-context': 'context',
      }),
    )
    return loaded
  }
  let loading: ReturnType<typeof load> | undefined
  const what = isSet(user['exec'])
    ? `the command ${text(record(user['exec'])['command'])} that ${origin} names`
    : `the auth-provider ${text(record(user['auth-provider'])['name'])} that ${origin} names`

  return {
    current: async (): Promise<Credentials> => {
      const options: PluginOptions = { headers: {} }
      try {
        loading ??= load()
        await (await loading).applyToHTTPSOptions(options)
      } catch (error) {
        loading = undefined
        const message = error instanceof Error ? error.message : String(error)
        throw ownError(
          'ICHOR_CREDENTIALS',
          `${what} gave no credential: ${message.trim().split('\n').slice(-3).join(' ') || 'it failed without a word'}`,
        )
      }
      const authorization = options.headers?.['Authorization']
      if (authorization === undefined && options.cert === undefined) {
        throw ownError(
          'ICHOR_CREDENTIALS',
          `${what} gave no credential: neither a token nor a certificate; logging in again may be necessary`,
        )
      }
      return {
        headers: authorization === undefined ? {} : { authorization },
        tls: {
          ...(options.cert === undefined ? {} : { cert: options.cert.toString() }),
          ...(options.key === undefined ? {} : { key: options.key.toString() }),
        },
        secrets: authorization === undefined ? [] : [authorization.replace(/^\S+\s+/, '')],
      }
    },
    /** A new KubeConfig has nothing remembered: the command runs again. */
    forget: (): void => {
      loading = undefined
    },
  }
}
