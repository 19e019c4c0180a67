// Where the process begins. Commands that start no operation need no schema, and answer sooner without.
import { failed } from '../../ports/fault.ts'
import { runCli } from './main.ts'
import { realOutside } from './outside.ts'

const quick = new Set(['operation', 'op', 'cluster', 'doctor', 'machine', 'lock', 'install', 'completion', 'version', '--version', '-V'])

const main = async (argv: readonly string[]): Promise<number> => {
  const [first = '', ...rest] = argv
  if (quick.has(first) || (first === '__complete' && quick.has(rest[1] ?? '') && rest.length > 2))
    return runCli(
      argv,
      realOutside([], () => Promise.resolve(failed('unsupported', 'no kinds are loaded'))),
      () => [],
    )
  // Programs of their own, with options of their own.
  if (first === 'controller') return (await import('../controller/main.ts')).runController(rest)
  if (first === 'demo') {
    const code = await (await import('../demo/demo.ts')).runDemo(rest)
    // What is left then are timers and sockets of a world that is over.
    process.exit(code)
  }
  if (first === 'sim') process.exit(await (await import('../sim/sim.ts')).runSim(rest))
  return (await import('./whole.ts')).runWhole(argv)
}

void main(process.argv.slice(2)).then(code => {
  process.exitCode = code
  // A shell waits for it, and an API server that did not answer in time may still be asked.
  if (process.argv[2] === '__complete') process.exit()
})
