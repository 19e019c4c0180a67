import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { serveMachines } from '../../talossim/serve-machines.ts'
import { CLUSTER as CLUSTER_TYPE, OPERATION } from '../cli/resource-types.ts'
import { processTerminal } from '../cli/terminal.ts'
import { TALOS_PORT, takeAddresses } from './addresses.ts'
import { createCommandLine, type CommandLine } from './command-line.ts'
import { startControllerProcess } from './controller.ts'
import { makeTalosCredentials } from './credentials.ts'
import { CLUSTER, NAMESPACE, createDemoWorld } from './demo-world.ts'
import { drive } from './drive.ts'
import { guideLines, openingLines, titleLine } from './guide.ts'
import { simulatedKubernetes } from './kubernetes.ts'
import { DEMO_HELP, type DemoOptions, readOptions } from './options.ts'
import { whenOrphaned } from './parents.ts'
import { scenarios } from './scenarios.ts'
import { createScreen, type Screen } from './screen.ts'

/** Runs the demo until its end or a signal. Answers the exit code; everything that it started is gone by then. */
export const runDemo = async (argv: readonly string[]): Promise<number> => {
  const read = readOptions(argv)
  if (!read.ok) {
    process.stderr.write(`error: ${read.problem}\n  npm run demo -- --help shows the options.\n`)
    return 2
  }
  if (read.options === 'help') {
    process.stdout.write(DEMO_HELP)
    return 0
  }
  const { options } = read
  const screen = createScreen(processTerminal())
  const { colors } = screen.terminal
  const undo: (() => unknown)[] = []
  const end = endOf()
  undo.push(end.close)

  const folder = mkdtempSync(join(tmpdir(), 'ichor-demo-'))
  let keepsFolder = false
  // Whatever ends the process: what is left of it is a folder at most, and not that.
  const removeFolder = () => keepsFolder || rmSync(folder, { recursive: true, force: true })
  process.once('exit', removeFolder)
  try {
    screen.say(titleLine(options, colors))
    screen.say()
    const code = await Promise.race([play(options, screen, folder, undo, end.fail), end.came])
    return code
  } catch (error) {
    keepsFolder = existsSync(join(folder, 'controller.log'))
    screen.terminal.err(colors.red(`error: ${error instanceof Error ? error.message : String(error)}`))
    if (keepsFolder) screen.terminal.err(`  The files are kept: ${folder}`)
    return 1
  } finally {
    screen.settle()
    for (const each of undo.toReversed()) await each()
    removeFolder()
  }
}

/** Sets everything up and plays the scenario; then it answers with `--once`, else never. */
const play = async (
  options: DemoOptions,
  screen: Screen,
  folder: string,
  undo: (() => unknown)[],
  fail: (error: unknown) => void,
): Promise<number> => {
  const { colors } = screen.terminal
  const { addresses, release, passedOver } = await takeAddresses(options.controlPlanes + options.workers)
  undo.push(release)
  for (const sentence of passedOver) screen.say(colors.dim(sentence))

  const world = createDemoWorld(options, addresses)
  undo.push(drive(world.schedule, fail))
  const credentials = await makeTalosCredentials({
    cluster: CLUSTER,
    machines: world.machines.map(({ name, index }) => ({ name, address: addresses[index] ?? '' })),
    endpoints: addresses.slice(0, options.controlPlanes),
    folder,
  })
  const machines = await serveMachines({ world, pki: credentials, port: TALOS_PORT, onError: fail })
  undo.push(machines.close)
  const kubernetes = options.realApiServer
    ? await (await import('./real-kubernetes.ts')).realKubernetes(world, folder, fail)
    : await simulatedKubernetes(world, folder, fail)
  undo.push(kubernetes.close)
  const cli = createCommandLine(screen, kubernetes.kubeconfigPath)
  if (kubernetes.needsCrds) {
    await mustRun(cli, 'install', '--crds-only')
    screen.say()
  }

  const controller = await startControllerProcess({
    kubeconfigPath: kubernetes.kubeconfigPath,
    namespace: NAMESPACE,
    pace: options.speed,
    folder,
    ended: lastWords => fail(new Error(`the controller ended by itself; its last words:\n${lastWords}`)),
  })
  undo.push(controller.stop)
  for (const line of openingLines(
    { options, addresses, kubernetes, controller: { pid: controller.pid(), logPath: controller.logPath }, folder },
    colors,
  ))
    screen.say(line)
  screen.say()

  await mustRun(cli, 'cluster', 'add', CLUSTER, '--talosconfig', credentials.talosconfigPath)
  screen.say()
  await untilFound(cli, world.machines.length)
  await mustRun(cli, 'machine', 'list')
  screen.say()

  const flaws = await scenarios[options.scenario]({ options, world, screen, cli, controller })
  screen.say()
  if (flaws.length === 0) screen.say(colors.green(`✓ ${wellDone(world.machines.length, options.to)}`))
  for (const flaw of flaws) screen.say(colors.red(`✗ ${flaw}`))
  if (options.once) {
    if (flaws.length > 0) throw new Error('it did not go as the scenario says')
    return 0
  }

  screen.say()
  const guide = { ...kubernetes, ...credentials, addresses, operation: await firstOperation(cli), ichor: ichorHere() }
  for (const line of guideLines(guide, colors)) screen.say(line)
  return new Promise(() => {})
}

