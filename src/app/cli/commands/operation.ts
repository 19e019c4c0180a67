import type { OperationStatus, TalosOperation } from '../../../api/talos-operation.ts'
import type { Command } from 'commander'
import { ANNOTATION } from '../../../api/names.ts'
import { isFinished } from '../../../api/phases.ts'
import { openTargets } from '../../../core/ledger.ts'
import { stateOf } from '../../../core/operation-state.ts'
import { hostOf, summarize } from '../../../core/summary.ts'
import type { Summary } from '../../../core/summary.ts'
import type { KubeObject } from '../api.ts'
import { exitCodesText } from '../exit-codes.ts'
import { followLog, showLog } from '../follow-log.ts'
import { glanceLines } from '../glance.ts'
import type { Output } from '../output.ts'
import { outputOption, printList, printObject } from '../output.ts'
import { OPERATION, qualifiedName } from '../resource-types.ts'
import type { Answer, Session } from '../session.ts'
import { nextCommand } from '../typed.ts'
import { confirm, must, mustGet, operationOf } from '../session.ts'
import { Stop } from '../stop.ts'
import { timeoutOf, timeoutOfWait } from '../timeout.ts'
import { watchOperation } from '../watch-operation.ts'
import type { Shell } from './command.ts'
import { group, withExamples, works } from './command.ts'

type WaitOptions = { readonly wait?: boolean; readonly timeout?: string }

export const operationCommand = (shell: Shell): Command => {
  const operation = group('operation', 'Look at operations and steer them').alias('op')
  const add = (name: string, description: string) => {
    const command = group(name, description)
    operation.addCommand(command)
    return command
  }
  const one = (name: string, description: string) => add(name, description).argument('<name>', 'the operation')
  const waiting = (command: Command) =>
    command
      .option('--wait', 'watch it until it ends; the exit code says how')
      .option('--timeout <duration>', 'with --wait: stop watching after this time')

  const list = add('list', 'List operations').alias('ls').option('-A, --all-namespaces', 'of all namespaces').addOption(outputOption())
  works<{ output: Output; allNamespaces?: boolean }>(list, shell, (session, _, options) => printList(session, OPERATION, options))

  const get = one(
    'get',
    'Show one operation at a glance: what it does now, where and since when, what it waits for, what is next, what you can do',
  ).addOption(outputOption())
  works<{ output: Output }>(get, shell, (session, [name = ''], options) => show(session, name, options.output), OPERATION)

  const watch = one('watch', 'Watch one operation until it ends. Ctrl-C stops watching, never the operation')
    .option('--timeout <duration>', 'stop watching after this time')
    .addOption(outputOption(['table', 'json']))
    .addHelpText(
      'after',
      `\nOn a terminal one picture is drawn again and again; else each change is a line. With -o json each sight of it is a JSON document on a line of its own.\n\nExit codes:\n${exitCodesText()}`,
    )
  works<WaitOptions & { output: Output }>(
    watch,
    shell,
    async (session, [name = ''], { timeout, output }) => {
      const timeoutMs = timeoutOf(timeout)
      const { metadata } = await mustGet(session, OPERATION, name)
      return watchOperation(session, name, { ...watching(metadata, timeoutMs), stream: output === 'json' })
    },
    OPERATION,
  )

  const logs = one(
    'logs',
    'Tell what happened to one operation, oldest first: its decisions, when its machines were begun and done, and the Events about it',
  ).option('-f, --follow', 'go on until it ends; the exit code says how')
  works<{ follow?: boolean }>(
    logs,
    shell,
    (session, [name = ''], { follow }) => (follow ? followLog(session, name) : showLog(session, name)),
    OPERATION,
  )

  const pause = one(
    'pause',
    'Pause an operation at its next safe point: a machine in the middle of what has to be finished is carried to its end first',
  )
  works(pause, shell, (session, [name = '']) => pauseOperation(session, name), OPERATION)

  const resume = waiting(one('resume', 'Let a paused operation go on, or run the failed step of a failed one again'))
  works<WaitOptions>(resume, shell, (session, [name = ''], options) => resumeOperation(session, name, options), OPERATION)

  const cancel = waiting(one('cancel', 'Stop an operation for good at the next safe point').option('-y, --yes', 'without asking'))
  works<WaitOptions & { yes?: boolean }>(
    cancel,
    shell,
    (session, [name = ''], options) => cancelOperation(session, name, options),
    OPERATION,
  )

  const remove = one('delete', 'Delete an operation. One that is not finished stops at the next safe point first')
    .alias('rm')
    .option('-y, --yes', 'without asking')
  works<{ yes?: boolean }>(remove, shell, (session, [name = ''], options) => deleteOperation(session, name, options.yes), OPERATION)

  withExamples(operation, shell, [
    'operation list -A',
    'operation get talos-1-13-9',
    'operation watch talos-1-13-9 --timeout 1h',
    'operation logs talos-1-13-9 -f',
    'operation resume talos-1-13-9 --wait',
  ])
  return operation
}

