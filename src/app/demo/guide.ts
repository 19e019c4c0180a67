import type { Colors } from '../cli/terminal.ts'
import type { DemoOptions } from './options.ts'
import { sourcesOf, targetsFrom } from './version-pairs.ts'

const count = (n: number, one: string): string => `${n} ${one}${n === 1 ? '' : 's'}`

/** What was started, before anything happens. */
export const openingLines = (
  started: {
    readonly options: DemoOptions
    readonly addresses: readonly string[]
    readonly kubernetes: { readonly url: string; readonly about: string }
    readonly controller: { readonly pid: number; readonly logPath: string }
    readonly folder: string
  },
  colors: Colors,
): readonly string[] => {
  const { options, addresses, kubernetes, controller, folder } = started
  const rows = [
    ['Machines', `${addresses[0]}${addresses.length > 1 ? ` to ${addresses.at(-1)}` : ''}, each with the Talos API on port 50000`],
    ['Kubernetes', `${kubernetes.url} (${kubernetes.about})`],
    ['Controller', `process ${controller.pid}, its log: ${controller.logPath}`],
    ['Files', folder],
  ]
  return [...rows.map(([what = '', text]) => `  ${colors.dim(what.padEnd(12))}${text}`), '', speedLine(options)]
}

export const titleLine = ({ controlPlanes, workers, from }: DemoOptions, colors: Colors): string =>
  `${colors.bold('Ichor demo')}: ${count(controlPlanes, 'control plane')}${workers > 0 ? ` and ${count(workers, 'worker')}` : ''} with Talos ${from}, simulated on this machine`

const speedLine = ({ speed }: DemoOptions): string =>
  speed === 1
    ? 'Everything takes as long as on real machines.'
    : `Everything is ${speed} times as fast as on real machines (--speed 1 is real time). Deadlines are not scaled: they are the real ones.`

/** How to look at it and steer it from another terminal. */
export const guideLines = (
  given: {
    readonly kubeconfigPath: string
    readonly talosconfigPath: string
    readonly operation: string
    readonly addresses: readonly string[]
    readonly ichor: string
    /** The version that runs by now, with `v`. */
    readonly to: string
    /** The Kubernetes API goes away during a reboot. */
    readonly isOutage: boolean
  },
  colors: Colors,
): readonly string[] => {
  const { kubeconfigPath, talosconfigPath, operation, addresses, ichor, to, isOutage } = given
  const talosctl = `talosctl --talosconfig ${talosconfigPath}`
  const [first = ''] = addresses
  return [
    colors.bold('The cluster keeps running. Look at it and steer it from another terminal, in this folder:'),
    '',
    `  export KUBECONFIG=${kubeconfigPath}`,
    `  ${ichor} operation list`,
    ...(operation ? [`  ${ichor} operation get ${operation}`] : []),
    `  ${ichor} machine list`,
    `  kubectl get top,tm -A`,
    `  kubectl get nodes -o wide`,
    `  ${talosctl} version`,
    `  ${talosctl} get members -n ${first}`,
    '',
    ...newerLines(to, ichor, isOutage),
    '',
    colors.bold('Ctrl-C ends the demo, its controller and its files.'),
  ]
}

/** What is left to upgrade to. */
export const newerLines = (to: string, ichor: string, isOutage: boolean): readonly string[] => {
  const newest = targetsFrom(to).at(-1)
  const acknowledged = isOutage ? ' --acknowledge api-outage' : ''
  if (newest)
    return [
      `The registry has newer releases, up to ${newest}. To go there:`,
      '',
      `  ${ichor} upgrade talos ${newest} --wait${acknowledged}`,
    ]
  const before = sourcesOf(to).at(-1)
  return [`The registry has nothing newer than ${to}${before ? `; start with --to ${before} to have something left to do` : ''}.`]
}
