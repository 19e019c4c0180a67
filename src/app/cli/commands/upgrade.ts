import { Argument, type Command, Option } from 'commander'
import { formatDuration } from '../../../api/duration.ts'
import { ANNOTATION, API_VERSION, LABEL } from '../../../api/names.ts'
import { isFinished } from '../../../api/phases.ts'
import type { KindAction, KindBlock } from '../../../api/talos-operation.ts'
import type { KubeObject } from '../api.ts'
import { exitCodesText } from '../exit-codes.ts'
import type { Plan } from '../../../engine/plan.ts'
import { envelopeFlags, exampleOf, fileTitle, kindFlags, positionalOf, specOf } from '../kind-flags.ts'
import { mustHaveMachine } from '../machine-called.ts'
import { machineSelector } from '../machine-selector.ts'
import type { Output } from '../output.ts'
import { outputOption, printObject, printValue } from '../output.ts'
import { isIdle, isRefused, lockLine, mayDifferElsewhere, planLines, refusalTexts } from '../plan-view.ts'
import { mayRepeat } from '../repeatable.ts'
import { bareName, CLUSTER, MACHINE, OPERATION, qualifiedName } from '../resource-types.ts'
import type { Answer, Session } from '../session.ts'
import { nextCommand } from '../typed.ts'
import { confirm, confirmName, must, mustBeAskable, notThere, operationOf, whoAmI } from '../session.ts'
import { crdsMissing, faultStop, named, Stop } from '../stop.ts'
import { timeoutOfWait } from '../timeout.ts'
import { watchOperation } from '../watch-operation.ts'
import type { Shell } from './command.ts'
import { group, withExamples, works } from './command.ts'

type StartOptions = {
  readonly cluster?: string
  readonly name?: string
  /** true: only the plan. false: no plan at all. Absent: the plan first. */
  readonly plan?: boolean
  readonly wait?: boolean
  readonly timeout?: string
  readonly yes?: boolean
  readonly confirm?: string
  readonly machines?: string
  readonly file?: readonly string[]
  readonly output: Output
  readonly [flag: string]: unknown
}

/**
 * The commands that start an operation, one for each kind: `upgrade KIND VERSION` for those with a version, `KIND ACTION MACHINE` for those that do one
 * thing to one machine, `KIND VERB` for those that have a word for what they do, `start KIND` for the others.
 */
export const startCommands = (shell: Shell): Command[] => {
  const { kinds } = shell.outside
  const upgrade = group('upgrade', 'Upgrade a cluster, a machine at a time')
  const start = group('start', 'Start another kind of operation')
  const acting = kinds.flatMap(kind => {
    if (kind.actions) return [actionCommands(shell, kind, kind.actions)]
    if (kind.verb !== undefined) return [group(kind.name, kind.summary).addCommand(startCommand(shell, { kind }))]
    ;(positionalOf(kind) ? upgrade : start).addCommand(startCommand(shell, { kind }))
    return []
  })
  return [upgrade, ...acting, start].filter(({ commands }) => commands.length > 0)
}

const actionCommands = (shell: Shell, kind: KindBlock, actions: readonly KindAction[]): Command => {
  const command = group(kind.name, kind.summary)
  for (const action of actions) command.addCommand(startCommand(shell, { kind, action }))
  return command
}

/** What a command starts. */
type What = { readonly kind: KindBlock; readonly action?: KindAction }

