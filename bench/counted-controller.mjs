// The controller as it is shipped ($BENCH_CONTROLLER), that also tells of itself, into the file $BENCH_COUNTS: what it asked of others so far (SIGUSR2), and how
// much memory it still holds after a collection (SIGHUP).
// Plain JavaScript, so that nothing is in memory that only development needs.
import { renameSync, writeFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const { BENCH_CONTROLLER: module, BENCH_COUNTS: path } = process.env
if (!module || !path) throw new Error('BENCH_CONTROLLER and BENCH_COUNTS name no files')

const tell = what => {
  writeFileSync(`${path}.new`, JSON.stringify(what))
  renameSync(`${path}.new`, path)
}

const kubernetes = {}
const talos = {}
const count = (counts, what) => {
  counts[what] = (counts[what] ?? 0) + 1
}
process.on('SIGUSR2', () => tell({ kubernetes, talos }))

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')
const tellRetained = async () => {
  // What was let go is often freed by a callback, and what hung on it by the next collection.
  for (let i = 0; i < 4; i++) {
    collect()
    await setImmediate()
  }
  const { heapUsed, external } = process.memoryUsage()
  tell({ retainedKb: (heapUsed + external) / 1024 })
}
process.on('SIGHUP', () => void tellRetained())

const { runController } = await import(module)
process.exitCode = await runController(process.argv.slice(2), {
  onRequest: ({ verb, resource }) => count(kubernetes, `${verb} ${resource}`),
  onCall: ({ method }) => count(talos, method),
})
