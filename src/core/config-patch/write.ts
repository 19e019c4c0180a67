import { Document } from 'yaml'
import type { ConfigDocument } from './documents.ts'
import type { Mapping } from './yaml-nodes.ts'

/** The text of documents: as they were written, where they still are what was written. */
export const writeDocuments = (documents: readonly ConfigDocument[]): string => {
  const style = styleOf(documents.find(({ source }) => source !== undefined)?.source ?? '')
  return documents.map(({ root, source }) => ended(source ?? written(root, style))).join('---\n')
}

type Style = { readonly indent: number; readonly indentSeq: boolean; readonly flowCollectionPadding: boolean }

/** Talos writes with four spaces. */
const styleOf = (source: string): Style => ({
  indent: /^( +)[^\s#-]/m.exec(source)?.[1]?.length ?? 4,
  indentSeq: !/^( *)[^\s#][^\n]*:[ \t]*\n\1- /m.test(source),
  flowCollectionPadding: /\{ \S/.test(source),
})

/** One mapping in the style in which Talos writes. */
export const written = (root: Mapping, style: Style = styleOf('')): string => {
  const document = new Document<Mapping>(null as never, { schema: 'failsafe' })
  document.contents = root
  return document.toString({ ...style, lineWidth: 0 })
}

const ended = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)