const startCommand = (shell: Shell, { kind, action }: What): Command => {
  const version = action ? undefined : positionalOf(kind)
  const command = group(action?.name ?? kind.verb ?? kind.name, action?.summary ?? kind.summary)
  if (version) command.addArgument(new Argument('<version>', version.description))
  if (action) command.addArgument(new Argument('<machine>', 'its TalosMachine or its host name'))
  const own = kindFlags(kind).filter(({ path: [, field = ''] }) => action === undefined || action.fields.includes(field))
  for (const {
    option,
    path: [, field = ''],
  } of own)
    if (action?.needs?.includes(field)) option.makeOptionMandatory()
  if (kind.files) command.addOption(fileOption(kind.files.description))
  for (const { option } of [...own, ...envelopeFlags(shell.outside.kinds, action ?? kind)]) command.addOption(option)
  if (!action && !kind.whole)
    command.option(
      '--machines <names>',
      'only these: names of machines or hosts, controlplane, worker, or labels of TalosMachines like rack=1, between commas (default: all)',
    )
  if ((action ?? kind).start) command.option('--confirm <cluster>', "the cluster's name: start without asking for it")
  command
    .option('--cluster <name>', 'the TalosCluster to act on (default: the only one in the namespace)')
    .option(
      '--name <name>',
      `name of the operation (default: made of ${action ? 'action and machine' : `kind${version ? ' and version' : ''}`})`,
    )
    .option('--plan', 'only show the checks, the order and what each machine takes away meanwhile; write nothing')
    .option('--no-plan', 'start without planning here first; the controller makes the same checks')
    .option('--wait', 'watch it until it ends; the exit code says how')
    .option('--timeout <duration>', 'with --wait: stop watching after this time')
    .option('-y, --yes', 'start without asking')
    .addOption(outputOption(['table', 'wide', 'json', 'yaml', 'name']))
    .addHelpText('after', `\nExit codes:\n${exitCodesText()}`)
  withExamples(
    command,
    shell,
    action
      ? actionExamples(kind, action)
      : version
        ? [
            `upgrade ${kind.name} ${exampleOf(version)} --plan`,
            `upgrade ${kind.name} ${exampleOf(version)} --cluster home --wait`,
            `upgrade ${kind.name} ${exampleOf(version)} --max-unavailable 25% --drain-policy force --yes`,
          ]
        : plainExamples(kind),
  )
  return works<StartOptions>(command, shell, (session, [first], options) => {
    if (action === undefined) return start(session, { kind }, version ? first : undefined, options)
    const machine = bareName(MACHINE, first ?? '')
    return start(session, { kind, action, machine }, undefined, { ...options, machine, action: action.name })
  })
}

/** Given again and again: each file is one more item, in the order in which they are named. */
const fileOption = (description: string): Option => {
  const option = new Option(
    '-f, --file <path>',
    `${description}; - is standard input. May be given again; they apply in this order`,
  ).makeOptionMandatory()
  mayRepeat(option)
  return option.argParser((path: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), path])
}

const plainExamples = ({ name, verb, files }: KindBlock): readonly string[] => {
  const base = `${verb === undefined ? `start ${name}` : `${name} ${verb}`}${files ? ' -f patch.yaml' : ''}`
  return [`${base} --plan`, `${base} --cluster home --wait`, ...(files ? [`${base} -f another.yaml --machines wk-1,wk-2`] : [])]
}

const actionExamples = (kind: KindBlock, action: KindAction): readonly string[] => {
  const base = `${kind.name} ${action.name} wk-1${(action.needs ?? []).map(field => ` --${field} kubelet`).join('')}`
  return [`${base} --plan`, `${base} --wait${action.start ? ' --confirm home' : ''}`]
}

