import { type KubeClient, kubeClient } from '../adapters/kube/client.ts'
import { kubeConnections } from '../adapters/kube/connections.ts'
import type { HomeOptions, OpenHome } from '../adapters/kube/home.ts'
import { openHome } from '../adapters/kube/home.ts'
import { openKube } from '../adapters/kube/kube.ts'
import type { KubeConfig } from '../adapters/kube/kubeconfig.ts'
import type { RequestRecord } from '../adapters/kube/transport.ts'
import { openTransport } from '../adapters/kube/transport.ts'
import type { CallReport } from '../adapters/talos/calls.ts'
import { talosConnections } from '../adapters/talos/connections.ts'
import type { Connections } from '../ports/connections.ts'
import { systemClock } from './system-clock.ts'

export type OpenPorts = {
  /** Of the cluster that Ichor's own resources live in. */
  readonly client: KubeClient
  readonly home: OpenHome
  readonly connections: Connections
  readonly close: () => void
}

export type PortOptions = {
  readonly config: KubeConfig
  readonly userAgent: string
  /** Only this namespace is watched and listed; all where absent. */
  readonly namespace?: string
  /** Who writes the Events. */
  readonly instance?: string
  readonly problem?: (message: string) => void
  readonly onRequest?: (record: RequestRecord) => void
  readonly onCall?: (report: CallReport) => void
  /** As `HomeOptions.policies`. */
  readonly policies?: HomeOptions['policies']
}

/** The real outside: the Kubernetes API that a kubeconfig names, and the Talos and Kubernetes APIs that TalosClusters refer to. */
export const openPorts = ({ config, userAgent, namespace, instance, problem, onRequest, onCall, policies }: PortOptions): OpenPorts => {
  const clock = systemClock
  const watching = { ...(onRequest ? { onRequest } : {}), env: process.env }
  const transport = openTransport({ config, clock, userAgent, ...watching })
  const client = kubeClient(transport, { fieldManager: 'ichor-controller' })
  const home = openHome({
    client,
    clock,
    random: Math.random,
    ...(namespace ? { namespace } : {}),
    ...(instance ? { instance } : {}),
    ...(problem ? { problem } : {}),
    ...(policies ? { policies } : {}),
  })
  const kube = kubeConnections({ home, own: openKube(client), clock, userAgent, ...watching })
  const talos = talosConnections({ secret: home.secret, clock, onCall: onCall && ((_, report) => onCall(report)) })
  return {
    client,
    home,
    connections: {
      talos: talos.talos,
      kube: kube.kube,
      doubt: cluster => {
        talos.doubt(cluster)
        kube.doubt(cluster)
      },
      forget: cluster => {
        talos.forget(cluster)
        kube.forget(cluster)
      },
    },
    close: () => {
      home.close()
      talos.close()
      kube.close()
      transport.close()
    },
  }
}
