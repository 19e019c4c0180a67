// A picture of a terminal, as SVG, from what tmux captured of it with its colours:
//   tmux capture-pane -e -p -t demo | npx node scripts/terminal-picture.ts --title 'npm run demo' --from '$ ichor upgrade' >docs/images/demo.svg
// --from leaves out the lines above the first one that begins with these words. Nothing else is left out or added.
import { text as textOf } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { pathToFileURL } from 'node:url'
import { textWidth } from '../src/app/cli/text-width.ts'

interface Style {
  color: string
  bold: boolean
  dim: boolean
}
interface Run extends Style {
  text: string
  column: number
}

const cell = { width: 8.4, height: 18, fontSize: 14 }
const margin = { side: 16, top: 44, bottom: 14 }
const ground = '#16181d'
const plain = '#d5d9e0'
const colors = ['#5c6370', '#e06c75', '#98c379', '#e5c07b', '#61afef', '#c678dd', '#56b6c2', '#d5d9e0']

/** The picture of `captured`: lines with SGR sequences and no other control. */
export function terminalPicture(captured: string, options: { title?: string; from?: string } = {}): string {
  const lines = visibleLines(captured, options.from)
  const columns = Math.max(...lines.map(runs => textWidth(wordsOf(runs).trimEnd())), 60)
  const width = Math.ceil(columns * cell.width + 2 * margin.side)
  const height = margin.top + lines.length * cell.height + margin.bottom
  const rows = lines.flatMap((runs, row) => runs.map(run => textElement(run, margin.top + (row + 0.75) * cell.height)))
  const buttons = colors.slice(1, 4).map((fill, i) => `<circle cx="${20 + i * 18}" cy="18" r="5.5" fill="${fill}"/>`)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(options.title ?? 'A terminal')}</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="${ground}"/>`,
    ...buttons,
    `<text x="${width / 2}" y="22" fill="#8b93a1" font-family="sans-serif" font-size="12" text-anchor="middle">${escaped(options.title ?? '')}</text>`,
    `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="${cell.fontSize}" xml:space="preserve">`,
    ...rows,
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

/** Without the lines above `from`, and without empty ones at the end. */
function visibleLines(captured: string, from: string | undefined): Run[][] {
  let style: Style = unstyled
  const lines = captured.split('\n').map(line => {
    const read = runsOf(line, style)
    style = read.style
    return read.runs
  })
  const first = from === undefined ? 0 : lines.findIndex(runs => wordsOf(runs).startsWith(from))
  if (first < 0) throw new Error(`no line begins with ${JSON.stringify(from)}`)
  const last = lines.findLastIndex(runs => wordsOf(runs).trim() !== '')
  if (last < first) throw new Error('there is nothing to see')
  return lines.slice(first, last + 1)
}

const unstyled: Style = { color: plain, bold: false, dim: false }

function runsOf(line: string, before: Style): { runs: Run[]; style: Style } {
  const runs: Run[] = []
  let style = before
  let column = 0
  // oxlint-disable-next-line no-control-regex
  for (const [, codes, text = ''] of line.matchAll(/(?:\x1b\[([\d;]*)m)?([^\x1b]*)/g)) {
    if (codes !== undefined) style = styled(style, codes)
    if (text === '') continue
    runs.push({ ...style, text, column })
    column += textWidth(text)
  }
  return { runs, style }
}

function styled(style: Style, codes: string): Style {
  return codes.split(';').reduce((now, code): Style => {
    const n = Number(code)
    if (n === 0) return unstyled
    if (n === 1) return { ...now, bold: true }
    if (n === 2) return { ...now, dim: true }
    if (n === 22) return { ...now, bold: false, dim: false }
    if (n === 39) return { ...now, color: plain }
    const color = n >= 90 ? colors[n - 90] : colors[n - 30]
    return color === undefined ? now : { ...now, color }
  }, style)
}

const wordsOf = (runs: readonly Run[]): string => runs.map(({ text }) => text).join('')

// Each run is pinned to its columns, so that another font of the reader moves nothing.
function textElement({ text, column, color, bold, dim }: Run, y: number): string {
  if (text.trim() === '') return ''
  const [x, length] = [margin.side + column * cell.width, textWidth(text) * cell.width]
  const look = `${bold ? ' font-weight="bold"' : ''}${dim ? ' opacity="0.6"' : ''}`
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" textLength="${length.toFixed(1)}" fill="${color}"${look}>${escaped(text)}</text>`
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({ options: { title: { type: 'string' }, from: { type: 'string' } } })
  process.stdout.write(terminalPicture(await textOf(process.stdin), values))
}
