import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Fault } from '../../ports/fault.ts'
import { formatAddress, type MachineAddress, parseAddress } from './address.ts'
import type { Calls } from './calls.ts'

/** Such a machine is asked for again and again while it is away; the other way is tried only so often. */
const keptMs = 30_000
const deadlineMs = 3_000
/** A cluster may name many endpoints, and a few tell enough. */
const mostAsked = 2

/** The endpoint through which it answers; else those that answer, and not for it. */
type Told = { readonly through?: string; readonly without?: readonly string[] }

/** What fails at a certificate is not the way: the clocks or the certificates are. */
function explanation({ through, without = [] }: Told, { message }: Fault): string {
  if (through !== undefined)
    return `; it answers through ${through}, so it runs${/certificate/.test(message) ? '' : ', and what is cut is the way from here to it'}`
  return without.length > 0 ? `; nor does it answer through ${without.join(' or ')}` : ''
}

/**
 * Tells of a machine that does not answer from here whether it answers through a control plane, as machines pass calls on to each other: then it runs, and
 * only the way between it and us is gone. The fault stays what it is, and says so.
 */
export function otherWay(
  calls: Calls,
  endpoints: readonly MachineAddress[],
  clock: Clock,
): (address: string, fault: Fault) => Promise<Fault> {
  const kept = new Map<string, { readonly until: number; readonly told: Promise<Told> }>()

  async function told(address: string): Promise<Told> {
    const node = parseAddress(address)?.host
    const asked = endpoints.filter(({ host }) => host !== node).slice(0, mostAsked)
    if (node === undefined) return {}
    const answers = await Promise.all(
      asked.map(async endpoint => {
        const at = formatAddress(endpoint)
        const [passedOn, itself] = await Promise.all([
          calls.unary(at, MachineService.method.version, {}, { deadlineMs, node }),
          calls.unary(at, MachineService.method.version, {}, { deadlineMs }),
        ])
        return { at, passesOn: passedOn.ok, answers: itself.ok }
      }),
    )
    const through = answers.find(({ passesOn }) => passesOn)
    return through ? { through: through.at } : { without: answers.filter(one => one.answers).map(({ at }) => at) }
  }

  return async (address, fault) => {
    if (fault.kind !== 'unreachable') return fault
    const now = clock.monotonic()
    for (const [old, { until }] of kept) if (until <= now) kept.delete(old)
    const known = kept.get(address) ?? { until: now + keptMs, told: told(address) }
    kept.set(address, known)
    const heard = await known.told
    return { ...fault, message: `${fault.message}${explanation(heard, fault)}`, ...(heard.through === undefined ? {} : { runs: true }) }
  }
}
