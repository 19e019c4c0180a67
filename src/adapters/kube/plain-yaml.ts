// Kubeconfigs as programs write them, read without a YAML library: loading and warming one takes longer than asking the API server.

type Line = { readonly indent: number; readonly text: string }

/**
 * The value of a document that is JSON, or YAML of the plainest kind: block mappings and sequences of short scalars. Undefined where it is anything
 * else, which says nothing about it: a real parser has to read it then. Never answers other than a real parser would.
 */
export const readPlainYaml = (content: string): unknown => {
  if (content.trimStart().startsWith('{')) return readJson(content)
  try {
    const lines = linesOf(content)
    if (lines.length === 0) return undefined
    const [value, end] = readBlock(lines, 0, 0)
    return end === lines.length ? value : undefined
  } catch (error) {
    if (error === NOT_PLAIN) return undefined
    throw error
  }
}

const NOT_PLAIN = Symbol('not plain')
const notPlain = (): never => {
  throw NOT_PLAIN
}

const readJson = (content: string): unknown => {
  try {
    return JSON.parse(content)
  } catch {
    return undefined
  }
}

const linesOf = (content: string): Line[] => {
  const lines: Line[] = []
  for (const [index, raw] of content.split('\n').entries()) {
    const text = raw.trimEnd()
    const indent = text.length - text.trimStart().length
    if (text === '' || text[indent] === '#' || (index === 0 && text === '---')) continue
    if (!/^ *[\x21-\x7e][\x20-\x7e]*$/.test(text)) notPlain()
    lines.push({ indent, text: text.slice(indent) })
  }
  return lines
}

const readBlock = (lines: Line[], at: number, indent: number): [unknown, number] => {
  const line = lines[at] ?? notPlain()
  if (line.indent !== indent) notPlain()
  return line.text.startsWith('- ') ? readSequence(lines, at, indent) : readMapping(lines, at, indent)
}

const readMapping = (lines: Line[], from: number, indent: number): [unknown, number] => {
  const value: Record<string, unknown> = {}
  let at = from
  for (let line = lines[at]; line && line.indent === indent && !line.text.startsWith('- '); line = lines[at]) {
    const [, key = notPlain(), rest] = /^([A-Za-z][A-Za-z0-9_./-]*):(?: +(.+))?$/.exec(line.text) ?? []
    if (Object.hasOwn(value, key) || isWord(key) || key === '__proto__') notPlain()
    at += 1
    const next = lines[at]
    if (rest !== undefined) value[key] = readScalar(rest)
    else if (next && next.indent > indent) [value[key], at] = readBlock(lines, at, next.indent)
    else if (next && next.indent === indent && next.text.startsWith('- ')) [value[key], at] = readSequence(lines, at, indent)
    else value[key] = null
  }
  return [value, at]
}

const readSequence = (lines: Line[], from: number, indent: number): [unknown, number] => {
  const value: unknown[] = []
  let at = from
  for (let line = lines[at]; line && line.indent === indent && line.text.startsWith('- '); line = lines[at]) {
    const text = line.text.slice(2)
    if (/^[A-Za-z][A-Za-z0-9_./-]*:( |$)/.test(text)) {
      // The rest of the line is the first entry of a mapping that goes on below it.
      lines[at] = { indent: indent + 2, text }
      const [item, end] = readMapping(lines, at, indent + 2)
      value.push(item)
      at = end
    } else {
      value.push(readScalar(text))
      at += 1
    }
  }
  return [value, at]
}

const readScalar = (text: string): unknown => {
  if (text === '{}') return {}
  if (text === '[]') return []
  if (text === 'true') return true
  if (text === 'false') return false
  const [, quoted] = /^"([^"\\]*)"$/.exec(text) ?? /^'([^']*)'$/.exec(text) ?? []
  if (quoted !== undefined) return quoted
  // What begins otherwise may be a reference, a block or a collection.
  if (!/^[A-Za-z0-9/][A-Za-z0-9 _.,@+=/:~*-]*$/.test(text) || isNumber(text) || /: |:$| #/.test(text) || isWord(text)) return notPlain()
  return text
}

// More than what YAML takes for one.
const isNumber = (text: string): boolean => /^(0[xob].*|[0-9][0-9._:]*(e[-+]?[0-9]*)?)$/i.test(text)

// What YAML takes for something else than text.
const isWord = (text: string): boolean => /^(null|true|false|yes|no|on|off|y|n)$/i.test(text)
