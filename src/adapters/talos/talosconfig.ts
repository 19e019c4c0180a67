import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { LineCounter, parseDocument, stringify } from 'yaml'

export type TalosEndpoint = { readonly host: string; readonly port: number }

/** What one context of a talosconfig says, ready to connect with. */
export type Talosconfig = {
  readonly contextName: string
  /** `host` without brackets, also for IPv6. May be empty: a machine can be called by its own address. */
  readonly endpoints: readonly TalosEndpoint[]
  readonly nodes: readonly string[]
  readonly caPem: string
  readonly crtPem: string
  /** As Node loads it; secret. */
  readonly keyPem: string
  readonly notBefore: Date
  /** When the client certificate runs out. */
  readonly notAfter: Date
  /** When the first of the CAs in it runs out. */
  readonly authorityNotAfter: Date
  /** Organizations of the client certificate, e.g. `os:admin`. */
  readonly roles: readonly string[]
}

/** `problem` is one sentence for the person who wrote the file. It never quotes a secret. */
export type TalosconfigResult = { readonly ok: true; readonly value: Talosconfig } | { readonly ok: false; readonly problem: string }

/** The port of the Talos API where an endpoint names none. */
const talosPort = 50_000

/** Takes the context named in `context`, else the file's current one, else the only one there is. */
export function parseTalosconfig(text: string, options: { readonly now: Date; readonly context?: string }): TalosconfigResult {
  try {
    return { ok: true, value: readTalosconfig(text, options) }
  } catch (error) {
    if (error instanceof Problem) return { ok: false, problem: error.message }
    throw error
  }
}

export function writeTalosconfig(config: {
  readonly contextName: string
  readonly endpoints: readonly string[]
  readonly nodes?: readonly string[]
  readonly caPem: string
  readonly crtPem: string
  readonly keyPem: string
}): string {
  const base64 = (pem: string) => Buffer.from(pem).toString('base64')
  const context = {
    endpoints: config.endpoints,
    ...(config.nodes && config.nodes.length > 0 ? { nodes: config.nodes } : {}),
    ca: base64(config.caPem),
    crt: base64(config.crtPem),
    key: base64(keyForTalos(config.keyPem)),
  }
  return stringify({ context: config.contextName, contexts: { [config.contextName]: context } }, { lineWidth: 0 })
}

/** Ends the reading of a file; caught at the door, so that the steps below read straight down. */
class Problem extends Error {}

type Fields = Readonly<Record<string, unknown>>

function readTalosconfig(text: string, { now, context: wanted }: { readonly now: Date; readonly context?: string }): Talosconfig {
  const file = yamlMapping(text)
  const contexts = isMapping(file['contexts']) ? file['contexts'] : {}
  const names = Object.keys(contexts)
  if (names.length === 0) throw new Problem('talosconfig has no contexts')

  const contextName = wanted ?? (textOf(file['context']) || (names.length === 1 ? names[0] : undefined))
  if (contextName === undefined) throw new Problem(`talosconfig names no current context; it has ${listed(names)}`)
  const context = Object.hasOwn(contexts, contextName) ? contexts[contextName] : undefined
  if (!isMapping(context)) throw new Problem(`talosconfig has no context ${quoted(contextName)}; it has ${listed(names)}`)

  const caPem = pemOf(context, 'ca', contextName)
  const crtPem = pemOf(context, 'crt', contextName)
  const keyPem = keyForNode(pemOf(context, 'key', contextName))
  const authorities = certificatesIn(caPem).map(pem => certificate(pem, 'ca', contextName))
  const client = certificate(certificatesIn(crtPem)[0] ?? '', 'crt', contextName)
  const key = privateKey(keyPem, contextName)

  if (!client.checkPrivateKey(key)) throw new Problem(`crt and key of context ${quoted(contextName)} do not belong together`)
  if (client.validToDate <= now) {
    throw new Problem(
      `the client certificate of context ${quoted(contextName)} expired on ${client.validToDate.toISOString().replace('.000Z', 'Z')}`,
    )
  }

  const target = textOf(context['target'])
  const endpoints = [...textsOf(context, 'endpoints', contextName), ...(target ? [target] : [])]
  return {
    contextName,
    endpoints: endpoints.map(endpoint => endpointOf(endpoint, contextName)),
    nodes: textsOf(context, 'nodes', contextName),
    caPem,
    crtPem,
    keyPem,
    notBefore: client.validFromDate,
    notAfter: client.validToDate,
    authorityNotAfter: new Date(Math.min(...authorities.map(({ validToDate }) => validToDate.getTime()))),
    roles: organizationsOf(client),
  }
}

