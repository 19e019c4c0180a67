// A child of many-machines.ts: a simulated cluster in this one process, at the speed of real machines. Arguments: control planes, workers, the
// controller's module. Prints `machines` when they answer; for each line on its input it starts the controller, and prints its process id when that
// has found all of them.
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { CLUSTER, NAMESPACE, startCluster } from '../test/cluster-on-the-wire.ts'
import { ICHOR } from '../src/world/ports/home.ts'

const [controlPlanes = '', workers = '', controllerModule = ''] = process.argv.slice(2)
const cluster = await startCluster({ controlPlanes: Number(controlPlanes), workers: Number(workers), from: 'v1.13.5', speed: 1 })
process.once('SIGTERM', () => void cluster.close().then(() => process.exit(0)))
process.stdout.write('machines\n')

await once(process.stdin, 'data')
await cluster.register()
const controller = await cluster.startController({ identity: 'bench', program: controllerModule })
type Counted = { readonly machines?: { readonly ready?: number } }
const ready = () => (cluster.world.store.get(ICHOR.clusters, NAMESPACE, CLUSTER)?.['status'] as Counted | undefined)?.machines?.ready
while (ready() !== cluster.world.machines.length) {
  if (cluster.faults.length > 0) throw cluster.faults[0]
  if (controller.hasExited()) throw new Error(controller.lastWords())
  await pause(100)
}
process.stdout.write(`${controller.pid}\n`)
