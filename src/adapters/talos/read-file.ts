import { MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { Calls } from './calls.ts'
import { redacted } from './redact.ts'

/** What is read here has a line or two. */
const mostLength = 4_096

/** A short file of a machine, as text; only os:admin may read it. */
export async function readShortFile(calls: Calls, address: string, path: string): Promise<Result<string>> {
  const decoder = new TextDecoder()
  let text = ''
  let error = ''
  const read = await calls.stream(
    address,
    MachineService.method.read,
    { path },
    ({ bytes, metadata }) => {
      error ||= metadata?.error ?? ''
      text += decoder.decode(bytes, { stream: true })
      return text.length > mostLength ? 'stop' : undefined
    },
    { subject: path },
  )
  if (!read.ok) return read
  return error ? failed('unknown', `${address}: MachineService.Read ${path}: ${redacted(error)}`) : ok(text)
}
