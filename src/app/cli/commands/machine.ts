import type { Command } from 'commander'
import { ANNOTATION } from '../../../api/names.ts'
import { holdOf } from '../holdups.ts'
import { machineCalled } from '../machine-called.ts'
import type { Output } from '../output.ts'
import { outputOption, printList, printObject } from '../output.ts'
import { MACHINE, qualifiedName } from '../resource-types.ts'
import type { Session } from '../session.ts'
import { must } from '../session.ts'
import type { Shell } from './command.ts'
import { group, withExamples, works } from './command.ts'

export const machineCommand = (shell: Shell): Command => {
  const machine = group('machine', 'Look at machines, hold them back from upgrades')
  const add = (name: string, description: string) => {
    const command = group(name, description)
    machine.addCommand(command)
    return command
  }

  const list = add('list', 'List machines').alias('ls').option('-A, --all-namespaces', 'of all namespaces').addOption(outputOption())
  works<{ output: Output; allNamespaces?: boolean }>(list, shell, (session, _, options) => printList(session, MACHINE, options))

  const get = add('get', 'Show one machine').argument('<name>', 'the TalosMachine, or its host name').addOption(outputOption())
  works<{ output: Output }>(
    get,
    shell,
    async (session, [name = ''], { output }) => printObject(session, MACHINE, await machineCalled(session, name), output),
    MACHINE,
  )

  const hold = add('hold', 'Keep upgrades away from a machine, until it is released')
    .argument('<name>', 'the TalosMachine, or its host name')
    .option('--reason <text>', 'why, for those who wonder later')
  works<{ reason?: string }>(hold, shell, (session, [name = ''], { reason }) => holdMachine(session, name, reason), MACHINE)

  const release = add('release', 'Let upgrades come to a machine again').argument('<name>', 'the TalosMachine, or its host name')
  works(release, shell, (session, [name = '']) => releaseMachine(session, name), MACHINE)

  withExamples(machine, shell, [
    'machine list -o wide',
    'machine hold wk-1-5c0a --reason "disk is being replaced"',
    'machine release wk-1-5c0a',
  ])
  return machine
}

const holdMachine = async (session: Session, text: string, reason: string | undefined): Promise<void> => {
  const { terminal } = session
  const { metadata } = await machineCalled(session, text)
  const { name } = metadata
  const held = holdOf(metadata)
  // Only the word false releases, so a reason of that word would not hold.
  const value = reason === undefined || reason.trim() === '' || reason.trim() === 'false' ? 'true' : reason
  // Without a reason the one that was given stays.
  if (held !== undefined && (value === 'true' || value === held))
    return terminal.out(`${qualifiedName(MACHINE, name)} is held already${held === 'true' ? '' : `: ${held}`}`)
  await annotate(session, name, value, 'hold')
  terminal.out(`${qualifiedName(MACHINE, name)} held${value === 'true' ? '' : `: ${value}`}`)
  terminal.err('Operations that start from now on skip it. One that has begun with this machine is not stopped.')
}

const releaseMachine = async (session: Session, text: string): Promise<void> => {
  const { metadata, status } = await machineCalled(session, text)
  const { name } = metadata
  if (holdOf(metadata) === undefined) {
    session.terminal.out(`${qualifiedName(MACHINE, name)} is not held`)
    const { nodeName } = (status ?? {}) as { readonly nodeName?: string }
    // Which may be in another cluster than this one.
    if (nodeName !== undefined)
      session.terminal.err(`A hold on its Node is taken off there: kubectl annotate node ${nodeName} ${ANNOTATION.upgradeHold}-`)
    return
  }
  await annotate(session, name, null, 'release')
  session.terminal.out(`${qualifiedName(MACHINE, name)} released`)
}

const annotate = async (session: Session, name: string, value: string | null, verb: string): Promise<void> => {
  must(
    session,
    await session.api.patch(MACHINE, session.namespace, name, { metadata: { annotations: { [ANNOTATION.upgradeHold]: value } } }),
    `${verb} machine ${name}`,
  )
}
