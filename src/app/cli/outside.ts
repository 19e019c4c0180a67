import type { KindBlock } from '../../api/talos-operation.ts'
import { connect } from './kube-api.ts'
import { calledAsOf, readUserFile } from './main.ts'
import type { ConnectionChoice, Outside } from './session.ts'
import { processTerminal } from './terminal.ts'
import { version } from './version.ts'

/** Read by Kubernetes' tools, which take an unquoted n, y, on or off for a boolean, as a key too (YAML 1.1). */
const YAML = { version: '1.1', compat: 'yaml-1.1', lineWidth: 0, aliasDuplicateObjects: false } as const

/** The real world. What only some commands need is loaded when they ask for it. */
export const realOutside = (kinds: readonly KindBlock[], plan: Outside['plan'], terminal = processTerminal()): Outside => ({
  terminal,
  calledAs: calledAsOf(process.env['ICHOR_CALLED_AS'] ?? process.argv[1] ?? ''),
  version,
  kinds,
  connect: choice => connect(choice, `ichor/${version}`),
  plan,
  readFile: readUserFile,
  certificates: async choice => (await import('../doctor/sights.ts')).ownCertificates(kubeconfigOf(choice)),
  registeredSight: async (key, choice, controllerNodes) =>
    (await import('../doctor/sights.ts')).registeredSight(kubeconfigOf(choice), `ichor/${version}`, key, controllerNodes),
  strangerSight: async (stranger, choice) =>
    (await import('../doctor/sights.ts')).strangerSight(kubeconfigOf(choice), `ichor/${version}`, stranger),
  crds: async () => (await import('./install-objects.ts')).crds(),
  installed: async wanted => (await import('./install-objects.ts')).installed(wanted),
  yaml: async value => (await import('yaml')).stringify(value, YAML),
})

/** The words of the flags as the loader of kubeconfigs has them. */
export const kubeconfigOf = ({ kubeconfig, context }: ConnectionChoice) => ({
  ...(kubeconfig === undefined ? {} : { kubeconfigPath: kubeconfig }),
  ...(context === undefined ? {} : { context }),
})