const start = async (
  session: Session,
  what: What & { readonly machine?: string },
  version: string | undefined,
  options: StartOptions,
): Promise<Answer> => {
  const { kind } = what
  const title = titleOf(what, version)
  const { terminal, api, outside, namespace } = session
  const timeoutMs = timeoutOfWait(options)
  const items = await itemsOf(session, kind, options.file)
  // What can be seen without a server first.
  specOf(outside.kinds, kind, bareName(CLUSTER, options.cluster ?? 'any'), version, { ...options, ...items })
  mustBeName(options.name)
  const cluster = await chosenCluster(session, options.cluster === undefined ? undefined : bareName(CLUSTER, options.cluster))
  const mustName = (what.action ?? kind).start !== undefined
  if (!options.plan && (mustName ? options.confirm === undefined : !options.yes))
    mustBeAskable(terminal, mustName ? `--confirm ${cluster}` : '--yes')
  if (what.machine !== undefined) await mustHaveMachine(session, cluster, what.machine)
  const selector = options.machines === undefined ? undefined : await machineSelector(session, cluster, options.machines)
  const { asked, complete } = specOf(outside.kinds, kind, cluster, version, { ...options, ...items }, selector)
  if (options.name !== undefined && (await api.get(OPERATION, namespace, options.name)).ok) throw taken(session, options.name)
  const name = options.name ?? (options.plan ? nameOf(what, version) : await freeName(session, cluster, nameOf(what, version)))

  const user = await whoAmI(session)
  const object = {
    apiVersion: API_VERSION,
    kind: OPERATION.kind,
    metadata: {
      name,
      namespace,
      labels: { [LABEL.cluster]: cluster },
      annotations: { [ANNOTATION.requestedBy]: user, ...(complete.override ? { [ANNOTATION.overrideBy]: user } : {}) },
    },
    spec: asked,
  }

  if (options.plan !== false) {
    const planned = await outside.plan({ namespace, name, spec: complete }, session.choice)
    if (!planned.ok) {
      if (options.plan) throw new Stop('error', `cannot plan: ${planned.fault.message}`)
      terminal.err(`No plan from here (${planned.fault.message}); the controller makes the checks.`)
    } else {
      const result = { value: withFiles(planned.value, kind, options.file) }
      const refused = isRefused(result.value, complete.override)
      if (options.plan && (options.output === 'json' || options.output === 'yaml')) await printValue(outside, options.output, result.value)
      else if (refused && !options.plan)
        throw new Stop('refused', `the checks refuse ${title} on cluster ${cluster}; nothing was started`, [
          ...refusalTexts(result.value, complete.override),
          mayDifferElsewhere(result.value)
            ? '--no-plan leaves the checks to the controller, which may reach what cannot be reached from here.'
            : '--plan shows the whole plan.',
        ])
      else if (options.plan || (!options.yes && !isIdle(result.value))) {
        const say = options.plan ? terminal.out : terminal.err
        for (const line of planLines(result.value, title, { colors: terminal.colors, override: complete.override })) say(line)
      } else if (result.value.holder && !isIdle(result.value)) terminal.err(lockLine(result.value))
      if (!refused && !options.plan && isIdle(result.value)) {
        const why = [...new Set(result.value.order.map(machine => machine.skip))].join('; ')
        throw new Stop('refused', `there is nothing to do on cluster ${cluster}: ${why || 'it has no machines that match'}`, [
          'Nothing was started.',
        ])
      }
      if (refused) return 'refused'
    }
    if (options.plan) return 'ok'
  }

  const question = `Start ${title} on cluster ${cluster}?`
  if (mustName) await confirmName(terminal, `${question} It cannot be undone.`, cluster, options.confirm)
  else await confirm(terminal, question, options.yes)
  const created = await api.create(OPERATION, namespace, object)
  if (!created.ok && created.fault.kind === 'alreadyExists') throw taken(session, name)
  const operation = must(session, created, `create operation ${name}`)

  const document = options.output === 'json' || options.output === 'yaml' ? options.output : undefined
  if (document || options.output === 'name')
    if (document && options.wait) terminal.err(`${qualifiedName(OPERATION, name)} created`)
    else await printObject(session, OPERATION, operation, options.output)
  else terminal.out(`${qualifiedName(OPERATION, name)} created`)
  if (options.wait)
    return watchOperation(session, name, {
      ...(document ? { document } : {}),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(operation.metadata.uid ? { uid: operation.metadata.uid } : {}),
    })
  if (options.output === 'table' || options.output === 'wide')
    terminal.err(`Watch it with: ${nextCommand(session, `operation watch ${name} -n ${namespace}`)}`)
  return 'ok'
}

/** What the files say, as the item that each of them is. */
const itemsOf = async ({ outside }: Session, { files }: KindBlock, paths: readonly string[] = []): Promise<object> => {
  if (!files || paths.length === 0) return {}
  if (paths.filter(path => path === '-').length > 1) throw new Stop('usage', '--file -: standard input can be read once only')
  return { [files.field]: await Promise.all(paths.map(async path => ({ [files.as]: await outside.readFile(path) }))) }
}

