import { clipped } from './table.ts'
import type { Terminal } from './terminal.ts'

/** A block of lines at the end of the terminal that is drawn over itself. */
export type LiveBlock = {
  readonly draw: (lines: readonly string[]) => void
  /** Draws the last state whole, also what did not fit before, and leaves it. */
  readonly leave: (lines: readonly string[]) => void
}

export const liveBlock = (terminal: Terminal): LiveBlock => {
  let height = 0
  const back = () => (height > 0 ? `\x1b[${height}A\r\x1b[0J` : '')
  const put = (lines: readonly string[]) => {
    terminal.raw(`${back()}${lines.map(line => `${line}\n`).join('')}`)
    height = lines.length
  }
  return {
    draw: lines => {
      const [width, most] = [terminal.width(), Math.max(3, terminal.height() - 1)]
      // A wrapped line would take two rows, and then the way back would be too short.
      const fitting = lines.length > most ? [...lines.slice(0, most - 1), `… ${lines.length - most + 1} more lines`] : lines
      put(fitting.map(line => clipped(line, width)))
    },
    leave: lines => {
      terminal.raw(`${back()}${lines.map(line => `${line}\n`).join('')}`)
      height = 0
    },
  }
}
