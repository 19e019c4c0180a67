import { Command } from 'commander'
import { clusterCommand } from './commands/cluster.ts'
import type { Shell } from './commands/command.ts'
import { completeCommand, completionCommand } from './commands/completion.ts'
import { withExamples } from './commands/command.ts'
import { doctorCommand } from './commands/doctor.ts'
import { installCommand } from './commands/install.ts'
import { uninstallCommand } from './commands/uninstall.ts'
import { lockCommand } from './commands/lock.ts'
import { machineCommand } from './commands/machine.ts'
import { operationCommand } from './commands/operation.ts'
import { versionCommand } from './commands/version.ts'
import { exitCodesText } from './exit-codes.ts'
import type { Exit } from './exit-codes.ts'
import { oneValueEach } from './repeatable.ts'
import type { Outside } from './session.ts'
import { defaultNamespace } from './session.ts'

/**
 * The whole command line as a value: what runs, what the help shows and what the reference page is made of. `start` makes the commands that
 * start an operation; it comes from outside because the schemas behind them are slow to load. `leave` hears how a command ended; errors are
 * thrown: Stop, and commander's own.
 */
export const program = (outside: Outside, start: (shell: Shell) => readonly Command[], leave: (exit: Exit) => void = () => {}): Command => {
  const shell: Shell = { outside, leave }
  const root = new Command(outside.calledAs)
    .description('Safe, resumable operations on Talos Linux clusters')
    .option(
      '-n, --namespace <name>',
      `the namespace (default: the one of the kubeconfig's context unless that is "default", else ${defaultNamespace})`,
    )
    .option('--context <name>', "the kubeconfig's context (default: its current one)")
    .option(
      '--kubeconfig <file>',
      'the kubeconfig (default: the files of $KUBECONFIG, else ~/.kube/config, else the ServiceAccount of the pod)',
    )
    .configureHelp({ showGlobalOptions: true })

  for (const command of start(shell)) root.addCommand(command)
  root.addCommand(operationCommand(shell))
  root.addCommand(clusterCommand(shell))
  root.addCommand(machineCommand(shell))
  root.addCommand(lockCommand(shell))
  root.addCommand(doctorCommand(shell))
  root.addCommand(installCommand(shell))
  root.addCommand(uninstallCommand(shell))
  root.addCommand(handedOn('controller', 'Run the controller (what the Deployment starts). Its own options: controller --help'))
  root.addCommand(handedOn('demo', 'Run a whole simulated Talos cluster on this machine and upgrade it. Its own options: demo --help'))
  root.addCommand(handedOn('sim', 'Run simulated Talos machines alone, for other tools to talk to. Its own options: sim --help'))
  root.addCommand(completionCommand(shell))
  root.addCommand(completeCommand(shell), { hidden: true })
  root.addCommand(versionCommand(shell))

  withExamples(root, shell, [
    'upgrade talos v1.13.9 --plan',
    'upgrade talos v1.13.9 --wait',
    'operation list',
    'operation watch talos-1-13-9',
    'machine list -A -o wide',
  ])
  root.addHelpText('after', `\nExit codes:\n${exitCodesText()}\n\nColours follow NO_COLOR and FORCE_COLOR.`)
  quieten(root)
  return root
}

/** Commands that are programs of their own. Main starts them before this parser sees their arguments; here they are for the help. */
const handedOn = (name: string, description: string): Command =>
  new Command(name).description(description).argument('[arguments...]', 'see its own help').allowUnknownOption().helpOption(false)

// Errors are thrown to main, which alone decides what is printed and how the process ends.
const quieten = (command: Command): void => {
  oneValueEach(command)
  command
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({ outputError: () => {} })
    .configureHelp({ showGlobalOptions: true })
  for (const inner of command.commands) quieten(inner)
}
