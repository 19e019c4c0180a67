import { join, relative } from 'node:path'
import { serveMachines } from '../../talossim/serve-machines.ts'
import { CLUSTER as CLUSTER_TYPE, OPERATION } from '../cli/resource-types.ts'
import { TALOS_PORT, takeAddresses } from './addresses.ts'
import { createCommandLine, type CommandLine } from './command-line.ts'
import { startControllerProcess } from './controller.ts'
import { makeTalosCredentials } from './credentials.ts'
import { CLUSTER, NAMESPACE, createDemoWorld } from './demo-world.ts'
import { drive } from './drive.ts'
import { guideLines, openingLines } from './guide.ts'
import { simulatedKubernetes, type KubernetesSide } from './kubernetes.ts'
import type { DemoOptions } from './options.ts'
import { scenarios } from './scenarios.ts'
import type { Screen } from './screen.ts'

export type Ground = {
  readonly options: DemoOptions
  readonly screen: Screen
  /** For files and logs; somebody else removes it. */
  readonly folder: string
  /** How to end what was started, in the order of the starts. */
  readonly undo: (() => unknown)[]
  /** Of a fault in the background: nothing can go on. */
  readonly fail: (error: unknown) => void
  /** The scenario has been played, and all runs on. */
  readonly isOver: () => void
}

/** Sets everything up and plays the scenario; then it answers with `--once`, else never. */
export const play = async ({ options, screen, folder, undo, fail, isOver }: Ground): Promise<number> => {
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
  let kubernetes: KubernetesSide | undefined
  const authorities = { talos: credentials.authority }
  const access = { authorities, talosClient: credentials.talosClient, kubernetesAdmin: async () => kubernetes?.admin }
  const machines = await serveMachines({ world, pki: credentials, access, port: TALOS_PORT, onError: fail })
  undo.push(machines.close)
  kubernetes = options.realApiServer
    ? await (await import('./real-kubernetes.ts')).realKubernetes(world, folder, fail)
    : await simulatedKubernetes(world, folder, fail)
  undo.push(kubernetes.close)
  const cli = createCommandLine(screen, kubernetes.kubeconfigPath)
  if (kubernetes.needsCrds) {
    await mustRun(cli, 'install', '--no-controller')
    screen.say()
  }

  const shared = { kubeconfigPath: kubernetes.kubeconfigPath, namespace: NAMESPACE, pace: options.speed, folder, failed: fail }
  const controller = await startControllerProcess({
    ...shared,
    // Where there is but one, the one that follows need not wait for the lease of the dead one to run out.
    identity: 'demo',
    restarted: (before, now) => screen.say(colors.yellow(`The controller, process ${before}, ended; process ${now} goes on in its place.`)),
  })
  undo.push(controller.stop)
  const secondController = async () => {
    const second = await startControllerProcess({ ...shared, identity: 'demo-2', restarted: () => {} })
    undo.push(second.stop)
    return second
  }
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

  const { flaws, end = wellDone(world.machines.length, options.to) } = await scenarios[options.scenario]({
    ...{ options, world, screen, cli, controller, secondController },
  })
  screen.say()
  if (flaws.length === 0) screen.say(colors.green(`✓ ${end}`))
  for (const flaw of flaws) screen.say(colors.red(`✗ ${flaw}`))
  if (options.once) {
    if (flaws.length > 0) throw new Error('it did not go as the scenario says')
    return 0
  }

  screen.say()
  const after = { operation: await firstOperation(cli), to: options.to, isOutage: options.controlPlanes < 3 }
  const guide = { ...kubernetes, ...credentials, addresses, ichor: ichorHere(), ...after }
  for (const line of guideLines(guide, colors)) screen.say(line)
  isOver()
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