const show = async (session: Session, name: string, output: Output): Promise<void> => {
  const object = await mustGet(session, OPERATION, name)
  if (output !== 'table' && output !== 'wide') return printObject(session, OPERATION, object, output)
  for (const line of glanceLines(session, operationOf(object))) session.terminal.out(line)
}

const pauseOperation = async (session: Session, name: string): Promise<void> => {
  const { terminal, namespace } = session
  const operation = operationOf(await openOperation(session, name, 'paused'))
  const { spec, status } = operation
  refuseIfEnding(operation, 'paused')
  if (spec.paused) return terminal.out(`${qualifiedName(OPERATION, name)} is paused already`)
  await change(session, name, 'pause', { spec: { paused: true } })
  terminal.out(`${qualifiedName(OPERATION, name)} paused`)
  for (const line of stateOf(operation) === 'failed' ? whyPauseAFailure(summarize(operation, terminal.now())) : beforeItStops(status))
    terminal.err(line)
  terminal.err(`Let it go on with: ${nextCommand(session, `operation resume ${name} -n ${namespace}`)}`)
}

const resumeOperation = async (session: Session, name: string, options: WaitOptions): Promise<Answer> => {
  const { terminal, namespace } = session
  const timeoutMs = timeoutOfWait(options)
  const object = await openOperation(session, name, 'resumed')
  const operation = operationOf(object)
  refuseIfEnding(operation, 'resumed')
  const { spec, status } = operation
  const hasFailed = status.phase === 'Paused' && status.failureReason !== undefined && status.failureReason !== 'ClusterLockHeld'
  const isAsked = operation.metadata.annotations[ANNOTATION.retry] === 'true'
  if (spec.paused || (hasFailed && !isAsked)) {
    const retry = hasFailed ? { metadata: { annotations: { [ANNOTATION.retry]: 'true' } } } : {}
    await change(session, name, 'resume', { ...retry, ...(spec.paused ? { spec: { paused: false } } : {}) })
    terminal.out(`${qualifiedName(OPERATION, name)} resumed`)
    if (hasFailed)
      terminal.err(
        status.failureReason === 'PreflightRefused'
          ? 'Its checks will run again.'
          : `The step that failed${status.lastFailure?.step ? ` (${status.lastFailure.step})` : ''} will be run again.`,
      )
  } else {
    terminal.out(`nothing to resume: operation ${name} is ${isAsked ? 'about to run the failed step again' : stateOf(operation)}`)
  }
  if (!options.wait) {
    terminal.err(`Watch it with: ${nextCommand(session, `operation watch ${name} -n ${namespace}`)}`)
    return 'ok'
  }
  return watchOperation(session, name, watching(operation.metadata, timeoutMs))
}

const cancelOperation = async (session: Session, name: string, options: WaitOptions & { yes?: boolean }): Promise<Answer> => {
  const { terminal, namespace } = session
  const timeoutMs = timeoutOfWait(options)
  const { metadata, spec, status } = operationOf(await mustGet(session, OPERATION, name))
  if (status.phase === 'Cancelled') {
    terminal.out(`${qualifiedName(OPERATION, name)} is cancelled already`)
    return 'ok'
  }
  if (isFinished(status.phase)) throw over(name, status, 'cancelled')
  if (metadata.deletionTimestamp !== undefined)
    throw new Stop('error', `operation ${name} is being deleted and cannot be cancelled`, [ENDING])
  if (spec.cancelled) terminal.out(`${qualifiedName(OPERATION, name)} is being cancelled already`)
  else {
    await confirm(
      terminal,
      `Stop operation ${name} on cluster ${spec.clusterRef.name} for good? Machines that are done stay as they are.`,
      options.yes,
    )
    // A namesake that came while the question was open is not what was asked about.
    await change(session, name, 'cancel', { ...(metadata.uid ? { metadata: { uid: metadata.uid } } : {}), spec: { cancelled: true } })
    terminal.out(`${qualifiedName(OPERATION, name)} cancelled`)
    for (const line of beforeItStops(status)) terminal.err(line)
  }
  if (!options.wait) {
    terminal.err(`Watch it with: ${nextCommand(session, `operation watch ${name} -n ${namespace}`)}`)
    return 'ok'
  }
  // What was asked for here is that it ends as Cancelled.
  const exit = await watchOperation(session, name, watching(metadata, timeoutMs))
  if (exit !== 'stopped') return exit
  const after = await session.api.get(OPERATION, namespace, name)
  return after.ok && isSame(after.value, metadata) && operationOf(after.value).status.phase === 'Cancelled' ? 'ok' : exit
}

