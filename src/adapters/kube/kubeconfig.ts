import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import type { Result } from '../../ports/fault.ts'
import { failed, ok } from '../../ports/fault.ts'
import { redact } from './classify.ts'
import type { Json } from './json.ts'
import { isRecord, list, record, text } from './json.ts'
import { readPlainYaml } from './plain-yaml.ts'

/** One cluster and one user of a kubeconfig, chosen and complete: who to talk to, and as whom. */
export type KubeConfig = {
  /** `https://10.0.0.1:6443`, without a slash at the end. */
  readonly server: string
  /** Of the context; `default` where it names none. */
  readonly namespace: string
  readonly context: string
  readonly clusterName: string
  readonly userName: string
  /** As the kubeconfig has it, with absolute paths. */
  readonly cluster: Json
  /** As the kubeconfig has it, with absolute paths; empty where the context names no user. */
  readonly user: Json
  /** Where it came from, for messages. */
  readonly origin: string
}

export type KubeConfigOptions = {
  /** A file, as of `--kubeconfig`. */
  readonly kubeconfigPath?: string
  /** The content of a kubeconfig, for example out of a Secret. Files and commands in it are refused: it may be somebody else's words. */
  readonly text?: string
  /** What to call `text` in messages. */
  readonly origin?: string
  /** A context of the file instead of its current one. */
  readonly context?: string
  /** The ServiceAccount of the pod that we run in, and nothing else. */
  readonly inCluster?: boolean
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Where a pod finds its ServiceAccount. */
  readonly serviceAccountFolder?: string
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * Finds out which API server to talk to and as whom: `text`, else `kubeconfigPath`, else `$KUBECONFIG` (its files merged, the first wins), else
 * `~/.kube/config`, else the pod's ServiceAccount. `invalid` or `notFound` with one sentence of what is missing and what would be right.
 */
export const loadKubeConfig = async (options: KubeConfigOptions = {}): Promise<Result<KubeConfig>> => {
  try {
    return ok(await load(options))
  } catch (error) {
    if (error instanceof Problem) return failed(error.kind, redact(error.message))
    throw error
  }
}

/** Ends the search; caught at the door above. */
class Problem extends Error {
  readonly kind: 'invalid' | 'notFound'
  constructor(kind: 'invalid' | 'notFound', message: string) {
    super(message)
    this.kind = kind
  }
}

const load = async (options: KubeConfigOptions): Promise<KubeConfig> => {
  const env = options.env ?? process.env
  const folder = options.serviceAccountFolder ?? SERVICE_ACCOUNT
  if (options.inCluster) return inCluster(env, folder)
  if (options.text !== undefined) {
    const origin = options.origin ?? 'the kubeconfig'
    const config = choose([await parseFile(options.text, origin, undefined)], options.context, origin)
    refuseForeignWords(config)
    return config
  }
  if (options.kubeconfigPath !== undefined) {
    const path = resolve(options.kubeconfigPath)
    return choose([await readConfig(path, true)], options.context, path)
  }
  const fromEnv = (env['KUBECONFIG'] ?? '').split(delimiter).filter(path => path !== '')
  if (fromEnv.length > 0) {
    // As kubectl: files of the list that are not there are passed over, unless none is.
    const present = fromEnv.filter(path => existsSync(path))
    if (present.length === 0)
      throw new Problem('notFound', `kubeconfig not found: KUBECONFIG names ${fromEnv.join(', ')}, and there is no such file`)
    return choose(await Promise.all(present.map(path => readConfig(resolve(path), false))), options.context, present.join(', '))
  }
  const standard = join(env['HOME'] || homeOfUser(), '.kube', 'config')
  if (existsSync(standard)) return choose([await readConfig(standard, false)], options.context, standard)
  if (env['KUBERNETES_SERVICE_HOST'] && existsSync(join(folder, 'token'))) return inCluster(env, folder)
  throw new Problem('notFound', `no cluster is configured: give --kubeconfig FILE, set KUBECONFIG, or put a kubeconfig at ${standard}`)
}

/** A user whom no passwd knows, as many a pod has, has no home, and Node throws. */
const homeOfUser = (): string => {
  try {
    return homedir()
  } catch {
    return '/'
  }
}

type File = { readonly config: Json; readonly origin: string; readonly folder: string | undefined }

const readConfig = async (path: string, isAsked: boolean): Promise<File> => {
  let content: string
  try {
    content = await readFile(path, 'utf8')
  } catch (error) {
    const code = text(record(error as object)['code'])
    if (code === 'ENOENT')
      throw new Problem('notFound', `kubeconfig not found: ${isAsked ? '--kubeconfig names ' : ''}${path}, and there is no such file`)
    throw new Problem('invalid', `kubeconfig ${path} cannot be read (${code || 'unknown error'})`)
  }
  return parseFile(content, path, dirname(path))
}

const parseFile = async (content: string, origin: string, folder: string | undefined): Promise<File> => {
  let parsed = readPlainYaml(content)
  try {
    // Loaded only for what kubectl and its like do not write: it takes longer than asking the API server.
    parsed ??= (await import('yaml')).parse(content, { logLevel: 'error' })
  } catch (error) {
    // Only the place: a parser's message quotes the lines, and a kubeconfig's lines are secret.
    const line = (error as { linePos?: readonly { line: number; col: number }[] }).linePos?.[0]
    throw new Problem('invalid', `${origin} is not YAML${line ? ` (line ${line.line}, column ${line.col})` : ''}; it must be a kubeconfig`)
  }
  if (!isRecord(parsed))
    throw new Problem(
      'invalid',
      `${origin} is ${content.trim() === '' ? 'empty' : 'not a mapping'}; it must be a kubeconfig with clusters, users and contexts`,
    )
  return { config: parsed, origin, folder }
}

type Named = { readonly name: string; readonly value: Json; readonly folder: string | undefined }

/** All entries of a list of the files; of two with one name the first counts, as with kubectl. */
const entries = (files: readonly File[], plural: string, singular: string): readonly Named[] => {
  const found = new Map<string, Named>()
  for (const { config, folder } of files) {
    for (const entry of list(config[plural])) {
      const name = text(record(entry)['name'])
      if (name !== '' && !found.has(name)) found.set(name, { name, value: record(record(entry)[singular]), folder })
    }
  }
  return [...found.values()]
}

const named = (all: readonly Named[]): string => (all.length === 0 ? 'none' : all.map(({ name }) => name).join(', '))

const choose = (files: readonly File[], wanted: string | undefined, origin: string): KubeConfig => {
  const contexts = entries(files, 'contexts', 'context')
  if (contexts.length === 0)
    throw new Problem('invalid', `${origin} has no contexts; it must be a kubeconfig with clusters, users and contexts`)
  const current = files.map(({ config }) => text(config['current-context'])).find(name => name !== '')
  const contextName = wanted ?? current
  if (contextName === undefined)
    throw new Problem('invalid', `${origin} names no current-context; it has these contexts: ${named(contexts)}`)
  const context = contexts.find(({ name }) => name === contextName)
  if (!context) throw new Problem('invalid', `${origin} has no context ${JSON.stringify(contextName)}; it has ${named(contexts)}`)

  const clusterName = text(context.value['cluster'])
  const clusters = entries(files, 'clusters', 'cluster')
  const cluster = clusters.find(({ name }) => name === clusterName)
  if (!cluster)
    throw new Problem(
      'invalid',
      `context ${contextName} of ${origin} names the cluster ${JSON.stringify(clusterName)}, which is not there; it has ${named(clusters)}`,
    )
  const userName = text(context.value['user'])
  const users = entries(files, 'users', 'user')
  const user = users.find(({ name }) => name === userName)
  if (!user && userName !== '')
    throw new Problem(
      'invalid',
      `context ${contextName} of ${origin} names the user ${JSON.stringify(userName)}, which is not there; it has ${named(users)}`,
    )

  return {
    server: serverOf(cluster, origin),
    namespace: text(context.value['namespace']) || 'default',
    context: contextName,
    clusterName,
    userName,
    cluster: withAbsolutePaths(cluster, ['certificate-authority']),
    user: user ? withAbsolutePaths(user, ['client-certificate', 'client-key', 'tokenFile']) : {},
    origin,
  }
}

const serverOf = ({ name, value }: Named, origin: string): string => {
  const server = text(value['server'])
  if (server === '')
    throw new Problem(
      'invalid',
      `cluster ${name} of ${origin} has no server; it must be the address of the API server, for example https://10.0.0.1:6443`,
    )
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.hostname === '') {
    throw new Problem(
      'invalid',
      `cluster ${name} of ${origin} has the server ${JSON.stringify(server)}; it must be a URL, for example https://10.0.0.1:6443`,
    )
  }
  return server.replace(/\/+$/, '')
}

