import { stringify } from 'yaml'

const STEP = 4

/** Where what lies below a column begins. Inside a list the columns are odd ones, and Go goes on at the next multiple. */
const below = (column: number): number => STEP * Math.floor((column + STEP) / STEP)

const scalar = (value: unknown, column: number): string => {
  if (typeof value === 'string' && /[^\n]\n$/.test(value) && !/^\s/.test(value))
    return `|\n${value.replaceAll(/^(?=.)/gm, ' '.repeat(below(column)))}`.trimEnd()
  // Unquoted it would be a time.
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return JSON.stringify(value)
  return stringify(value, { lineWidth: 0 }).trimEnd()
}

const isBlock = (value: unknown): value is object => typeof value === 'object' && value !== null && Object.keys(value).length > 0

const block = (value: object, column: number): string => {
  const pad = ' '.repeat(column)
  if (Array.isArray(value))
    return value.map(item => `${pad}- ${isBlock(item) ? block(item, column + 2).trimStart() : `${scalar(item, column)}\n`}`).join('')
  return Object.entries(value)
    .map(([key, inner]) => `${pad}${scalar(key, 0)}:${isBlock(inner) ? `\n${block(inner, below(column))}` : ` ${scalar(inner, column)}\n`}`)
    .join('')
}

/** YAML as Talos writes it: what is said in Go's order, in its columns. */
export const yamlOf = (spec: unknown): string => (isBlock(spec) ? block(spec, 0) : `${scalar(spec, 0)}\n`)
