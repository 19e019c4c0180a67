import { createInterface } from 'node:readline'
import { serveMachines } from '../../talossim/serve-machines.ts'
import { createWorld, type World } from '../../world/cluster.ts'
import { TALOS_PORT, takeAddresses } from '../demo/addresses.ts'
import { makeTalosCredentials } from '../demo/credentials.ts'
import { CLUSTER, kubernetesFor } from '../demo/demo-world.ts'
import { drive } from '../demo/drive.ts'
import { simulatedKubernetes } from '../demo/kubernetes.ts'
import { Problem, orProblem } from '../demo/option-values.ts'
import type { Screen } from '../demo/screen.ts'
import { readFault } from './faults.ts'
import { guideLines } from './guide.ts'
import type { SimOptions } from './options.ts'

export type Ground = {
  readonly options: SimOptions
  readonly screen: Screen
  /** For files; somebody else removes it. */
  readonly folder: string
  /** How to end what was started, in the order of the starts. */
  readonly undo: (() => unknown)[]
  /** Of a fault in the background: nothing can go on. */
  readonly fail: (error: unknown) => void
}

/** Starts the machines and says how to reach them. */
export const startMachines = async ({ options, screen, folder, undo, fail }: Ground): Promise<void> => {
  const { colors } = screen.terminal
  const { controlPlanes, workers, version, speed, seed } = options
  const { addresses, release, passedOver } = await takeAddresses(controlPlanes + workers)
  undo.push(release)
  for (const sentence of passedOver) screen.say(colors.dim(sentence))

  const world = createWorld({
    ...{ seed, controlPlanes, workers, talos: version, kubernetes: kubernetesFor(version), clusterName: CLUSTER },
    ...{ addresses: index => addresses[index] ?? '', scale: speed, start: Date.now() },
  })
  const { etcdBytes } = options
  if (etcdBytes !== undefined)
    for (const member of world.etcd.members()) Object.assign(member, { dbSize: etcdBytes, dbSizeInUse: Math.ceil(etcdBytes / 2) })
  for (const fault of options.faults) fault(world)
  undo.push(drive(world.schedule, fail))
  const kubernetes = await simulatedKubernetes(world, folder, fail)
  undo.push(kubernetes.close)
  const credentials = await makeTalosCredentials({
    cluster: CLUSTER,
    machines: world.machines.map(({ name, index }) => ({ name, address: addresses[index] ?? '' })),
    endpoints: addresses.slice(0, controlPlanes),
    folder,
  })
  const { authority } = kubernetes
  const authorities = { talos: credentials.authority, ...(authority ? { kubernetes: authority } : {}) }
  const access = { authorities, talosClient: credentials.talosClient, kubernetesAdmin: async () => kubernetes.admin }
  undo.push((await serveMachines({ world, pki: credentials, access, port: TALOS_PORT, onError: fail })).close)

  const { talosconfigPath } = credentials
  const { kubeconfigPath, url } = kubernetes
  for (const line of guideLines({ options, machines: world.machines, talosconfigPath, kubeconfigPath, url }, colors)) screen.say(line)
  if (!options.isQuiet) undo.push(tellWhatHappens(world, screen))
  if (options.readsFaults) undo.push(takeFaults(world, screen))
}

/** One a line, for as long as somebody writes any. */
const takeFaults = (world: World, screen: Screen): (() => void) => {
  const lines = createInterface({ input: process.stdin })
  lines.on('line', line => {
    if (line.trim() === '') return
    const problem = orProblem(() => readFault(line)(world))
    if (problem instanceof Problem) screen.terminal.err(`error: ${problem.message}`)
  })
  return () => lines.close()
}

const tellWhatHappens = (world: World, screen: Screen): (() => void) => {
  const { colors } = screen.terminal
  screen.say()
  return world.journal.onEntry(({ at, machine, what, detail }) => {
    const time = new Date(at).toISOString().slice(11, 19)
    screen.say(`${colors.dim(time)}  ${(machine || 'cluster').padEnd(8)} ${what}${detail ? `: ${detail}` : ''}`)
  })
}
