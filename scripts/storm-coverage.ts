// Which branches of core, kinds and engine the storms reached: V8 tells which blocks ran, the syntax tree which blocks there are. Counted for itself is
// what no controller loads: it is the command line that tells people of operations and looks for what is wrong with a cluster.
import { readFileSync, readdirSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'

const root = join(import.meta.dirname, '..')
const ROOMS = ['src/core', 'src/kinds', 'src/engine']

interface Branch {
  file: string
  /** Offset of what runs only on this way. */
  at: number
  line: number
}

/** What decides and acts, and what tells beforehand what it would do. */
const BEGINNINGS = ['src/engine/controller.ts', 'src/engine/plan.ts', 'src/kinds/registry.ts']

const sources = (): string[] =>
  ROOMS.flatMap(room =>
    readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.includes('test-view') && !name.endsWith('samples.ts'))
      .map(name => join(room, name)),
  )

/** The files that these load, themselves among them. An import of types alone loads nothing. */
const loadedBy = (files: readonly string[]): ReadonlySet<string> => {
  const loaded = new Set(files)
  for (const file of loaded) {
    const { module } = parseSync(file, readFileSync(join(root, file), 'utf8'))
    const named = [
      ...module.staticImports
        .filter(one => one.entries.length === 0 || one.entries.some(e => !e.isType))
        .map(one => one.moduleRequest.value),
      ...module.staticExports.flatMap(one => one.entries.flatMap(e => (e.isType || !e.moduleRequest ? [] : [e.moduleRequest.value]))),
    ]
    for (const name of named) if (name.startsWith('.') && name.endsWith('.ts')) loaded.add(join(dirname(file), name))
  }
  return loaded
}

type Node = { readonly type: string; readonly start: number } & Record<string, unknown>
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

/** The arms of every `if`, `?:`, `&&`, `||`, `??`, `case`, and the bodies of functions. */
const arms = (node: Node): Node[] => {
  const own = ((): unknown[] => {
    switch (node.type) {
      case 'IfStatement':
      case 'ConditionalExpression':
        return [node['consequent'], node['alternate']]
      case 'LogicalExpression':
        return [node['right']]
      case 'SwitchCase':
        return (node['consequent'] as unknown[]).slice(0, 1)
      case 'ArrowFunctionExpression':
      case 'FunctionExpression':
      case 'FunctionDeclaration':
        return [node['body']]
      default:
        return []
    }
  })().filter(isNode)
  const inner = Object.values(node)
    .flatMap(value => (Array.isArray(value) ? value : [value]))
    .filter(isNode)
  return [...own, ...inner.flatMap(arms)]
}

const branchesOf = (file: string): Branch[] => {
  const text = readFileSync(join(root, file), 'utf8')
  const { program } = parseSync(file, text)
  return arms(program as unknown as Node).map(({ start }) => ({ file, at: start, line: text.slice(0, start).split('\n').length }))
}

const keyOf = ({ file, at }: Branch): string => `${file}:${at}`

/** Begins to count in this thread; the answer ends it and tells what was reached. */
export async function startCoverage(): Promise<() => Promise<string[]>> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const wanted = new Map(sources().map(file => [file, branchesOf(file)]))
    return result.flatMap(({ url, functions }) => {
      const branches = url.startsWith('file:') ? wanted.get(relative(root, fileURLToPath(url))) : undefined
      const ranges = functions.flatMap(f => f.ranges).toSorted((a, b) => b.endOffset - b.startOffset - (a.endOffset - a.startOffset))
      // The innermost range that contains it decides.
      return (branches ?? [])
        .filter(({ at }) => (ranges.filter(r => r.startOffset <= at && at < r.endOffset).at(-1)?.count ?? 0) > 0)
        .map(keyOf)
    })
  }
}

/** The share of branches that were reached, and those that were not, by file and line. */
export function coverageReport(covered: ReadonlySet<string>): string {
  const loaded = loadedBy(BEGINNINGS)
  const [own, others] = [sources().filter(file => loaded.has(file)), sources().filter(file => !loaded.has(file))]
  const share = (name: string, files: readonly string[]): string => {
    const all = files.flatMap(branchesOf)
    const reached = all.filter(b => covered.has(keyOf(b))).length
    return `${name}: ${reached} of ${all.length} branches, ${((100 * reached) / Math.max(1, all.length)).toFixed(1)} %`
  }
  const missed = Map.groupBy(
    [...own, ...others].flatMap(branchesOf).filter(b => !covered.has(keyOf(b))),
    b => b.file,
  )
  return [
    ...[...missed].map(([file, branches]) => `${file}: ${[...new Set(branches.map(b => b.line))].join(', ')}`),
    share('beside, for the command line alone', others),
    ...ROOMS.map(room =>
      share(
        room,
        own.filter(file => file.startsWith(room)),
      ),
    ),
    share('all', own),
  ].join('\n')
}
