// The controller as it is shipped ($BENCH_CONTROLLER), that also counts what it asks of others: SIGUSR2 makes it write the counts to the file $BENCH_COUNTS.
// Plain JavaScript, so that nothing is in memory that only development needs.
import { renameSync, writeFileSync } from 'node:fs'

const { BENCH_CONTROLLER: module, BENCH_COUNTS: path } = process.env
if (!module || !path) throw new Error('BENCH_CONTROLLER and BENCH_COUNTS name no files')

const kubernetes = {}
const talos = {}
const count = (counts, what) => {
  counts[what] = (counts[what] ?? 0) + 1
}
process.on('SIGUSR2', () => {
  writeFileSync(`${path}.new`, JSON.stringify({ kubernetes, talos }))
  renameSync(`${path}.new`, path)
})

const { runController } = await import(module)
process.exitCode = await runController(process.argv.slice(2), {
  onRequest: ({ verb, resource }) => count(kubernetes, `${verb} ${resource}`),
  onCall: ({ method }) => count(talos, method),
})
