import { cpus, totalmem } from 'node:os'
import { type Row, table } from './format.ts'

/** What one part of the benchmark found. */
export type Found = {
  readonly rows: readonly Row[]
  /** Markdown with a heading of its own. */
  readonly details?: string
}

/** The same with when it was, and how busy the computer was in the minute before: above 0.5 or so, somebody else was at work. */
export type Measured = Found & { readonly at: string; readonly loadBefore: number }

export const asText = (rows: readonly Row[]): string => {
  const width = Math.max(...rows.map(({ what }) => what.length))
  return rows
    .map(({ what, value, aim, isMet }) => `${what.padEnd(width)}  ${value.padStart(9)}${aim ? `  ${aim}${isMet ? '' : '  MISSED'}` : ''}`)
    .join('\n')
}

/** The page, of the newest measurement of each part. */
export const asMarkdown = (parts: readonly Measured[]): string => `# Benchmarks

Made by \`npm run bench\`; \`npm run bench -- --only PART\` makes a part of it anew. ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB of memory, Linux ${process.arch}, Node ${process.version}.
Ratios are of one run; seconds and megabytes are of this machine. The last column is the day, and the load average before the part began: above 0.5 or so, somebody
else was at work.

${table(
  ['what', 'measured', 'aim', '', 'when'],
  parts.flatMap(({ rows, at, loadBefore }) =>
    rows.map(({ what, value, aim = '', isMet }) => [
      what,
      value,
      aim,
      isMet === undefined ? '' : isMet ? 'met' : '**missed**',
      `${at}, ${loadBefore.toFixed(1)}`,
    ]),
  ),
)}
${parts.flatMap(({ details }) => (details === undefined ? [] : [`\n${details}\n`])).join('')}`