const withAbsolutePaths = ({ value, folder }: Named, names: readonly string[]): Json => {
  if (folder === undefined) return value
  const paths = names.filter(name => text(value[name]) !== '').map(name => [name, resolve(folder, text(value[name]))])
  const exec = record(value['exec'])
  const command = text(exec['command'])
  // A command with a slash is beside the file, one without is on the PATH.
  const found = command.includes('/') ? { exec: { ...exec, command: resolve(folder, command) } } : {}
  return { ...value, ...Object.fromEntries(paths), ...found }
}

// Who may write a Secret must not thereby run commands in our pod, or have our own token sent to a server of his choice.
const refuseForeignWords = ({ cluster, user, origin }: KubeConfig): void => {
  const foreign = [
    ...['certificate-authority'].filter(name => text(cluster[name]) !== ''),
    ...['client-certificate', 'client-key', 'tokenFile', 'exec', 'auth-provider'].filter(
      name => user[name] !== undefined && user[name] !== null && user[name] !== '',
    ),
  ]
  if (foreign.length === 0) return
  throw new Problem(
    'invalid',
    `${origin} uses ${foreign.join(', ')}, which refers to files or commands; it must hold its credentials itself (token, client-certificate-data, client-key-data, certificate-authority-data)`,
  )
}

const inCluster = async (env: Readonly<Record<string, string | undefined>>, folder: string): Promise<KubeConfig> => {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443'
  if (!host) throw new Problem('notFound', 'not in a pod: KUBERNETES_SERVICE_HOST is not set; give --kubeconfig FILE to run elsewhere')
  if (!existsSync(join(folder, 'token'))) {
    throw new Problem(
      'notFound',
      `the pod has no ServiceAccount token (${join(folder, 'token')}); automountServiceAccountToken must not be false`,
    )
  }
  const namespace = await readFile(join(folder, 'namespace'), 'utf8').catch(() => 'default')
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: namespace.trim() || 'default',
    context: 'in-cluster',
    clusterName: 'in-cluster',
    userName: 'service-account',
    cluster: { 'certificate-authority': join(folder, 'ca.crt') },
    user: { tokenFile: join(folder, 'token') },
    origin: "the pod's ServiceAccount",
  }
}
