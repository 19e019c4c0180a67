// The controller as it ships, that also counts what it asks of others: SIGUSR2 makes it write the counts to the file $BENCH_COUNTS.
import { renameSync, writeFileSync } from 'node:fs'
import { runController } from '../src/app/controller/main.ts'

export type Counts = { readonly kubernetes: Readonly<Record<string, number>>; readonly talos: Readonly<Record<string, number>> }

const kubernetes: Record<string, number> = {}
const talos: Record<string, number> = {}
const count = (counts: Record<string, number>, what: string): void => {
  counts[what] = (counts[what] ?? 0) + 1
}

if (import.meta.main) {
  const path = process.env['BENCH_COUNTS']
  if (!path) throw new Error('BENCH_COUNTS names no file')
  process.on('SIGUSR2', () => {
    writeFileSync(`${path}.new`, JSON.stringify({ kubernetes, talos } satisfies Counts))
    renameSync(`${path}.new`, path)
  })
  process.exitCode = await runController(process.argv.slice(2), {
    onRequest: ({ verb, resource }) => count(kubernetes, `${verb} ${resource}`),
    onCall: ({ method }) => count(talos, method),
  })
}
