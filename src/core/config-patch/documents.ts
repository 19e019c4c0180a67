import { LineCounter, parseAllDocuments, type Document, type YAMLError } from 'yaml'
import { documentShape } from './shape.ts'
import { isMapping, offsetOf, textOf, unfolded, valueAt, type Mapping, type Node } from './yaml-nodes.ts'

/** One document of a machine configuration. */
export type ConfigDocument = {
  /** Empty for the one that has `machine` and `cluster`. */
  readonly kind: string
  readonly apiVersion: string
  /** Empty where documents of its kind are not told apart by name. */
  readonly name: string
  readonly root: Mapping
  /** As it was written, without the line that parts it from the one before; undefined for one that came by a patch. */
  readonly source?: string
}

export type ReadText =
  | { readonly ok: true; readonly roots: readonly Root[]; readonly lineOf: (node: unknown) => number | undefined }
  | { readonly ok: false; readonly line: number; readonly problem: string }

type Root = { readonly node: Node; readonly source: string }

/** The documents of a YAML text that say something. A problem never quotes the text, which may hold keys. */
export const readText = (text: string): ReadText => {
  const lineCounter = new LineCounter()
  try {
    const all = [...parseAllDocuments(text, { schema: 'failsafe', prettyErrors: false, logLevel: 'error', lineCounter })]
    const error = all.flatMap(({ errors }) => errors)[0]
    if (error) return { ok: false, line: lineCounter.linePos(error.pos[0]).line, problem: yamlProblem(error) }
    return {
      ok: true,
      roots: all.flatMap((document, index) => rootOf(document, sourceOf(text, all[index - 1], document))),
      lineOf: lineIn(lineCounter),
    }
  } catch {
    // Thrown by the library, too: for an alias of nothing or of far too much.
    return { ok: false, line: 1, problem: 'it has aliases of nothing, of themselves or of too much, tags, or is nested too deep' }
  }
}

/** None for a document that says nothing. */
const rootOf = (document: Document, source: string): readonly Root[] => {
  document.toJS({ maxAliasCount: 100 })
  const node = unfolded(document, document.contents)
  // The library gives the remarks at both ends to the document.
  node.commentBefore = [document.commentBefore, node.commentBefore].filter(Boolean).join('\n') || null
  node.comment = [node.comment, document.comment].filter(Boolean).join('\n') || null
  return isMapping(node) || isSaying(node) ? [{ node, source }] : []
}

const lineIn =
  (lineCounter: LineCounter) =>
  (node: unknown): number | undefined => {
    const offset = offsetOf(node)
    return offset === undefined ? undefined : lineCounter.linePos(offset).line
  }

const isSaying = (node: Node): boolean => !('value' in node) || textOf(node) !== ''

const sourceOf = (text: string, before: Document | undefined, { range }: Document): string =>
  text.slice(before?.range?.[2] ?? 0, range?.[2]).replace(/^(?:\.\.\.[^\n]*\n)?(?:---[ \t]*\n)?/, '')

/** The library's own words may quote the text. */
const PROBLEMS: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  BAD_INDENT: 'a line is not indented as those around it',
  BAD_SCALAR_START: 'a value begins with a character that needs quotes around it',
  BLOCK_AS_IMPLICIT_KEY: 'a value has a colon that needs quotes around it, or lines below it that are indented further',
  DUPLICATE_KEY: 'a key stands twice in one mapping',
  MISSING_CHAR: 'a quote is not closed, or a comma or a colon is missing',
  MULTILINE_IMPLICIT_KEY: 'a key has no colon and space behind it, or a line is not indented as those around it',
  TAB_AS_INDENT: 'a tab stands where spaces have to',
}

const yamlProblem = ({ code, message }: YAMLError): string =>
  message.startsWith('Flow ')
    ? 'a { or a [ is not closed, or what is in it is not indented'
    : (PROBLEMS[code] ?? `it is not YAML (${code.toLowerCase().replaceAll('_', ' ')})`)

export const documentOf = (node: Mapping, source?: string): ConfigDocument => {
  const kind = textOf(valueAt(node, 'kind'))
  const isNamed = documentShape(kind)?.named ?? valueAt(node, 'name') !== undefined
  return {
    kind,
    apiVersion: kind === '' ? '' : textOf(valueAt(node, 'apiVersion')),
    name: isNamed ? textOf(valueAt(node, 'name')) : '',
    root: node,
    ...(source === undefined ? {} : { source }),
  }
}

/** The documents of a configuration that could be patched; none where it is no YAML. */
export const documentsOf = (text: string): readonly ConfigDocument[] => {
  const read = readText(text)
  return read.ok
    ? read.roots
        .map(({ node }) => node)
        .filter(isMapping)
        .map(root => documentOf(root))
    : []
}

type Identity = Pick<ConfigDocument, 'kind' | 'apiVersion' | 'name'>

/** What two documents have in common of which one patches the other. */
export const identityOf = ({ kind, apiVersion, name }: Identity): string => `${apiVersion}/${kind}/${name}`

export const titleOf = ({ kind, name }: Identity): string => (kind === '' ? 'the main document' : `${kind}${name === '' ? '' : ` ${name}`}`)
