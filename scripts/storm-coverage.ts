// Which branches of core, kinds and engine the storms reached: V8 tells which blocks ran, the syntax tree which blocks there are.
import { readFileSync, readdirSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join, relative } from 'node:path'
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

const sources = (): string[] =>
  ROOMS.flatMap(room =>
    readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.includes('test-view') && !name.endsWith('samples.ts'))
      .map(name => join(room, name)),
  )

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
  const all = sources().flatMap(branchesOf)
  const missed = all.filter(b => !covered.has(keyOf(b)))
  const byFile = Map.groupBy(missed, b => b.file)
  const share = (count: number, of: number): string => `${((100 * count) / Math.max(1, of)).toFixed(1)} %`
  return [
    ...[...byFile].map(([file, branches]) => `${file}: ${[...new Set(branches.map(b => b.line))].join(', ')}`),
    ...ROOMS.map(room => {
      const own = all.filter(b => b.file.startsWith(room))
      return `${room}: ${own.filter(b => covered.has(keyOf(b))).length} of ${own.length} branches, ${share(own.filter(b => covered.has(keyOf(b))).length, own.length)}`
    }),
    `all: ${all.length - missed.length} of ${all.length} branches, ${share(all.length - missed.length, all.length)}`,
  ].join('\n')
}
