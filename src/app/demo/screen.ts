import type { Terminal } from '../cli/terminal.ts'

/** The demo's terminal: what the CLI shows, and the demo's own words between. */
export type Screen = {
  /** For the CLI: Ctrl-C is the demo's own, and nobody is asked. */
  readonly terminal: Terminal
  /** A line of the demo; where the CLI draws a live picture, above it. */
  readonly say: (line?: string) => void
  /** The live picture, if there was one, is a text like any other from here on. */
  readonly settle: () => void
  /** Nothing is shown any more. */
  readonly close: () => void
}

// What the live block writes before it draws itself anew.
const BACK = /^\x1b\[\d+A\r\x1b\[0J/

export const createScreen = (own: Terminal): Screen => {
  let picture = ''
  let isClosed = false
  const unlessClosed =
    <A extends readonly unknown[]>(write: (...args: A) => void) =>
    (...args: A): void => {
      if (!isClosed) write(...args)
    }
  const up = (): string => {
    const height = picture.split('\n').length - 1
    return height > 0 ? `\x1b[${height}A\r\x1b[0J` : ''
  }
  return {
    terminal: {
      ...own,
      canAsk: false,
      onInterrupt: () => () => {},
      out: unlessClosed(own.out),
      err: unlessClosed(own.err),
      raw: unlessClosed(text => {
        picture = text.replace(BACK, '')
        own.raw(text)
      }),
    },
    say: unlessClosed((line = '') => {
      if (picture === '') own.out(line)
      else own.raw(`${up()}${line}\n${picture}`)
    }),
    settle: () => {
      picture = ''
    },
    close: () => {
      isClosed = true
    },
  }
}
