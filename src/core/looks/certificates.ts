import { formatDuration } from '../../api/duration.ts'
import { isExpiring } from '../expiring.ts'
import { iso } from '../ledger.ts'
import type { Certificate, ClusterSight } from './cluster-sight.ts'
import { type Finding, type Look, orFine, unseenFor, warning, wrong } from './look.ts'

const DAY_MS = 24 * 3_600_000
const AUTHORITY_MS = 180 * DAY_MS

/** Whether a certificate ends soon that one needs to get in: of the talosconfig, the kubeconfig, the API server, and the CAs. */
export const certificates: Look<ClusterSight> = {
  name: 'certificates',
  look: ({ access, world, certificates: others, isRegistered, hidden }) => {
    const { cluster, now } = world
    const { name, namespace } = cluster.metadata
    const secret = cluster.spec.talosconfigSecretRef
    const put = isRegistered ? ` and put it into Secret ${namespace}/${secret.name}, key ${secret.key}` : ''
    const own: readonly Certificate[] = access.ok
      ? [
          {
            what: 'client certificate of the talosconfig',
            begins: access.value.credentialBegins,
            expires: access.value.credentialExpires,
            remedy: `Make a new one${put}. Where Talos itself writes it (ServiceAccount), see why it was not renewed: kubectl describe tsa -n ${namespace}.`,
            command: 'talosctl config new --roles os:admin FILE',
          },
          {
            what: `CA of the Talos API${isRegistered ? ` of ${name}` : ''}`,
            isAuthority: true,
            begins: -Infinity,
            expires: access.value.authorityExpires,
            remedy: 'Plan its rotation.',
            command: 'talosctl rotate-ca --talos --kubernetes=false --dry-run',
          },
        ]
      : []
    const all = [...own, ...others]
    const found = judgedCertificates(all, now)
    if (all.length > 0) return orFine(found, endOf(all, now))
    const fault = hidden ?? (access.ok ? undefined : access.fault)
    return [unseenFor('Certificates', fault ?? { kind: 'unknown', message: 'none is known' })]
  },
}

/** Of CAs half a year before the end. */
export const judgedCertificates = (all: readonly Certificate[], now: number): readonly Finding[] =>
  all.flatMap(certificate => {
    const { what, begins, expires, remedy, command, isAuthority } = certificate
    const cure = { remedy, ...(command === undefined ? {} : { command }) }
    if (expires <= now) return [wrong(`The ${what} expired on ${day(expires)}.`, cure)]
    if (begins > now) return [wrong(`The ${what} is valid from ${iso(begins)} on only: is the clock here right?`, cure)]
    const isNear = isAuthority ? expires - now < AUTHORITY_MS : isExpiring(certificate, now)
    return isNear ? [warning(`The ${what} expires in ${formatDuration(expires - now)}, on ${day(expires)}.`, cure)] : []
  })

/** The first of them to end. */
export const endOf = (all: readonly Certificate[], now: number): string => {
  const first = all.toSorted((a, b) => a.expires - b.expires)[0]
  if (!first) return 'None is needed.'
  const when = `on ${day(first.expires)} (${formatDuration(first.expires - now)})`
  return all.length === 1 ? `The ${first.what} ends ${when}.` : `Of ${all.length} the first to end is the ${first.what}, ${when}.`
}

const day = (time: number): string => iso(time).slice(0, 10)
