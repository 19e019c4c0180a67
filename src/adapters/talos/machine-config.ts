import { isDeepStrictEqual } from 'node:util'
import { type Document, isAlias, isMap, isScalar, parseAllDocuments, type Pair, Scalar, type YAMLMap } from 'yaml'

/** What is read from a machine configuration; everything else in it stays where it is. */
export type ConfigFacts = {
  /** `machine.install.image`, or `installer.image` of an UnattendedInstallConfig (Talos 1.14). Empty where it names none. */
  readonly installImage: string
  /** `cluster.etcd.extraArgs.quota-backend-bytes`, or etcd's default. */
  readonly etcdQuotaBytes: number
}

/** `problem` never quotes the configuration. */
export type ConfigResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string }

/** etcd's own default of `--quota-backend-bytes`. */
export const defaultEtcdQuotaBytes = 2 * 1024 ** 3

type Path = readonly string[]

export function readConfigFacts(text: string): ConfigResult<ConfigFacts> {
  const documents = documentsOf(text)
  if (!documents.ok) return documents
  const main = documents.value.find(isMainDocument)
  return {
    ok: true,
    value: {
      installImage: installImageOf(documents.value),
      etcdQuotaBytes: quotaOf(main?.getIn(['cluster', 'etcd', 'extraArgs', 'quota-backend-bytes'])),
    },
  }
}

/**
 * The same text with another install image in it. Not a byte changes elsewhere: comments, quoting and other documents stay. The same text comes
 * back where the image is there already. A configuration without an install section has nothing to set, which is a problem.
 */
export function withInstallImage(text: string, image: string): ConfigResult<string> {
  // Also what keeps YAML's own signs out of the text.
  if (!/^[A-Za-z0-9][\w./:@-]*$/.test(image)) return { ok: false, problem: 'the image to set is not an image reference' }
  const documents = documentsOf(text)
  if (!documents.ok) return documents
  if (installImageOf(documents.value) === image) return { ok: true, value: text }
  const place = installPlace(documents.value)
  if (!place)
    return { ok: false, problem: 'it has no machine.install (nor a document UnattendedInstallConfig), so there is no install image to set' }

  const edit = editOf(text, place.document, place.path, image)
  if (!edit)
    return { ok: false, problem: `${place.path.join('.')} is written in a way (anchor, alias or merge) that cannot be changed alone` }
  const changed = text.slice(0, edit.from) + edit.text + text.slice(edit.to)
  return isOnlyChange(documents.value, changed, place, image)
    ? { ok: true, value: changed }
    : { ok: false, problem: `${place.path.join('.')} is written in a way that cannot be changed alone` }
}

/** Whether two configurations mean the same, however they are written. */
export function saysTheSame(one: string, other: string): boolean {
  if (one === other) return true
  const [left, right] = [documentsOf(one), documentsOf(other)]
  return left.ok && right.ok && isDeepStrictEqual(left.value.map(valueOf), right.value.map(valueOf))
}

function valueOf(document: Document): unknown {
  return document.toJS()
}

function documentsOf(text: string): ConfigResult<readonly Document[]> {
  // Pretty errors quote the line, and the line may be a key.
  const documents = parseAllDocuments(text, { prettyErrors: false, logLevel: 'error', uniqueKeys: false })
  if (!Array.isArray(documents)) return { ok: true, value: [] }
  const isBroken = documents.some(({ errors }) => errors.length > 0)
  return isBroken ? { ok: false, problem: 'it cannot be read as YAML' } : { ok: true, value: documents as Document[] }
}

/** The one document that is no `kind`: `version: v1alpha1`. */
function isMainDocument(document: Document): boolean {
  return isMap(document.contents) && !document.has('kind')
}

function isUnattendedInstall(document: Document): boolean {
  return isMap(document.contents) && document.get('kind') === 'UnattendedInstallConfig'
}

const mainPath: Path = ['machine', 'install', 'image']
const unattendedPath: Path = ['installer', 'image']

function installImageOf(documents: readonly Document[]): string {
  const place = installPlace(documents)
  return textOf(place?.document.getIn(place.path))
}

