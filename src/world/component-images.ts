import type { Component } from '../ports/components.ts'
import { PLACES } from './kubernetes-config.ts'
import { lineOf, writeScalar } from './machine-config.ts'

/** The text of a configuration with another image of a component in it; the place for it is made where there is none. */
export const withImageOf = (text: string, component: Component, image: string): string => {
  const { path, kind } = PLACES[component]
  const documents = text.split(/^---$/m)
  const own = documents.findIndex(document => new RegExp(`^kind: ${kind}$`, 'm').test(document))
  if (own >= 0) {
    const document = documents[own] ?? ''
    const changed = /^image:.*$/m.test(document)
      ? document.replace(/^image:.*$/m, `image: ${image}`)
      : `${document.trimEnd()}\nimage: ${image}\n`
    return documents.with(own, changed).join('---')
  }
  const lines = text.split('\n')
  const [section = '', name = ''] = path
  if (lineOf(lines, [...path, 'image']) >= 0) return writeScalar(text, [...path, 'image'], image)
  const at = lineOf(lines, path)
  if (at >= 0) return lines.toSpliced(at + 1, 0, `        image: ${image}`).join('\n')
  return lines.toSpliced(lineOf(lines, [section]) + 1, 0, `    ${name}:`, `        image: ${image}`).join('\n')
}
