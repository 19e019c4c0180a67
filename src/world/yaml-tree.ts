/** What a YAML text says, as far as the world reads one: every scalar is a text. */
export type Tree = string | readonly Tree[] | { readonly [key: string]: Tree }

type Line = { readonly indent: number; readonly text: string }

const linesOf = (text: string): Line[] =>
  text.split('\n').map(line => {
    const trimmed = line.trim()
    return { indent: line.length - line.trimStart().length, text: trimmed.startsWith('#') ? '' : trimmed }
  })

/** Where the key of a mapping's line ends; -1 where it is no mapping's line. A colon inside quotes does not count. */
const colonOf = (text: string): number => {
  const quoted = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?=\s*:)/.exec(text)
  const from = quoted ? quoted[0].length : 0
  const found = /:(?=\s|$)/.exec(text.slice(from))
  return found ? from + found.index : -1
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', '"': '"', '\\': '\\' }

const keyOf = (tree: Tree): string => (typeof tree === 'string' ? tree : JSON.stringify(tree))

/** A scalar, a list or a mapping on one line, from `at` on; and where it ends. */
const readFlow = (text: string, at: number, closers: string): { readonly tree: Tree; readonly end: number } => {
  const skip = (from: number): number => from + (/^\s*/.exec(text.slice(from))?.[0].length ?? 0)
  const start = skip(at)
  const first = text[start]
  if (first === '"') {
    const raw = /^"((?:[^"\\]|\\.)*)"?/.exec(text.slice(start))?.[1] ?? ''
    return { tree: raw.replaceAll(/\\(.)/g, (_, code: string) => ESCAPES[code] ?? code), end: start + raw.length + 2 }
  }
  if (first === "'") {
    const raw = /^'((?:[^']|'')*)'?/.exec(text.slice(start))?.[1] ?? ''
    return { tree: raw.replaceAll("''", "'"), end: start + raw.length + 2 }
  }
  if (first === '[' || first === '{') {
    const close = first === '[' ? ']' : '}'
    const list: Tree[] = []
    const mapping: Record<string, Tree> = {}
    let next = skip(start + 1)
    while (next < text.length && text[next] !== close) {
      const item = readFlow(text, next, `,${close}${first === '{' ? ':' : ''}`)
      next = skip(item.end)
      if (first === '[') list.push(item.tree)
      else if (text[next] === ':') {
        const value = readFlow(text, next + 1, `,${close}`)
        mapping[keyOf(item.tree)] = value.tree
        next = skip(value.end)
      } else mapping[keyOf(item.tree)] = ''
      if (text[next] === ',') next = skip(next + 1)
      else if (text[next] !== close) break
    }
    return { tree: first === '[' ? list : mapping, end: next + 1 }
  }
  let end = start
  while (end < text.length && !closers.includes(text[end] ?? '') && !(text[end] === '#' && /\s/.test(text[end - 1] ?? ''))) end++
  return { tree: text.slice(start, end).trim(), end }
}

const isNull = (tree: Tree): boolean => tree === '' || tree === 'null' || tree === '~'

/** A text in the form that keeps its lines, `|`, or joins them, `>`. */
const readBlockScalar = (raw: readonly string[], style: string): string => {
  const depth = Math.min(...raw.filter(line => line.trim() !== '').map(line => line.length - line.trimStart().length))
  const text = raw.map(line => line.slice(depth)).join(style.startsWith('>') ? ' ' : '\n')
  return style.endsWith('-') ? text.trimEnd() : `${text.trimEnd()}\n`
}

/** One document: what is at `at` and deeper than `above`. Answers where it ends, too. */
const readBlock = (lines: Line[], raw: readonly string[], at: number, above: number): { readonly tree: Tree; readonly end: number } => {
  let next = at
  const skip = (): void => {
    while (next < lines.length && lines[next]?.text === '') next++
  }
  skip()
  const depth = lines[next]?.indent ?? -1
  if (depth <= above) return { tree: '', end: next }
  const list: Tree[] = []
  const mapping: Record<string, Tree> = {}
  let isList = false
  for (skip(); next < lines.length && lines[next]?.indent === depth; skip()) {
    const line = lines[next] as Line
    if (line.text === '-' || line.text.startsWith('- ')) {
      isList = true
      const rest = line.text.slice(1)
      const inner = rest.trim()
      const shift = rest.length - rest.trimStart().length + 1
      if (inner !== '' && colonOf(inner) < 0) {
        list.push(readFlow(inner, 0, '').tree)
        next++
        continue
      }
      // What stands behind the dash is the first line of something deeper.
      lines[next] = { indent: inner === '' ? depth : depth + shift, text: inner }
      const item = readBlock(lines, raw, next, depth)
      list.push(item.tree)
      next = item.end
      continue
    }
    if (isList) break
    const colon = colonOf(line.text)
    if (colon < 0) {
      if (next === at || (list.length === 0 && Object.keys(mapping).length === 0))
        return { tree: readFlow(line.text, 0, '').tree, end: next + 1 }
      next++
      continue
    }
    const key = keyOf(readFlow(line.text.slice(0, colon), 0, '').tree)
    const rest = line.text.slice(colon + 1).trim()
    next++
    if (/^[|>][-+]?$/.test(rest)) {
      const from = next
      while (next < lines.length && (lines[next]?.text === '' || (lines[next]?.indent ?? 0) > depth)) next++
      mapping[key] = readBlockScalar(raw.slice(from, next), rest)
    } else if (rest !== '' && !rest.startsWith('#')) {
      mapping[key] = readFlow(rest, 0, '').tree
    } else {
      skip()
      // A list may stand as far left as its key.
      const isFlush = lines[next]?.indent === depth && /^-(?:\s|$)/.test(lines[next]?.text ?? '')
      const value = readBlock(lines, raw, next, isFlush ? depth - 1 : depth)
      mapping[key] = value.tree
      next = value.end
    }
  }
  return { tree: isList ? list : mapping, end: next }
}

/** The documents of a YAML text in block style, with lists and mappings on one line where somebody wrote them so. No anchors, no tags. */
export const readYaml = (text: string): readonly Tree[] =>
  text
    .split(/^---(?:[ \t].*)?$/m)
    .map(part => readBlock(linesOf(part), part.split('\n'), 0, -1).tree)
    .filter(tree => !isNull(tree))

/** What is at a path of keys; undefined where nothing is. */
export const at = (tree: Tree | undefined, ...path: readonly string[]): Tree | undefined => {
  let here = tree
  for (const key of path)
    here = typeof here === 'object' && !Array.isArray(here) ? (here as Readonly<Record<string, Tree>>)[key] : undefined
  return here
}

/** A scalar that says something. */
export const textAt = (tree: Tree | undefined, ...path: readonly string[]): string | undefined => {
  const found = at(tree, ...path)
  return typeof found === 'string' && !isNull(found) ? found : undefined
}

/** A mapping of texts; empty where there is none. */
export const textsAt = (tree: Tree | undefined, ...path: readonly string[]): Readonly<Record<string, string>> => {
  const found = at(tree, ...path)
  if (typeof found !== 'object' || Array.isArray(found)) return {}
  return Object.fromEntries(
    Object.entries(found).flatMap(([key, value]) => (typeof value === 'string' ? [[key, isNull(value) ? '' : value]] : [])),
  )
}