function yamlMapping(text: string): Fields {
  const lines = new LineCounter()
  // Pretty errors quote the line, and the line may be a key.
  const document = parseDocument(text, { prettyErrors: false, lineCounter: lines, logLevel: 'error' })
  const [error] = document.errors
  if (error) throw new Problem(`talosconfig is not YAML: line ${lines.linePos(error.pos[0]).line} cannot be read`)
  // An alias of nothing is only found here.
  const content: unknown = parsed(
    () => document.toJS(),
    () => new Problem('talosconfig is not YAML: an alias in it points nowhere'),
  )
  if (content === null) return {}
  if (!isMapping(content)) throw new Problem('talosconfig is not YAML with contexts in it, but a single value')
  return content
}

function pemOf(context: Fields, field: 'ca' | 'crt' | 'key', contextName: string): string {
  const value = textOf(context[field])
  if (!value) {
    const omni = isMapping(context['auth']) && 'siderov1' in context['auth']
    const why = omni ? ': it signs its requests as for Omni, and a client certificate is needed here' : ''
    throw new Problem(`context ${quoted(contextName)} has no ${field}${why}`)
  }
  const base64 = value.replaceAll(/\s/g, '')
  const pem = /^[A-Za-z0-9+/]+={0,2}$/.test(base64) && base64.length % 4 === 0 ? Buffer.from(base64, 'base64').toString() : ''
  const label = field === 'key' ? /-----BEGIN ([A-Z0-9]+ )?PRIVATE KEY-----/ : /-----BEGIN CERTIFICATE-----/
  if (!label.test(pem)) throw unreadable(field, contextName)
  return pem
}

function certificate(pem: string, field: 'ca' | 'crt', contextName: string): X509Certificate {
  return parsed(
    () => new X509Certificate(pem),
    () => unreadable(field, contextName),
  )
}

function privateKey(pem: string, contextName: string): KeyObject {
  return parsed(
    () => createPrivateKey(pem),
    () => unreadable('key', contextName),
  )
}

function unreadable(field: 'ca' | 'crt' | 'key', contextName: string): Problem {
  return new Problem(
    `${field} of context ${quoted(contextName)} is not a base64 of PEM with a ${field === 'key' ? 'private key' : 'certificate'} in it`,
  )
}

/** What others throw may quote what they were given, so their words end here. */
function parsed<T>(parse: () => T, problem: () => Problem): T {
  try {
    return parse()
  } catch {
    throw problem()
  }
}

function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? ['']
}

function organizationsOf(client: X509Certificate): string[] {
  return [client.toLegacyObject().subject.O ?? []].flat()
}

/** `host`, `host:port`, `https://host[:port]` (443 where none is named); an IPv6 address with brackets, or bare without a port. */
function endpointOf(text: string, contextName: string): TalosEndpoint {
  const [, scheme, rest = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*?)\/?$/i.exec(text) ?? []
  const defaultPort = scheme ? 443 : talosPort
  const isKnownScheme = scheme === undefined || scheme.toLowerCase() === 'https'
  if (isKnownScheme && isIPv6(rest)) return { host: rest, port: defaultPort }
  const [, v6, name, port] = /^(?:\[([^\]]+)\]|([^\s:/[\]@?#]+))(?::(\d{1,5}))?$/.exec(rest) ?? []
  const host = v6 ?? name
  const portNumber = port === undefined ? defaultPort : Number(port)
  if (!isKnownScheme || host === undefined || (v6 !== undefined && !isIPv6(v6)) || portNumber < 1 || portNumber > 65_535) {
    throw new Problem(
      `endpoint ${quoted(text)} of context ${quoted(contextName)} is none of host, host:port, https://host and https://host:port`,
    )
  }
  return { host, port: portNumber }
}

function textsOf(context: Fields, field: 'endpoints' | 'nodes', contextName: string): string[] {
  const value = context[field] ?? []
  if (!Array.isArray(value) || !value.every(one => typeof one === 'string')) {
    throw new Problem(`${field} of context ${quoted(contextName)} is not a list of texts`)
  }
  return value
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isMapping(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Talos labels Ed25519 keys in its own way, which OpenSSL refuses; the content is PKCS#8 in both. */
function keyForNode(pem: string): string {
  return pem.replaceAll(' ED25519 PRIVATE KEY-----', ' PRIVATE KEY-----')
}

function keyForTalos(pem: string): string {
  const isEd25519 = createPrivateKey(keyForNode(pem)).asymmetricKeyType === 'ed25519'
  return isEd25519 ? keyForNode(pem).replaceAll(' PRIVATE KEY-----', ' ED25519 PRIVATE KEY-----') : pem
}

function quoted(name: string): string {
  return `"${name}"`
}

function listed(names: readonly string[]): string {
  return names.map(quoted).join(', ')
}