/** Both forms may not stand together, so the document of 1.14 goes first where it is there. */
function installPlace(documents: readonly Document[]): { readonly document: Document; readonly path: Path } | undefined {
  const unattended = documents.find(isUnattendedInstall)
  if (unattended) return { document: unattended, path: unattendedPath }
  const main = documents.find(isMainDocument)
  return main && isMap(main.getIn(mainPath.slice(0, -1))) ? { document: main, path: mainPath } : undefined
}

type Edit = { readonly from: number; readonly to: number; readonly text: string }

function editOf(text: string, document: Document, path: Path, image: string): Edit | undefined {
  const [last, ...before] = path.toReversed()
  const parent = document.getIn(before.toReversed(), true)
  if (last === undefined) return undefined
  if (parent === undefined && path === unattendedPath && isMap(document.contents))
    return insertion(text, document.contents, `installer: {image: ${image}}`)
  if (!isMap(parent)) return undefined
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === last)
  return pair ? replacement(pair, image) : insertion(text, parent, `${last}: ${image}`)
}

function replacement(pair: Pair, image: string): Edit | undefined {
  const { key, value } = pair
  if (value === null || (isScalar(value) && value.value === null && value.source === '')) {
    const end = isScalar(key) ? key.range?.[1] : undefined
    const at = isScalar(value) ? value.range?.[0] : end
    return at === undefined ? undefined : { from: at, to: at, text: ` ${image}` }
  }
  if (isAlias(value) || !isScalar(value) || value.anchor || !value.range) return undefined
  const [from, to] = value.range
  if (value.type === Scalar.QUOTE_DOUBLE) return { from, to, text: `"${image}"` }
  if (value.type === Scalar.QUOTE_SINGLE) return { from, to, text: `'${image}'` }
  return value.type === Scalar.PLAIN ? { from, to, text: image } : undefined
}

/** As the first entry of the map, indented as its others are. */
function insertion(text: string, map: YAMLMap, entry: string): Edit | undefined {
  if (map.flow) {
    const at = map.range ? map.range[0] + 1 : undefined
    return at === undefined ? undefined : { from: at, to: at, text: map.items.length > 0 ? `${entry}, ` : entry }
  }
  const first = map.items[0]?.key
  const at = isScalar(first) ? first.range?.[0] : undefined
  if (at === undefined) return undefined
  const indent = text.slice(text.lastIndexOf('\n', at - 1) + 1, at)
  // Where something else stands before the first key (`- `, `? `), the proof below would fail anyway.
  return /^ *$/.test(indent) ? { from: at, to: at, text: `${entry}\n${indent}` } : undefined
}

/** The proof of an edit: read again, the new text says the same as the old one, but for the image. */
function isOnlyChange(
  before: readonly Document[],
  changed: string,
  place: { readonly document: Document; readonly path: Path },
  image: string,
): boolean {
  const after = documentsOf(changed)
  if (!after.ok || after.value.length !== before.length) return false
  return before.every((document, index) => {
    const now = after.value[index]!
    if (document !== place.document) return isDeepStrictEqual(now.toJS(), document.toJS())
    const expected = document.clone()
    expected.setIn(place.path, image)
    return isDeepStrictEqual(now.toJS(), expected.toJS())
  })
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A number, a text of one, or a list of texts of which the last counts (Talos 1.13 takes lists). */
function quotaOf(value: unknown): number {
  const plain =
    typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
      ? (value.toJSON() as unknown)
      : value
  const last = Array.isArray(plain) ? (plain as unknown[]).at(-1) : plain
  const bytes =
    typeof last === 'number'
      ? last
      : typeof last === 'bigint'
        ? Number(last)
        : typeof last === 'string' && /^-?\d+$/.test(last.trim())
          ? Number(last)
          : 0
  if (bytes === 0) return defaultEtcdQuotaBytes
  // etcd: below zero is no quota at all.
  return bytes < 0 ? Number.MAX_SAFE_INTEGER : bytes
}
