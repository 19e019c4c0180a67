import type { Clock } from '../ports/clock.ts'
import type { Fault, Result } from '../ports/fault.ts'
import { failed } from '../ports/fault.ts'
import type { ClusterMember, Talos } from '../ports/talos.ts'

/**
 * The members of a cluster by the first endpoint that answers, all asked at once. Where none does within that time: the fault of one that says something
 * about the credential, else of any.
 */
export const reach = (
  talos: Pick<Talos, 'endpoints' | 'members'>,
  clock: Clock,
  withinMs: number,
): Promise<Result<readonly ClusterMember[]>> =>
  new Promise(resolve => {
    const faults: Fault[] = []
    const ended = (): void => resolve({ ok: false, fault: faults.find(isTelling) ?? faults[0] ?? late(withinMs) })
    if (talos.endpoints.length === 0) return resolve(failed('invalid', 'the talosconfig names no endpoints'))
    const cancel = clock.after(withinMs, ended)
    for (const endpoint of talos.endpoints)
      void talos.members(endpoint).then(answer => {
        if (answer.ok) resolve(answer)
        else faults.push(answer.fault)
        if (!answer.ok && faults.length < talos.endpoints.length) return
        cancel()
        ended()
      })
  })

const isTelling = ({ kind }: Fault): boolean => kind === 'wrongPeer' || kind === 'unauthenticated' || kind === 'forbidden'

const late = (ms: number): Fault => ({ kind: 'unreachable', message: `no answer within ${ms / 1000} s` })
