import { parseArgs } from 'node:util'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Listen } from './serve-status.ts'

export type ControllerSettings = {
  readonly kubeconfig: string | undefined
  readonly context: string | undefined
  /** Watched and worked on; all namespaces where undefined. */
  readonly namespace: string | undefined
  /** Where the Lease of the leader election lives. */
  readonly leaseNamespace: string
  readonly identity: string
  readonly self: { readonly namespace: string; readonly pod: string; readonly node: string } | undefined
  readonly pace: number
  /** Where metrics and probes are answered; nowhere where undefined. */
  readonly listen: Listen | undefined
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}

export const CONTROLLER_HELP = `Usage: ichor controller [options]

Runs the controller until it is told to stop. In a pod it uses the pod's ServiceAccount.

  --kubeconfig FILE       the cluster that Ichor's resources live in (default: $KUBECONFIG, then the pod's ServiceAccount)
  --context NAME          a context of that file
  -n, --namespace NAME    look at this namespace only (default: all)
  --lease-namespace NAME  where the Lease of the leader election lives (default: $POD_NAMESPACE, then ichor-system)
  --identity NAME         of this process and no other, or two of that name both lead (default: $POD_NAME or the host name, with something random)
  --pace N                divide the controller's own waits; for demonstrations on simulated machines only (default: 1)
  --listen ADDRESS        where /metrics, /healthz and /readyz are answered, as HOST:PORT or :PORT (default: :8080 in a pod, else nowhere)
  --log-level LEVEL       debug, info, warn or error (default: info)
  -h, --help

$POD_NAME, $POD_NAMESPACE and $NODE_NAME tell the controller about its own pod, so that it drains it last.
`

/** What the command line and the environment say, or one sentence of what is wrong with them. */
export const readSettings = (
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): { readonly ok: true; readonly settings: ControllerSettings | 'help' } | { readonly ok: false; readonly problem: string } => {
  let values
  try {
    ;({ values } = parseArgs({
      args: [...argv],
      options: {
        kubeconfig: { type: 'string' },
        context: { type: 'string' },
        namespace: { type: 'string', short: 'n' },
        'lease-namespace': { type: 'string' },
        identity: { type: 'string' },
        pace: { type: 'string' },
        listen: { type: 'string' },
        'log-level': { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }))
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) }
  }
  if (values.help) return { ok: true, settings: 'help' }
  const pace = Number(values.pace ?? 1)
  if (!(pace >= 1 && pace <= 1000)) return { ok: false, problem: `--pace ${values.pace} is not a number from 1 to 1000` }
  const logLevel = values['log-level'] ?? 'info'
  if (logLevel !== 'debug' && logLevel !== 'info' && logLevel !== 'warn' && logLevel !== 'error')
    return { ok: false, problem: `--log-level ${logLevel} is none of debug, info, warn, error` }
  const listen = listenOf(values.listen ?? (env['POD_NAME'] ? ':8080' : undefined))
  if (listen === 'wrong') return { ok: false, problem: `--listen ${values.listen} is not HOST:PORT or :PORT, for example 127.0.0.1:8080` }
  const { POD_NAME: pod, POD_NAMESPACE: podNamespace, NODE_NAME: node } = env
  return {
    ok: true,
    settings: {
      kubeconfig: values.kubeconfig,
      context: values.context,
      // The chart's way to say all.
      namespace: values.namespace || undefined,
      leaseNamespace: values['lease-namespace'] ?? podNamespace ?? 'ichor-system',
      // A pod of a StatefulSet may come again under its name while the one before still runs on a node that nobody reaches.
      identity: values.identity ?? `${pod ?? hostname()}_${randomUUID().slice(0, 8)}`,
      self: pod && podNamespace && node ? { pod, namespace: podNamespace, node } : undefined,
      pace,
      listen,
      logLevel,
    },
  }
}

/** Without a host: on all addresses of the machine, of both families where it has both. */
const listenOf = (text: string | undefined): Listen | undefined | 'wrong' => {
  if (text === undefined) return undefined
  const [, bracketed, plain = '', digits = ''] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]*)):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  return digits === '' || port > 65_535 ? 'wrong' : { host: bracketed ?? (plain || '::'), port }
}
