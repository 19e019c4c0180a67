import { Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { readText, titleOf, type ConfigDocument } from './documents.ts'
import { documentShape } from './shape.ts'
import { entriesOf, isListing, isMapping, isNothing, itemsOf, plain, textOf, type Mapping, type Node } from './yaml-nodes.ts'

/** What may be shown of documents to everybody. */
export type Shown = { readonly title: string; readonly root: Mapping }

/**
 * Documents without their secrets, and without remarks, which may hold some. Instead of a secret stands `(secret 3)`: the same number for the
 * same secret, in all of the lists, so that one sees which stayed and which changed. Hidden is what Talos calls a secret, what is called
 * like one, what looks like a private key, what often holds some (environments, contents of files, manifests), and each of these again
 * wherever else it stands.
 */
export const withoutSecrets = (...lists: readonly (readonly ConfigDocument[])[]): readonly (readonly Shown[])[] => {
  const secrets = new Map<string, string>()
  const labelOf = (text: string): string => {
    const label = secrets.get(text) ?? `(secret ${secrets.size + 1})`
    secrets.set(text, label)
    return label
  }
  for (const document of lists.flat())
    eachScalar(document.root, [], (path, text) => {
      if (isSecret(document.kind, path, text)) labelOf(text)
    })
  // Those that are long enough to be nothing else, the longest first.
  const telling = [...secrets].filter(([text]) => text.length >= 8).toSorted(([a], [b]) => b.length - a.length)
  const masked = (text: string): string => telling.reduce((shown, [secret, label]) => shown.replaceAll(secret, label), withoutLogin(text))
  const shown = (kind: string, node: Node, path: readonly string[]): Node => {
    if (isMapping(node)) {
      const mapping = new YAMLMap()
      mapping.items = entriesOf(node).map(({ key, value }) => new Pair(plain(masked(key)), shown(kind, value, [...path, key])))
      return mapping
    }
    if (isListing(node)) {
      const listing = new YAMLSeq()
      listing.items = itemsOf(node).map(item => shown(kind, item, [...path, '*']))
      return listing
    }
    const text = textOf(node)
    if (!isNothing(node) && isSecret(kind, path, text)) return plain(labelOf(text))
    return Object.assign(new Scalar(masked(text)), { type: node.type })
  }
  return lists.map(list => list.map(document => ({ title: titleOf(document), root: shown(document.kind, document.root, []) as Mapping })))
}

/** What somebody else said, without the values of these YAML texts; too short for one to tell anything are those under four characters. */
export const withoutValuesOf = (texts: readonly string[], said: string): string => {
  const values = new Set<string>()
  for (const text of texts) {
    const read = readText(text)
    if (!read.ok) continue
    for (const { node } of read.roots)
      eachScalar(node, [], (path, value) => {
        if (value.length >= 4 && !NO_SECRET.has(path.join('.'))) values.add(value)
      })
  }
  return [...values].toSorted((a, b) => b.length - a.length).reduce((shown, value) => shown.replaceAll(value, '(secret)'), said)
}
const NO_SECRET: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'version'])

const eachScalar = (node: Node, path: readonly string[], visit: (path: readonly string[], text: string) => void): void => {
  if (isMapping(node)) for (const { key, value } of entriesOf(node)) eachScalar(value, [...path, key], visit)
  else if (isListing(node)) for (const item of itemsOf(node)) eachScalar(item, [...path, '*'], visit)
  else if (!isNothing(node)) visit(path, textOf(node))
}

const NAMED_SO = /(?:password|passphrase|secret|token|private[-_]?key|preshared[-_]?key|auth[-_]?key|api[-_]?key|credentials?)$/i
/** All that lies below, but for its name. */
const HOLDS_SOME = /^(?:contents?|manifest|env|environment|variables|headers|extraManifestHeaders|data|stringData)$/
const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/
/** Any PEM block but a certificate, in base64. */
const ENCODED_KEY = /^LS0tLS1CRUdJTi(?!BDRVJUSUZJQ0FUR)/

const isSecret = (kind: string, path: readonly string[], text: string): boolean => {
  if (text === '') return false
  const shape = documentShape(kind)
  const [last = ''] = path.filter(key => key !== '*').slice(-1)
  return (
    PRIVATE_KEY.test(text) ||
    ENCODED_KEY.test(text) ||
    NAMED_SO.test(last) ||
    (last !== 'name' && path.some(key => HOLDS_SOME.test(key))) ||
    (shape?.secrets.some(pattern => covers(pattern.split('.'), path)) ?? /key$/i.test(last))
  )
}

const covers = (pattern: readonly string[], path: readonly string[]): boolean =>
  pattern.length <= path.length && pattern.every((key, index) => key === '*' || key === path[index])

/** An address without its user and password, and without the tokens of its query. */
const withoutLogin = (text: string): string =>
  text.replaceAll(/\/\/[^/@\s]+@/g, '//(secret)@').replaceAll(/([?&][^=&\s]*(?:token|secret|password|key)=)[^&#\s]+/gi, '$1(secret)')