/** How people call the CLI where they stand: the one of this folder, unless they came by another. */
const ichorHere = (): string => {
  const called = process.env['ICHOR_CALLED_AS']
  if (called) return called
  const own = join(import.meta.dirname, '..', '..', '..', 'bin', 'ichor')
  return relative(process.cwd(), own)
}

const wellDone = (machines: number, version: string): string =>
  machines === 1
    ? `The machine runs Talos ${version} and was rebooted once.`
    : `All ${machines} machines run Talos ${version}; each was rebooted once.`

const mustRun = async (cli: CommandLine, ...argv: readonly string[]): Promise<void> => {
  const code = await cli.run(...argv)
  if (code !== 0) throw new Error(`ichor ${argv.join(' ')} ended with exit code ${code}`)
}

const FOUND_WITHIN_MS = 60_000

/** Until the controller has seen all machines and finds them healthy. */
const untilFound = async (cli: CommandLine, total: number): Promise<void> => {
  const { api, close } = await cli.open()
  let last = 'it says nothing'
  let timer: NodeJS.Timeout | undefined
  let stop = (): void => {}
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the controller does not find the ${total} machines: ${last}`)), FOUND_WITHIN_MS)
      stop = api.watch(CLUSTER_TYPE, NAMESPACE, CLUSTER, sight => {
        if (sight.is !== 'there') return
        const status = sight.object.status as ClusterSight | undefined
        const ready = status?.conditions?.find(({ type }) => type === 'Ready')
        last = ready?.message ?? last
        if (ready?.status === 'True' && status?.machines?.total === total) resolve()
      })
    })
  } finally {
    clearTimeout(timer)
    stop()
    close()
  }
}

type ClusterSight = {
  readonly machines?: { readonly total?: number }
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[]
}

const firstOperation = async (cli: CommandLine): Promise<string> => {
  const { api, close } = await cli.open()
  const listed = await api.list(OPERATION, NAMESPACE)
  close()
  return (listed.ok && listed.value[0]?.metadata.name) || ''
}

/** The ends that come from outside: a signal, the loss of whoever started us, or a fault in the background. */
const endOf = () => {
  let resolve: (code: number) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const came = new Promise<number>((fulfil, refuse) => {
    resolve = fulfil
    reject = refuse
  })
  // It may come when nobody waits for it any more.
  came.catch(() => {})
  let asked = 0
  const onSignal = (signal: NodeJS.Signals): void => {
    // Whoever asks twice does not want to wait; the watch over the children ends them.
    if (asked++ > 0) process.exit(130)
    resolve(signal === 'SIGINT' ? 130 : signal === 'SIGHUP' ? 129 : 143)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, onSignal)
  const stopLooking = whenOrphaned(() => resolve(1))
  return {
    came,
    fail: (error: unknown) => reject(error),
    close: () => {
      stopLooking()
      for (const signal of signals) process.removeListener(signal, onSignal)
    },
  }
}
