import { textWidth } from './text-width.ts'

/** Columns as kubectl aligns them: three blanks between, none at the end of a line. */
export const alignedLines = (header: readonly string[], rows: readonly (readonly string[])[]): string[] => {
  const all = [header, ...rows]
  const widths = header.map((_, column) => Math.max(...all.map(row => textWidth(row[column] ?? ''))))
  return all.map(row =>
    row
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - textWidth(cell))))
      .join('   ')
      .trimEnd(),
  )
}

/** At most `width` columns of a terminal, with an ellipsis where something was cut off; escape sequences take no room. */
export const clipped = (line: string, width: number): string => {
  if (textWidth(line) <= width) return line
  let room = width - 1
  let kept = ''
  let cut = false
  for (const part of line.matchAll(/\x1b\[[0-9;]*m|./gsu)) {
    const piece = part[0]
    if (piece.startsWith('\x1b[')) {
      kept += piece
    } else if (!cut && textWidth(piece) <= room) {
      room -= textWidth(piece)
      kept += piece
    } else if (!cut) {
      cut = true
      kept += '…'
    }
  }
  return kept
}

/** As many lines as it takes, broken between words; those after the first begin with two blanks. */
export const wrapped = (text: string, width: number): string[] => {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && textWidth(line) + 1 + textWidth(word) > width) {
      lines.push(line)
      line = `  ${word}`
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** Ages as kubectl writes them: the more there is, the coarser. */
export const age = (ms: number): string => {
  const s = Math.max(0, Math.floor(ms / 1000))
  if (s < 120) return `${s}s`
  const m = Math.floor(s / 60)
  if (m < 10) return s % 60 === 0 ? `${m}m` : `${m}m${s % 60}s`
  if (m < 180) return `${m}m`
  const h = Math.floor(m / 60)
  if (h < 8) return m % 60 === 0 ? `${h}h` : `${h}h${m % 60}m`
  if (h < 48) return `${h}h`
  const d = Math.floor(h / 24)
  if (d < 8) return h % 24 === 0 ? `${d}d` : `${d}d${h % 24}h`
  if (d < 365 * 2) return `${d}d`
  const y = Math.floor(d / 365)
  if (y < 8) return d % 365 === 0 ? `${y}y` : `${y}y${d % 365}d`
  return `${y}y`
}
