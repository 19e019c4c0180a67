import { frozen, same } from '../world/json.ts'
import { isFields, textAt } from './fields.ts'
import { badRequest, Refusal } from './refusal.ts'

const unescape = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~')
const partsOf = (pointer: string): string[] => pointer.split('/').slice(1).map(unescape)

/** The real server says no more than this. */
const failed = (): Refusal => new Refusal(422, 'Invalid', 'the server rejected our request due to an error in our request', {})

const indexOf = (list: readonly unknown[], part: string, operation: string, pointer: string, end: number): number => {
  if (part === '-' && operation === 'add') return list.length
  const index = Number(part)
  if (!/^\d+$/.test(part) || index > end) throw failed()
  return index
}

const read = (document: unknown, pointer: string, operation: string): unknown => {
  let at = document
  for (const part of partsOf(pointer)) {
    if (Array.isArray(at)) at = at[indexOf(at, part, operation, pointer, at.length - 1)]
    else if (isFields(at) && Object.hasOwn(at, part)) at = at[part]
    else throw failed()
  }
  return at
}

type Change = { readonly operation: string; readonly pointer: string; readonly value?: unknown }

/** The document with one place changed; what lies beside the way to it is shared. */
const change = (document: unknown, parts: readonly string[], { operation, pointer, value }: Change): unknown => {
  const [part, ...rest] = parts
  if (part === undefined) return value
  if (Array.isArray(document)) {
    const adding = rest.length === 0 && operation === 'add'
    const index = indexOf(document, part, operation, pointer, adding ? document.length : document.length - 1)
    if (adding) return document.toSpliced(index, 0, value)
    if (rest.length === 0 && operation === 'remove') return document.toSpliced(index, 1)
    return document.with(index, change(document[index], rest, { operation, pointer, value }))
  }
  if (!isFields(document)) throw failed()
  if (!Object.hasOwn(document, part) && (rest.length > 0 || operation === 'remove')) throw failed()
  if (rest.length === 0 && operation === 'remove') {
    const { [part]: _gone, ...kept } = document
    return kept
  }
  return { ...document, [part]: change(document[part], rest, { operation, pointer, value }) }
}

/** RFC 6902. A test that fails, or a place that is not there, is a 422 as the real server gives it. */
export const jsonPatch = (document: unknown, patch: unknown): unknown => {
  if (!Array.isArray(patch)) throw badRequest('error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch')
  let result = document
  for (const step of patch as readonly unknown[]) {
    const [operation, pointer, from] = [textAt(step, 'op'), textAt(step, 'path'), textAt(step, 'from')]
    const value = isFields(step) ? frozen(step.value ?? null) : null
    const parts = partsOf(pointer)
    switch (operation) {
      case 'add':
      case 'replace':
      case 'remove':
        result = change(result, parts, { operation, pointer, value })
        break
      case 'copy':
        result = change(result, parts, { operation: 'add', pointer, value: read(result, from, operation) })
        break
      case 'move': {
        const moved = read(result, from, operation)
        result = change(change(result, partsOf(from), { operation: 'remove', pointer: from }), parts, {
          operation: 'add',
          pointer,
          value: moved,
        })
        break
      }
      case 'test': {
        if (!same(read(result, pointer, operation), value)) throw failed()
        break
      }
      default:
        throw badRequest(`Unexpected kind: ${operation}`)
    }
  }
  return result
}
