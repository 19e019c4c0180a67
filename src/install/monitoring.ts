import { ALERTS } from './alerts.ts'
import { COMPONENT } from './controller.ts'
import { type KubeObject, LABELS, object } from './object.ts'
import type { Controller } from './roles.ts'

const API = 'monitoring.coreos.com/v1'

// The metrics about operations and clusters have a label namespace of their own, which is theirs and not that of the pod.
const endpoint = { port: 'status', path: '/metrics', honorLabels: true }

/** What the Prometheus operator is asked for. Not installed by itself: its types are not in every cluster. */
export const monitoring = ({ name, namespace }: Controller) => {
  const place = { name, namespace, labels: COMPONENT }
  const selector = { matchLabels: { ...LABELS, ...COMPONENT } }
  return {
    serviceMonitor: object(API, 'ServiceMonitor', place, { spec: { selector, endpoints: [endpoint] } }),
    // Of pods: also those that are not ready, which a Service leaves out.
    podMonitor: object(API, 'PodMonitor', place, { spec: { selector, podMetricsEndpoints: [endpoint] } }),
    prometheusRule: object(API, 'PrometheusRule', place, {
      spec: {
        groups: [
          {
            name: 'ichor',
            rules: ALERTS.map(({ severity, summary, description, ...rule }) => ({
              ...rule,
              labels: { severity },
              annotations: { summary, description },
            })),
          },
        ],
      },
    }),
  } satisfies Readonly<Record<string, KubeObject>>
}
