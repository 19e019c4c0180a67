import type { TalosCluster } from '../api/talos-cluster.ts'
import type { Result } from './fault.ts'
import type { Key } from './home.ts'
import type { Kube } from './kube.ts'
import type { Talos } from './talos.ts'

/**
 * Opens what a TalosCluster refers to. Connections are kept and shared; the credentials behind them are read anew when their Secret changes.
 * A problem with a Secret (absent, without the key, not to be parsed, expired) is a Fault of kind `invalid`, `notFound` or `unauthenticated` whose
 * message says what would be right.
 */
export type Connections = {
  readonly talos: (cluster: TalosCluster) => Promise<Result<Talos>>
  readonly kube: (cluster: TalosCluster) => Promise<Result<Kube>>
  /** Its Secrets are believed no longer: the next connection reads them anew. Asked before checks, so that they see what is there now. */
  readonly doubt: (cluster: TalosCluster) => void
  /** The cluster is gone: what was opened for it, and the credentials, are let go. */
  readonly forget: (cluster: Key) => void
}
