import type { ApiFault, Cause } from '../../adapters/kube/classify.ts'
import type { Exit } from './exit-codes.ts'
import { roleHints } from './roles-with.ts'

/** More that is said below: what there is, or what would be right; where that is a command, it is told as it is typed here, with the namespace that was given. */
export type Hint = string | { readonly before: string; readonly command: string }

/** Ends the command with a line for the person who typed it. Caught once, in main. */
export class Stop extends Error {
  readonly exit: Exit
  readonly hints: readonly Hint[]

  constructor(exit: Exit, message: string, hints: readonly Hint[] = []) {
    super(message)
    this.exit = exit
    this.hints = hints
  }
}

/** The words for a fault of the Kubernetes API: what was tried, what is wrong, what would be right. */
export const faultStop = (fault: ApiFault, tried: string, server: string): Stop => {
  const said = (hints: readonly string[] = []) => new Stop('error', `cannot ${tried}: ${fault.sentence ?? fault.message}`, hints)
  switch (fault.kind) {
    case 'unreachable':
      return new Stop('error', `cannot reach the Kubernetes API server at ${server}: ${fault.sentence ?? fault.message}`, [
        'Is it running, and is it the right one? --context and --kubeconfig choose another.',
      ])
    case 'unsupported':
      return crdsMissing(server)
    case 'unauthenticated':
      return said(['The API server does not accept the credential of this context: log in anew, or choose another with --context.'])
    case 'forbidden':
      return said(roleHints(fault.message))
    case 'wrongPeer':
      return said(['The certificate of the API server is not from the CA in the kubeconfig: is it the right server?'])
    case 'conflict':
      return said(['Somebody else changed it at the same moment. Look at it and try again.'])
    case 'invalid':
      return fault.causes.length > 0 ? new Stop('error', `cannot ${tried}: the API server refuses it`, fault.causes.map(causeText)) : said()
    case 'busy':
    case 'notFound':
    case 'alreadyExists':
    case 'precondition':
    case 'cancelled':
    case 'unknown':
      return said()
  }
}

export const crdsMissing = (server: string): Stop =>
  new Stop('error', `Ichor's resource types are not installed on ${server}`, [
    {
      before: 'docs/install.md tells how to install Ichor; for a controller that you run yourself:',
      command: 'ichor install --no-controller',
    },
  ])

/** `a, b and 3 more`. */
export const named = (names: readonly string[], most = 8): string =>
  names.length <= most ? names.join(', ') : `${names.slice(0, most).join(', ')} and ${names.length - most} more`

// The server repeats what it was given before it says what is wrong with it.
const causeText = ({ field, message }: Cause): string => {
  const words = message.replace(/^(Invalid|Unsupported) value: ("(\[?object|[^"]{200,}).*?": |null: |"object": )/, '')
  return field && field !== '<nil>' ? `${field}: ${words}` : words
}
