import { isDeepStrictEqual } from 'node:util'
import type { Component } from '../../ports/components.ts'
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
  const parsed = parse(text)
  if (!parsed.ok) return parsed
  const main = parsed.value.values.find(isMainDocument)
  return {
    ok: true,
    value: {
      installImage: installImageOf(parsed.value.values),
      etcdQuotaBytes: quotaOf(at(main, ['cluster', 'etcd', 'extraArgs', 'quota-backend-bytes'])),
    },
  }
}

/**
 * The same text with another install image in it. Not a byte changes elsewhere: comments, quoting and other documents stay. The same text comes
 * back where the image is there already. A configuration without an install section has nothing to set, which is a problem.
 */
export function withInstallImage(text: string, image: string): ConfigResult<string> {
  return withImage(
    text,
    installPlace,
    image,
    'it has no machine.install (nor a document UnattendedInstallConfig), so there is no install image to set',
  )
}

/** The same for the image of a component of Kubernetes. Where the configuration names none, the place for it is made. */
export function withComponentImage(text: string, component: Component, image: string): ConfigResult<string> {
  return withImage(text, values => componentPlace(values, component), image, 'it has no document of version v1alpha1')
}

function withImage(
  text: string,
  placeIn: (values: readonly unknown[]) => Place | undefined,
  image: string,
  nowhere: string,
): ConfigResult<string> {
  // Also what keeps YAML's own signs out of the text.
  if (!/^[A-Za-z0-9][\w./:@-]*$/.test(image)) return { ok: false, problem: 'the image to set is not an image reference' }
  const parsed = parse(text)
  if (!parsed.ok) return parsed
  const { documents, values } = parsed.value
  const place = placeIn(values)
  if (!place) return { ok: false, problem: nowhere }
  if (at(values[place.index], place.path) === image) return { ok: true, value: text }
  const edit = editOf(text, documents[place.index]!, place.path, image)
  if (!edit)
    return { ok: false, problem: `${place.path.join('.')} is written in a way (anchor, alias or merge) that cannot be changed alone` }
  const changed = text.slice(0, edit.from) + edit.text + text.slice(edit.to)
  return isOnlyChange(values, changed, place, image)
    ? { ok: true, value: changed }
    : { ok: false, problem: `${place.path.join('.')} is written in a way that cannot be changed alone` }
}

/** Whether two configurations mean the same, however they are written. */
export function saysTheSame(one: string, other: string): boolean {
  if (one === other) return true
  const [left, right] = [parse(one), parse(other)]
  return left.ok && right.ok && isDeepStrictEqual(left.value.values, right.value.values)
}

type Parsed = {
  readonly documents: readonly Document[]
  /** What each of them says, aliases followed. */
  readonly values: readonly unknown[]
}

function parse(text: string): ConfigResult<Parsed> {
  const problem = 'it cannot be read as YAML'
  // Pretty errors quote the line, and the line may be a key.
  const documents = parseAllDocuments(text, { prettyErrors: false, logLevel: 'error', merge: true })
  if (!Array.isArray(documents)) return { ok: true, value: { documents: [], values: [] } }
  if (documents.some(({ errors }) => errors.length > 0)) return { ok: false, problem }
  try {
    return { ok: true, value: { documents, values: documents.map((document): unknown => document.toJS()) } }
  } catch {
    // An alias of nothing, or of far too much, is only found here.
    return { ok: false, problem }
  }
}

const mainPath: Path = ['machine', 'install', 'image']
const unattendedPath: Path = ['installer', 'image']

/** The one document that is no `kind`: `version: v1alpha1`. */
function isMainDocument(value: unknown): boolean {
  return isMapping(value) && !Object.hasOwn(value, 'kind')
}

function isOfKind(value: unknown, kind: string): boolean {
  return isMapping(value) && value['kind'] === kind
}

function installImageOf(values: readonly unknown[]): string {
  const place = installPlace(values)
  const image = place && at(values[place.index], place.path)
  return typeof image === 'string' ? image : ''
}

type Place = { readonly index: number; readonly path: Path }

