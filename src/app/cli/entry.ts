// Where the process begins. Commands that start no operation need no schema, and answer sooner without.
import { failed } from '../../ports/fault.ts'
import { runCli } from './main.ts'
import { realOutside } from './outside.ts'

const quick = new Set(['operation', 'op', 'cluster', 'machine', 'lock', 'install', 'version'])

const main = async (argv: readonly string[]): Promise<number> => {
  if (quick.has(argv[0] ?? ''))
    return runCli(
      argv,
      realOutside([], () => Promise.resolve(failed('unsupported', 'no kinds are loaded'))),
      () => [],
    )
  const { runWhole } = await import('./whole.ts')
  return runWhole(argv)
}

void main(process.argv.slice(2)).then(code => {
  process.exitCode = code
})
