import { Document, YAMLMap, type CollectionTag, type ScalarTag, type Tags } from 'yaml'
import type { ConfigDocument } from './documents.ts'
import type { Mapping } from './yaml-nodes.ts'

/** How a text is laid out. */
type Style = { readonly indent: number; readonly indentSeq: boolean; readonly flowCollectionPadding: boolean }

/** Of a text; where it does not show, as Talos writes, with four spaces. */
export const styleOf = (text: string): Style => ({
  indent: /^( +)[^\s#-]/m.exec(text)?.[1]?.length ?? 4,
  indentSeq: !/^( *)[^\s#][^\n]*:[ \t]*\n\1- /m.test(text),
  flowCollectionPadding: /\{ \S/.test(text),
})

/** The text of documents: as they were written, where they still are what was written. */
export const writeDocuments = (documents: readonly ConfigDocument[], style: Style): string =>
  documents.map(({ root, source }) => ended(source ?? written(root, style))).join('---\n')

/** One mapping. */
export const written = (root: Mapping, style: Style = styleOf('')): string => {
  const document = new Document<Mapping>(undefined, { schema: 'failsafe', customTags: tags => aligned(tags, style.indent) })
  document.contents = root
  return document.toString({ ...style, lineWidth: 0 })
}

/** As Talos does it, what is below a mapping that is an item of a list stands in the columns of all others, not two further. */
const aligned = (tags: Tags, indent: number): Tags =>
  tags.map(tag => (isMappings(tag) ? { ...tag, stringify: alignedBy(indent) } : tag) as Tags[number])

const isMappings = (tag: Tags[number]): tag is CollectionTag => typeof tag === 'object' && tag.nodeClass === YAMLMap

const alignedBy =
  (indent: number): NonNullable<ScalarTag['stringify']> =>
  (node, context, ...rest) =>
    (node as unknown as Mapping).toString({ ...context, indentStep: ' '.repeat(indent - (context.indent.length % indent)) }, ...rest)

const ended = (text: string): string => text.replace(/[^\n]$/, '$&\n')
