import { failed } from '../../ports/fault.ts'
import { kinds } from '../../kinds/registry.ts'
import type { Api, Connection } from '../cli/api.ts'
import { startCommands } from '../cli/commands/upgrade.ts'
import { crds } from '../cli/crds.ts'
import { connect } from '../cli/kube-api.ts'
import { readUserFile, runCli } from '../cli/main.ts'
import type { Outside } from '../cli/session.ts'
import { version } from '../cli/version.ts'
import type { Screen } from './screen.ts'

export type CommandLine = {
  /** Shows the command and runs it, as if it were typed. Answers its exit code. */
  readonly run: (...argv: readonly string[]) => Promise<number>
  /** A connection of one's own. */
  readonly open: () => Promise<{ readonly api: Api; readonly close: () => void }>
}

/** The CLI's own code in this process, on the demo's cluster. */
export const createCommandLine = (screen: Screen, kubeconfigPath: string): CommandLine => {
  const { terminal } = screen
  const open = () => connect({ kubeconfig: kubeconfigPath }, `ichor/${version}`)
  return {
    open,
    run: async (...argv) => {
      const connections: (Connection & { readonly close: () => void })[] = []
      const outside: Outside = {
        terminal,
        calledAs: 'ichor',
        version,
        kinds,
        connect: async () => {
          const connection = await open()
          connections.push(connection)
          return connection
        },
        plan: () => Promise.resolve(failed('unsupported', 'the demo leaves the plan to the controller')),
        readFile: readUserFile,
        crds: () => Promise.resolve(crds()),
        yaml: async value => (await import('yaml')).stringify(value, { lineWidth: 0 }),
      }
      screen.say(terminal.colors.bold(`$ ichor ${argv.join(' ')}`))
      try {
        return await runCli(argv, outside, startCommands)
      } finally {
        screen.settle()
        for (const { close } of connections) close()
      }
    },
  }
}
