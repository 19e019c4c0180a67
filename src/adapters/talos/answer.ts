import { failed, ok, type Result } from '../../ports/fault.ts'
import { redacted } from './redact.ts'

/** What answers of MachineService carry beside their content, where a proxy has a failure to tell. */
type Answered = { readonly metadata?: { readonly error: string } | undefined }

/** The one message of an answer: we ask one machine, at its own address. */
export function onlyMessage<M extends Answered>(address: string, call: string, messages: readonly M[]): Result<M> {
  const [message, ...others] = messages
  if (!message) return failed('unknown', `${address}: ${call}: the answer is empty`)
  if (others.length > 0) return failed('unknown', `${address}: ${call}: ${messages.length} machines answered where one was asked`)
  if (message.metadata?.error) return failed('unknown', `${address}: ${call}: ${redacted(message.metadata.error)}`)
  return ok(message)
}