/** How the operation is watched that was read or changed, which a namesake created later is not. */
const watching = ({ uid }: KubeObject['metadata'], timeoutMs: number | undefined) => ({
  ...(timeoutMs === undefined ? {} : { timeoutMs }),
  ...(uid ? { uid } : {}),
})

const isSame = ({ metadata }: KubeObject, { uid }: KubeObject['metadata']): boolean => !uid || metadata.uid === uid

/** It stands still as it is; what a pause changes is who may have its lock. */
const whyPauseAFailure = ({ failure, lock }: Summary): readonly string[] => [
  `It stood still already, after ${failure?.reason}.${lock?.isOurs ? ' Paused it keeps the cluster lock, which who waits could have taken from it.' : ''}`,
]

/** What becomes of the machines that are open before the operation stops. */
const beforeItStops = (status: OperationStatus): readonly string[] => {
  const open = openTargets(status)
  if (open.length === 0) return ['It takes effect at once: no machine is open.']
  return open.map(target =>
    target.committed === undefined
      ? `${hostOf(target)} is given back at once, unless it comes to what has to be finished just now.`
      : `${hostOf(target)} is carried to its end first: its ${target.committed} has begun.`,
  )
}

const deleteOperation = async (session: Session, name: string, yes: boolean | undefined): Promise<void> => {
  const { terminal } = session
  const { metadata, spec, status } = operationOf(await mustGet(session, OPERATION, name))
  if (metadata.deletionTimestamp !== undefined) {
    terminal.out(`${qualifiedName(OPERATION, name)} is being deleted already`)
    return terminal.err(ENDING)
  }
  const isOver = isFinished(status.phase)
  await confirm(
    terminal,
    isOver
      ? `Delete operation ${name} (${status.phase}) and its record?`
      : `Operation ${name} on cluster ${spec.clusterRef.name} is not finished: stop it at the next safe point and delete it?`,
    yes,
  )
  const result = await session.api.delete(OPERATION, session.namespace, name, metadata.uid ? { uid: metadata.uid } : {})
  if (!result.ok && result.fault.kind !== 'notFound') must(session, result, `delete operation ${name}`)
  terminal.out(`${qualifiedName(OPERATION, name)} deleted`)
  if (!isOver) for (const line of beforeItStops(status)) terminal.err(line)
}

/** The operation, unless it is over: then there is nothing to steer. */
const openOperation = async (session: Session, name: string, verb: string): Promise<KubeObject> => {
  const object = await mustGet(session, OPERATION, name)
  const { status } = operationOf(object)
  if (isFinished(status.phase)) throw over(name, status, verb)
  return object
}

const over = (name: string, { phase }: OperationStatus, verb: string): Stop =>
  new Stop('error', `operation ${name} is ${phase} and cannot be ${verb}`, verb === 'cancelled' ? [] : ['Start another one instead.'])

const ENDING = 'It stops for good at the next safe point.'

const refuseIfEnding = ({ metadata, spec }: TalosOperation, verb: string): void => {
  if (!spec.cancelled && metadata.deletionTimestamp === undefined) return
  const what = spec.cancelled ? 'cancelling' : 'being deleted'
  throw new Stop('error', `operation ${metadata.name} is ${what} and cannot be ${verb}`, [ENDING])
}

const change = async (session: Session, name: string, verb: string, patch: object): Promise<KubeObject> =>
  must(session, await session.api.patch(OPERATION, session.namespace, name, patch), `${verb} operation ${name}`)
