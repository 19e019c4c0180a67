import type { Api, Connection } from '../cli/api.ts'
import { connect } from '../cli/kube-api.ts'
import { version } from '../cli/version.ts'
import { runWhole } from '../cli/whole.ts'
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
      const remembering = async () => {
        const connection = await open()
        connections.push(connection)
        return connection
      }
      screen.say(terminal.colors.bold(`$ ichor ${argv.join(' ')}`))
      try {
        return await runWhole(['--kubeconfig', kubeconfigPath, ...argv], { terminal, calledAs: 'ichor', connect: remembering })
      } finally {
        screen.settle()
        for (const { close } of connections) close()
      }
    },
  }
}
