import type { Result } from '../../ports/fault.ts'
import { failed } from '../../ports/fault.ts'
import { clockOf, isValidAt } from '../certificates.ts'
import type { World } from '../cluster.ts'
import type { Machine } from '../machine.ts'

/**
 * What a client and a machine say of each other's certificates, each by its own clock; undefined where both are content. The client's clock is the
 * world's.
 */
export const objectionIn = (
  { site, schedule }: World,
  machine: Machine,
  client: { readonly expires: number },
  place: string,
): Extract<Result<never>, { ok: false }> | undefined => {
  const { certificate } = machine
  if (certificate && !isValidAt(certificate, schedule.now())) {
    const why = schedule.now() > certificate.notAfter ? 'has expired' : 'is not yet valid'
    return failed('unreachable', `${place}: the machine's certificate is of another time than the clock here (certificate ${why})`)
  }
  if (clockOf(site, machine) > client.expires)
    return failed(
      'unauthenticated',
      `${place}: the machine takes the client certificate for expired (remote error: tls: expired certificate)`,
    )
  return undefined
}
