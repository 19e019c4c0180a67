import type { Machine } from '../../world/machine.ts'
import type { Colors } from '../cli/terminal.ts'
import type { SimOptions } from './options.ts'

/** More machines than this are not listed one by one. */
const LISTED = 12

/** What was started, and how to use it. */
export const guideLines = (
  started: {
    readonly options: SimOptions
    readonly machines: readonly Machine[]
    readonly talosconfigPath: string
    readonly kubeconfigPath: string
    /** Of the Kubernetes API. */
    readonly url: string
  },
  colors: Colors,
): readonly string[] => {
  const { options, machines, talosconfigPath, kubeconfigPath, url } = started
  const [first = ''] = machines[0]?.addresses ?? []
  const listed = machines.slice(0, LISTED)
  return [
    `${colors.bold('Simulated Talos machines')}, ${options.version}, each with the Talos API on port 50000:`,
    '',
    ...listed.map(({ name, role, addresses }) => `  ${(addresses[0] ?? '').padEnd(15)} ${name.padEnd(6)} ${role}`),
    ...(machines.length > LISTED ? [`  and ${machines.length - LISTED} more, to ${machines.at(-1)?.addresses[0]}`] : []),
    '',
    options.speed === 1
      ? 'Everything takes as long as on real machines (--speed).'
      : `Everything is ${options.speed} times as fast as on real machines.`,
    `The simulated Kubernetes API is ${url}.`,
    '',
    colors.bold('From another terminal:'),
    '',
    `  export TALOSCONFIG=${talosconfigPath}`,
    `  export KUBECONFIG=${kubeconfigPath}`,
    `  talosctl -n ${first} version`,
    `  talosctl -n ${first} get members`,
    `  talosctl -n ${first} etcd snapshot db.snapshot`,
    `  talosctl -n ${machines.at(-1)?.addresses[0] ?? first} reboot --wait`,
    '',
    colors.bold('Ctrl-C ends the machines and removes these files.'),
  ]
}
