import type { IDQuery, LabelQuery, LabelTerm, Resource } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { LabelTerm_Operation } from '../../../proto/gen/cosi/resource/state_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'

const { EXISTS, EQUAL, NOT_EXISTS, IN, LT, LTE, LT_NUMERIC, LTE_NUMERIC } = LabelTerm_Operation

const OPERATIONS: readonly number[] = Object.values(LabelTerm_Operation)

const holds = (term: LabelTerm, labels: Readonly<Record<string, string>>): boolean => {
  const own = labels[term.key]
  if (term.op === NOT_EXISTS) return own === undefined
  if (own === undefined) return false
  const [first = ''] = term.value
  switch (term.op) {
    case EXISTS:
      return true
    case EQUAL:
      return own === first
    case IN:
      return term.value.includes(own)
    case LT:
      return own < first
    case LTE:
      return own <= first
    case LT_NUMERIC:
      return Number(own) < Number(first)
    case LTE_NUMERIC:
      return Number(own) <= Number(first)
    default:
      return false
  }
}

/** Which resources a List or Watch asks for: the terms of one label query are all to hold, of several queries any. */
export const selection = (labels: readonly LabelQuery[], id: IDQuery | undefined): Answer<(resource: Resource) => boolean> => {
  if (labels.some(query => query.terms.some(term => !OPERATIONS.includes(term.op))))
    return refuse('Unimplemented', 'unsupported label query operator')
  let pattern: RegExp | undefined
  try {
    if (id && id.regexp !== '') pattern = new RegExp(id.regexp)
  } catch {
    return refuse('InvalidArgument', `failed to compile regexp: error parsing regexp: \`${id?.regexp ?? ''}\``)
  }
  return answer(({ metadata }) => {
    if (pattern && !pattern.test(metadata?.id ?? '')) return false
    return labels.length === 0 || labels.some(query => query.terms.every(term => holds(term, metadata?.labels ?? {}) !== term.invert))
  })
}
