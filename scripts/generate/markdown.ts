// The few pieces of Markdown that the pages are made of.

/** The first line of a page, so that nobody mends the copy instead of the source. */
export const generatedFrom = (source: string): string => `<!-- Generated from ${source} by npm run generate; do not edit. -->`

export const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``)

/** Text in a cell of a table: a bar or a line break would end the cell. */
export const cell = (text: string): string =>
  text
    .replaceAll('|', '\\|')
    .replaceAll(/\s*\n\s*/g, ' ')
    .trim()

export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')

const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`

export const list = (items: readonly string[]): string => items.map(item => `- ${item}`).join('\n')

/** A page of blocks with an empty line between them. Blocks that are undefined are left out. */
export const page = (...blocks: (string | undefined)[]): string =>
  `${blocks.filter(block => block !== undefined && block !== '').join('\n\n')}\n`

/** A public report, as `owner/repo#1` or `owner/repo@commit` or by its host, linked. */
export const reportLink = (url: string): string => `[${reportName(url)}](${url})`

export const reportName = (url: string): string => {
  const [, repository, sort, id] = /^https:\/\/github\.com\/([^/]+\/[^/]+)\/(issues|pull|commit)\/(\w+)$/.exec(url) ?? []
  if (repository === undefined || id === undefined) return new URL(url).host
  return `${repository}${sort === 'commit' ? '@' : '#'}${id}`
}
