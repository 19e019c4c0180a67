import type { Condition } from '../api/schema.ts'
import type { TalosCluster } from '../api/talos-cluster.ts'
import { isExpiring } from '../core/expiring.ts'
import { iso } from '../core/ledger.ts'
import type { Clock } from '../ports/clock.ts'
import type { Talos } from '../ports/talos.ts'
import { condition } from './conditions.ts'
import type { Log } from './log.ts'

/** On a TalosCluster whose talosconfig will soon be worth nothing. */
export const CREDENTIAL_EXPIRING = 'CredentialExpiring'

/** Told while it is expiring. */
export const credentialExpiring = (
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  cluster: TalosCluster,
  { credentialBegins, credentialExpires }: Pick<Talos, 'credentialBegins' | 'credentialExpires'>,
): readonly Condition[] => {
  const now = clock.now()
  if (!isExpiring({ begins: credentialBegins, expires: credentialExpires }, now)) return []
  const { conditions } = cluster.status
  const { namespace, name } = cluster.metadata
  const secret = `Secret ${namespace}/${cluster.spec.talosconfigSecretRef.name}`
  const message = `The client certificate of the talosconfig expires on ${iso(credentialExpires)}. Make a new one (talosctl config new --roles os:admin) and put it into ${secret}.`
  if (!conditions?.some(c => c.type === CREDENTIAL_EXPIRING)) log.warn(message, { cluster: `${namespace}/${name}` })
  const told = { type: CREDENTIAL_EXPIRING, status: 'True', reason: 'CertificateExpiresSoon', message } as const
  return [condition(conditions, cluster.metadata.generation, now, told)]
}

/** What was said of the credential stays where nothing newer is known. */
export const besideReady = (cluster: TalosCluster): readonly Condition[] =>
  cluster.status.conditions?.filter(c => c.type === CREDENTIAL_EXPIRING) ?? []
