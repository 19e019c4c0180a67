/** What is worth waking somebody for, as a rule of Prometheus; in the words of docs/observability.md. */
export type Alert = {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly severity: 'warning' | 'critical'
  readonly summary: string
  readonly description: string
}

const operation = 'Operation {{ $labels.namespace }}/{{ $labels.operation }} of cluster {{ $labels.cluster }}'

export const ALERTS: readonly Alert[] = [
  {
    alert: 'IchorOperationStopped',
    expr: 'time() - ichor_operation_stopped_timestamp_seconds{reason!="PausedByOperator"} > 900',
    for: '1m',
    severity: 'warning',
    summary: `${operation} stands still: {{ $labels.reason }}`,
    description:
      'It waits for a person, and keeps the lock of its cluster if it has it. ichor operation get {{ $labels.operation }} -n {{ $labels.namespace }} says what was expected and what was seen; mend that and resume it, or cancel it.',
  },
  {
    alert: 'IchorOperationForgotten',
    expr: 'time() - ichor_operation_stopped_timestamp_seconds{reason="PausedByOperator"} > 86400',
    for: '1m',
    severity: 'warning',
    summary: `${operation} has been paused for a day`,
    description:
      'It keeps the lock of its cluster, so no other operation begins. Go on with ichor operation resume {{ $labels.operation }} -n {{ $labels.namespace }}, or cancel it.',
  },
  {
    alert: 'IchorNotLed',
    expr: '(sum(ichor_leader) or vector(0)) != 1',
    for: '5m',
    severity: 'critical',
    summary: 'Controllers of Ichor that lead: {{ $value }}. It should be one',
    description:
      'With none, nothing goes on: look whether pods of the Deployment ichor-controller run and are ready, and at the Lease ichor-controller. With two, look whether there are two installations.',
  },
  {
    alert: 'IchorClusterUnseen',
    expr: 'time() - ichor_cluster_last_seen_timestamp_seconds > 900',
    for: '1m',
    severity: 'warning',
    summary: 'No machine of cluster {{ $labels.namespace }}/{{ $labels.cluster }} has been seen for a quarter of an hour',
    description:
      'Its machines do not answer on port 50000, or do not take the talosconfig: ichor cluster get {{ $labels.cluster }} -n {{ $labels.namespace }}.',
  },
  {
    alert: 'IchorCredentialExpiring',
    expr: 'ichor_cluster_credential_expiring_timestamp_seconds - time() < 2592000',
    for: '1h',
    severity: 'warning',
    summary: 'The client certificate for cluster {{ $labels.namespace }}/{{ $labels.cluster }} expires in {{ $value | humanizeDuration }}',
    description:
      'After that Ichor cannot talk to its machines. Put a new talosconfig into the Secret of the TalosCluster: talosctl config new --roles os:admin.',
  },
  {
    alert: 'IchorBlind',
    expr: 'ichor_watch_staleness_seconds > 300 and ichor_leader == 1',
    for: '5m',
    severity: 'warning',
    summary: 'The leading controller of Ichor does not know what is going on',
    description:
      'What it watches has not been known to be current for {{ $value | humanizeDuration }}: is its API server well? Its log says what it hears.',
  },
  {
    alert: 'IchorStuck',
    expr: 'ichor_queue_oldest_seconds > 300 and ichor_leader == 1',
    for: '5m',
    severity: 'critical',
    summary: 'The leading controller of Ichor does not come to what is due',
    description:
      'Something has been in its queue for {{ $value | humanizeDuration }}. It is started anew after a quarter of an hour; its log says at what it was.',
  },
]