/** Both forms may not stand together, so the document of Talos 1.14 goes first where it is there. */
function installPlace(values: readonly unknown[]): Place | undefined {
  const unattended = values.findIndex(value => isOfKind(value, 'UnattendedInstallConfig'))
  if (unattended !== -1) return { index: unattended, path: unattendedPath }
  const main = values.findIndex(isMainDocument)
  return main !== -1 && isMapping(at(values[main], mainPath.slice(0, -1))) ? { index: main, path: mainPath } : undefined
}

/** Of each component: in the one document of old, and the kind of its own document since Talos 1.14. */
const componentPlaces: Readonly<Record<Component, { readonly path: Path; readonly kind: string }>> = {
  'kube-apiserver': { path: ['cluster', 'apiServer', 'image'], kind: 'KubeAPIServerConfig' },
  'kube-controller-manager': { path: ['cluster', 'controllerManager', 'image'], kind: 'KubeControllerManagerConfig' },
  'kube-scheduler': { path: ['cluster', 'scheduler', 'image'], kind: 'KubeSchedulerConfig' },
  'kube-proxy': { path: ['cluster', 'proxy', 'image'], kind: 'KubeProxyConfig' },
  kubelet: { path: ['machine', 'kubelet', 'image'], kind: 'KubeletConfig' },
}

function componentPlace(values: readonly unknown[], component: Component): Place | undefined {
  const { path, kind } = componentPlaces[component]
  const own = values.findIndex(value => isOfKind(value, kind))
  if (own !== -1) return { index: own, path: ['image'] }
  const main = values.findIndex(isMainDocument)
  return main === -1 ? undefined : { index: main, path }
}

function at(value: unknown, path: Path): unknown {
  return path.reduce((inner: unknown, key) => (isMapping(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), value)
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type Edit = { readonly from: number; readonly to: number; readonly text: string }

/** Follows the path as far as there are maps, and writes the rest of it there. */
function editOf(text: string, { contents }: Document, path: Path, image: string): Edit | undefined {
  let map: unknown = contents
  for (const [depth, key] of path.entries()) {
    if (!isMap(map)) return undefined
    const pair = map.items.find(item => isScalar(item.key) && item.key.value === key)
    const rest = path.slice(depth + 1)
    if (!pair) return insertion(text, map, `${key}: ${nested(rest, image)}`)
    if (rest.length === 0 || isEmpty(pair)) return replacement(text, pair, nested(rest, image))
    map = pair.value
  }
  return undefined
}

function nested(path: Path, image: string): string {
  return path.reduceRight((inner, key) => `{${key}: ${inner}}`, image)
}

function isEmpty({ value }: Pair): boolean {
  return value === null || (isScalar(value) && value.value === null && value.source === '')
}

function replacement(text: string, pair: Pair, written: string): Edit | undefined {
  const { key, value } = pair
  if (isEmpty(pair)) {
    const keyEnd = isScalar(key) ? key.range?.[1] : undefined
    const colon = keyEnd === undefined ? -1 : text.indexOf(':', keyEnd)
    return colon === -1 ? undefined : { from: colon + 1, to: colon + 1, text: ` ${written}` }
  }
  if (isAlias(value) || !isScalar(value) || value.anchor || !value.range) return undefined
  const [from, to] = value.range
  if (value.type === Scalar.QUOTE_DOUBLE) return { from, to, text: `"${written}"` }
  if (value.type === Scalar.QUOTE_SINGLE) return { from, to, text: `'${written}'` }
  return value.type === Scalar.PLAIN ? { from, to, text: written } : undefined
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
function isOnlyChange(before: readonly unknown[], changed: string, place: Place, image: string): boolean {
  const after = parse(changed)
  const expected = before.map((value, index) => (index === place.index ? withValue(value, place.path, image) : value))
  return after.ok && isDeepStrictEqual(after.value.values, expected)
}

function withValue(value: unknown, [key, ...rest]: Path, wanted: string): unknown {
  if (key === undefined) return wanted
  const mapping = isMapping(value) ? value : {}
  return { ...mapping, [key]: withValue(mapping[key], rest, wanted) }
}

/** A number, a text of one, or a list of texts of which the last counts (Talos 1.13 takes lists). */
function quotaOf(value: unknown): number {
  const last: unknown = Array.isArray(value) ? value.at(-1) : value
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
