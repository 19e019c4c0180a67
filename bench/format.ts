/** One line of the results. `isMet` only where there is an aim. */
export type Row = { readonly what: string; readonly value: string; readonly aim?: string; readonly isMet?: boolean }

export const seconds = (ms: number): string => (ms >= 100_000 ? `${Math.round(ms / 1000)} s` : `${(ms / 1000).toFixed(1)} s`)
export const megabytes = (kb: number): string => `${Math.round(kb / 1024)} MiB`
export const kilobytes = (kb: number): string => `${kb.toFixed(1)} KiB`
/** Of one core. */
export const percent = (load: number): string => `${(100 * load).toFixed(1)} %`
export const size = ({ controlPlanes, workers }: { readonly controlPlanes: number; readonly workers: number }): string =>
  `${controlPlanes}+${workers}`

export const ratioAtMost = (ratio: number, aim: number): Pick<Row, 'value' | 'aim' | 'isMet'> => ({
  value: ratio.toFixed(3),
  aim: `at most ${aim.toFixed(2)}`,
  isMet: ratio <= aim,
})
export const ratioAtLeast = (ratio: number, aim: number): Pick<Row, 'value' | 'aim' | 'isMet'> => ({
  value: ratio.toFixed(3),
  aim: `at least ${aim.toFixed(2)}`,
  isMet: ratio >= aim,
})
export const secondsAtMost = (ms: number, aim: number): Pick<Row, 'value' | 'aim' | 'isMet'> => ({
  value: seconds(ms),
  aim: `at most ${aim} s`,
  isMet: ms <= aim * 1000,
})

export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')

export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
