import { isFields } from './fields.ts'

/** The steps of a print column's path: a field, an index, or the items whose field has a value. */
const STEP = /\.((?:\\.|[^.[\]])+)|\[\?\(@\.([\w.-]+)\s*==\s*(?:"([^"]*)"|'([^']*)')\)\]|\[(\d+|\*)\]|\['([^']*)'\]/gy

/** The first value at a JSONPath as additionalPrinterColumns use it; undefined where there is none. */
export const valueAtPath = (object: unknown, path: string): unknown => {
  let found: unknown[] = [object]
  STEP.lastIndex = 0
  for (const match of path.matchAll(STEP)) {
    const [, field, key, double, single, index, quoted] = match
    const name = (field ?? quoted)?.replaceAll(/\\(.)/g, '$1')
    found = found.flatMap(value => {
      if (name !== undefined) return isFields(value) && value[name] !== undefined ? [value[name]] : []
      if (!Array.isArray(value)) return []
      const list = value as readonly unknown[]
      if (index !== undefined) return index === '*' ? list : list.slice(Number(index), Number(index) + 1)
      return list.filter(item => isFields(item) && item[key ?? ''] === (double ?? single))
    })
  }
  return found[0]
}
