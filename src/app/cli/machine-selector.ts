import { LABEL } from '../../api/names.ts'
import type { Role } from '../../api/talos-machine.ts'
import type { LabelSelector, OperationSpec } from '../../api/talos-operation.ts'
import { isAnyCalled, machinesCalled } from './machine-called.ts'
import type { Session } from './session.ts'
import { Stop } from './stop.ts'

type MachineSelector = NonNullable<OperationSpec['machineSelector']>

/**
 * What `--machines` selects: names of machines or their hosts, or a role, and labels as kubectl writes them (`rack=1`, `rack!=1`), between commas. Of the
 * names it has to be one, and of the labels all have to hold.
 */
export const machineSelector = async (session: Session, cluster: string, text: string): Promise<MachineSelector> => {
  const parts = text.split(',').map(part => part.trim())
  const empty = parts.some(part => part === '' || /^!?=/.test(part))
  if (empty)
    throw new Stop('usage', `--machines ${JSON.stringify(text)}: must be names or labels between commas, for example wk-1,wk-2 or rack=1`)
  const labels = parts.filter(part => part.includes('='))
  const named = parts.filter(part => !part.includes('='))
  const role = await roleIn(session, cluster, named)
  if (role !== undefined) return selectorOf([...labels, `${LABEL.role}=${role}`])
  const names = named.length > 0 ? await machinesCalled(session, cluster, named) : undefined
  return { ...selectorOf(labels), ...(names ? { names } : {}) }
}

const ROLES: readonly string[] = ['controlplane', 'worker'] satisfies readonly Role[]

/** The role that is meant where no machine is called so. */
const roleIn = async (session: Session, cluster: string, named: readonly string[]): Promise<string | undefined> => {
  const role = named.find(name => ROLES.includes(name))
  if (role === undefined || (await isAnyCalled(session, cluster, role))) return undefined
  if (named.length > 1)
    throw new Stop(
      'usage',
      `--machines: ${role} stands for all machines of that role, and goes with labels only, not with ${named.filter(name => name !== role).join(', ')}`,
    )
  return role
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
