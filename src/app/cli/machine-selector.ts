import type { LabelSelector, OperationSpec } from '../../api/talos-operation.ts'
import { machinesCalled } from './machine-called.ts'
import type { Session } from './session.ts'
import { Stop } from './stop.ts'

type MachineSelector = NonNullable<OperationSpec['machineSelector']>

/**
 * What `--machines` selects: names of machines or their hosts, and labels as kubectl writes them (`rack=1`, `rack!=1`), between commas. Of the names it has
 * to be one, and of the labels all have to hold.
 */
export const machineSelector = async (session: Session, cluster: string, text: string): Promise<MachineSelector> => {
  const parts = text.split(',').map(part => part.trim())
  const empty = parts.some(part => part === '' || /^!?=/.test(part))
  if (empty)
    throw new Stop('usage', `--machines ${JSON.stringify(text)}: must be names or labels between commas, for example wk-1,wk-2 or rack=1`)
  const labels = parts.filter(part => part.includes('='))
  const named = parts.filter(part => !part.includes('='))
  const names = named.length > 0 ? await machinesCalled(session, cluster, named) : undefined
  return { ...selectorOf(labels), ...(names ? { names } : {}) }
}

const selectorOf = (labels: readonly string[]): LabelSelector => {
  const equal = labels.filter(label => !label.includes('!=')).map(label => label.split(/==?/))
  const unequal = labels.filter(label => label.includes('!=')).map(label => label.split('!='))
  return {
    ...(equal.length > 0 ? { matchLabels: Object.fromEntries(equal.map(([key = '', value = '']) => [key, value])) } : {}),
    ...(unequal.length > 0
      ? { matchExpressions: unequal.map(([key = '', value = '']) => ({ key, operator: 'NotIn' as const, values: [value] })) }
      : {}),
  }
}