/** The checks count what they were given; here the names are known. */
const withFiles = (plan: Plan, { files }: KindBlock, paths: readonly string[] = []): Plan => {
  if (!files) return plan
  const told = (words: string): string =>
    words.replaceAll(new RegExp(`\\b${files.called} (\\d+)\\b`, 'g'), (all, number: string) => {
      const path = paths[Number(number) - 1]
      return path === undefined ? all : fileTitle(path)
    })
  return {
    ...plan,
    refusals: plan.refusals.map(refusal => ({ ...refusal, message: told(refusal.message) })),
    notes: plan.notes.map(told),
  }
}

const taken = ({ namespace }: Session, name: string): Stop =>
  new Stop('error', `operation ${name} exists already in namespace ${namespace}`, ['Choose another with --name.'])

/** As the server judges it, part by part between the dots. */
const mustBeName = (name: string | undefined): void => {
  if (name === undefined || (name.length <= 253 && name.split('.').every(part => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(part)))) return
  throw new Stop(
    'usage',
    `--name ${JSON.stringify(name)}: must be the name of an object: lower-case letters, digits, - and ., beginning and ending with a letter or a digit`,
  )
}

const chosenCluster = async (session: Session, wanted: string | undefined): Promise<string> => {
  const { api, namespace, server } = session
  if (wanted !== undefined) {
    const found = await api.get(CLUSTER, namespace, wanted)
    if (found.ok) return wanted
    throw found.fault.kind === 'notFound'
      ? await notThere(session, CLUSTER, wanted)
      : faultStop(found.fault, `read cluster ${wanted}`, server)
  }
  const listed = await api.list(CLUSTER, namespace)
  if (!listed.ok && listed.fault.kind === 'notFound') throw crdsMissing(server)
  const names = must(session, listed, 'list clusters').map(o => o.metadata.name)
  if (names.length === 1 && names[0]) return names[0]
  if (names.length === 0) {
    throw new Stop('error', `there is no TalosCluster in namespace ${namespace}`, [
      ...(await clustersElsewhere(session)),
      `Add one with: ${nextCommand(session, `cluster add NAME --talosconfig FILE -n ${namespace}`)}`,
    ])
  }
  throw new Stop('usage', `there are ${names.length} clusters in namespace ${namespace}: say which with --cluster`, [
    `There are: ${named(names)}`,
  ])
}

const clustersElsewhere = async ({ api }: Session): Promise<readonly string[]> => {
  const all = await api.list(CLUSTER)
  return (all.ok ? all.value : [])
    .slice(0, 5)
    .map(({ metadata }) => `There is ${metadata.name} in namespace ${metadata.namespace}: add -n ${metadata.namespace}`)
}

const titleOf = ({ kind, action, machine }: What & { readonly machine?: string }, version: string | undefined): string =>
  action ? `${action.name} of ${machine}` : `${[kind.name, kind.verb, version].filter(Boolean).join(' ')}`

const nameOf = ({ kind, action, machine = '' }: What & { readonly machine?: string }, version: string | undefined): string =>
  [kind.name, action?.name ?? kind.verb, action ? machine : version?.replace(/^v/, '')]
    .filter(part => part !== undefined)
    .join('-')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')

// The same twice at once is a mistake; the same again after the first has ended, or on another cluster, is not.
const freeName = async (session: Session, cluster: string, base: string): Promise<string> => {
  const operations = must(session, await session.api.list(OPERATION, session.namespace), 'list operations')
  const taken = new Map(operations.map(o => [o.metadata.name, o]))
  for (let count = 1; ; count++) {
    const name = count === 1 ? base : `${base}-${count}`
    const other = taken.get(name)
    if (!other) return name
    if (operationOf(other).spec.clusterRef.name === cluster) refuseIfOpen(session, other)
  }
}

const refuseIfOpen = (session: Session, object: KubeObject): void => {
  const { namespace, terminal } = session
  const { metadata, status } = operationOf(object)
  if (isFinished(status.phase)) return
  throw new Stop(
    'error',
    `operation ${metadata.name} is there already, ${status.phase ?? 'Pending'}, created ${formatDuration(terminal.now() - Date.parse(metadata.creationTimestamp))} ago`,
    [`Look at it with: ${nextCommand(session, `operation get ${metadata.name} -n ${namespace}`)}`, 'Another one beside it needs a --name.'],
  )
}
