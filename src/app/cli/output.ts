import { Option } from 'commander'
import type { Resource } from '../../adapters/kube/resource.ts'
import { groupVersion } from '../../adapters/kube/resource.ts'
import type { KubeObject, Table } from './api.ts'
import { holdOf, holdupLines } from './holdups.ts'
import { MACHINE, qualifiedName } from './resource-types.ts'
import type { Outside, Session } from './session.ts'
import { must, notThere, wordFor } from './session.ts'
import { age, alignedLines } from './table.ts'
import type { Colors, Terminal } from './terminal.ts'

export const OUTPUTS = ['table', 'wide', 'json', 'yaml', 'name'] as const
export type Output = (typeof OUTPUTS)[number]

export const outputOption = (outputs: readonly Output[] = OUTPUTS): Option =>
  new Option('-o, --output <format>', 'how to print the answer').choices([...outputs]).default(outputs[0])

/** A list as `kubectl get` prints it. */
export const printList = async (session: Session, type: Resource, options: { output: Output; allNamespaces?: boolean }): Promise<void> => {
  const { api, terminal, outside } = session
  const namespace = options.allNamespaces ? undefined : session.namespace
  const tried = `list ${wordFor(type)}s`
  if (options.output === 'table' || options.output === 'wide') {
    const table = must(session, await api.table(type, namespace), tried)
    // On standard error, as kubectl does it: a script sees an empty list.
    if (table.rows.length === 0)
      return terminal.err(`There are no ${wordFor(type)}s${namespace === undefined ? '' : ` in namespace ${namespace}`}.`)
    const wide = options.output === 'wide'
    return printTable(terminal, wide && type.plural === MACHINE.plural ? withHolds(table) : table, {
      wide,
      withNamespace: namespace === undefined,
    })
  }
  const items = must(session, await api.list(type, namespace), tried)
  if (options.output === 'name') {
    for (const item of items) terminal.out(qualifiedName(type, item.metadata.name))
    return
  }
  await printValue(outside, options.output, {
    apiVersion: 'v1',
    kind: 'List',
    metadata: {},
    items: items.map(item => documentOf(type, item)),
  })
}

/** One object: as `-o` says, or as a row. */
export const printObject = async (session: Session, type: Resource, object: KubeObject, output: Output): Promise<void> => {
  const { api, terminal, outside, namespace } = session
  const { name } = object.metadata
  if (output === 'name') return terminal.out(qualifiedName(type, name))
  if (output === 'json' || output === 'yaml') return printValue(outside, output, documentOf(type, object))
  const table = await api.table(type, namespace, name)
  if (!table.ok && table.fault.kind === 'notFound') throw await notThere(session, type, name)
  printTable(terminal, must(session, table, `read ${wordFor(type)} ${name}`), { wide: output === 'wide', withNamespace: false })
  const lines = holdupLines(object)
  for (const line of lines.length > 0 ? ['', ...lines] : []) terminal.out(line)
}

export const printValue = async ({ terminal, yaml }: Outside, output: 'json' | 'yaml', value: unknown): Promise<void> =>
  terminal.out(output === 'json' ? JSON.stringify(value, undefined, 2) : (await yaml(value)).trimEnd())

/** Without what only the server's bookkeeping needs, and with the type that lists leave out. */
export const documentOf = (type: Resource, { metadata, ...rest }: KubeObject): object => {
  const { managedFields: _, ...kept } = metadata
  return { ...rest, apiVersion: groupVersion(type), kind: type.kind, metadata: kept }
}

// An annotation is no print column that the server could make.
const withHolds = ({ columnDefinitions, rows }: Table): Table => ({
  columnDefinitions: [...columnDefinitions, { name: 'Hold', type: 'string' }],
  rows: rows.map(({ cells, object }) => ({ cells: [...cells, holdOf(object.metadata)], object })),
})

const printTable = (terminal: Terminal, table: Table, how: { wide: boolean; withNamespace: boolean }): void => {
  const columns = table.columnDefinitions.map((column, index) => ({ ...column, index })).filter(column => how.wide || !column.priority)
  const header = columns.map(column => column.name.toUpperCase())
  const rows = table.rows.map(row => columns.map(column => cellText(row.cells[column.index], column.type, terminal.now())))
  const lines = how.withNamespace
    ? alignedLines(
        ['NAMESPACE', ...header],
        rows.map((row, index) => [table.rows[index]?.object.metadata.namespace ?? '', ...row]),
      )
    : alignedLines(header, rows)
  for (const [index, line] of lines.entries()) terminal.out(index === 0 ? line : paintPhases(line, terminal.colors))
}

const cellText = (cell: unknown, type: string, now: number): string => {
  if (cell === undefined || cell === null) return ''
  const text = typeof cell === 'string' ? cell : JSON.stringify(cell)
  const at = type === 'date' ? Date.parse(text) : Number.NaN
  return (Number.isNaN(at) ? text : age(now - at)).replaceAll('\n', ' ')
}

// After the lines are aligned, so that escape sequences do not count. Only whole words between columns.
const paintPhases = (line: string, colors: Colors): string =>
  line.replace(/(?<= {3})(Running|Paused|Completed|Cancelled)(?= {3}|$)/, phase => phaseColor(phase, colors)(phase))

export const phaseColor = (phase: string, colors: Colors): ((text: string) => string) => {
  switch (phase) {
    case 'Running':
      return colors.cyan
    case 'Paused':
      return colors.yellow
    case 'Failed':
      return colors.red
    case 'Completed':
      return colors.green
    default:
      return colors.dim
  }
}
