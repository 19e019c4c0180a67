import { type Finding, listed, type Looked, type Severity, unseen } from '../../core/looks/look.ts'
import type { Colors } from './terminal.ts'
import { type Given, typed } from './typed.ts'

/** Findings of those sorts as plain lines, each with what to do about it below. */
export const findingLines = (looked: readonly Looked[], severities: readonly Severity[], calledAs: string, given: Given): string[] =>
  looked.flatMap(({ look, findings }) =>
    findings
      .filter(({ severity }) => severities.includes(severity))
      .flatMap(finding => [`${look}: ${finding.message}`, ...cureLines(finding, calledAs, given).map(line => `  ${line}`)]),
  )

/** What to do, and the line to type. */
const cureLines = ({ remedy, command }: Finding, calledAs: string, given: Given): string[] => [
  ...(remedy === undefined ? [] : [remedy]),
  ...(command === undefined ? [] : [`$ ${typed(command, calledAs, given)}`]),
]

/** Told apart without colour, too. */
const MARKS: Readonly<Record<Severity, string>> = { ok: '✓', warning: '!', error: '✗', unknown: '?' }

const paint = (severity: Severity, { green, yellow, red, dim }: Colors): ((text: string) => string) =>
  ({ ok: green, warning: yellow, error: red, unknown: dim })[severity]

/** A report: every look with its findings, the names in a column. */
export const reportLines = (looked: readonly Looked[], colors: Colors, calledAs: string, given: Given): string[] => {
  const told = hiddenTogether(looked).filter(({ findings }) => findings.length > 0)
  const width = Math.max(0, ...told.map(({ look }) => look.length))
  return told.flatMap(({ look, findings }) =>
    findings.flatMap((finding, index) => {
      const { severity, message } = finding
      const mark = paint(severity, colors)(MARKS[severity])
      return [
        `  ${mark} ${(index === 0 ? look : '').padEnd(width)}  ${message}`,
        ...cureLines(finding, calledAs, given).map(line => `    ${' '.repeat(width)}  ${line}`),
      ]
    }),
  )
}

/** What one has no right to see, in one line at the end: the API server says the same of each at length. */
const hiddenTogether = (looked: readonly Looked[]): readonly Looked[] => {
  const hidden = looked.flatMap(({ look, findings }) =>
    findings.flatMap(finding => (finding.lacks === undefined ? [] : [{ look, ...finding }])),
  )
  if (hidden.length < 2) return looked
  const each = (of: 'look' | 'lacks' | 'remedy'): readonly string[] => [...new Set(hidden.flatMap(finding => finding[of] ?? []))]
  const rights = each('lacks')
  const message = `${listed(each('look'))}: that takes the ${rights.length === 1 ? 'right' : 'rights'} to ${listed(rights)}.`
  return [
    ...looked.map(({ look, findings }) => ({ look, findings: findings.filter(({ lacks }) => lacks === undefined) })),
    { look: 'not for you', findings: [unseen(message, { remedy: each('remedy').join(' ') })] },
  ]
}
