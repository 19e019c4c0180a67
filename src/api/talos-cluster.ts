import { z } from 'zod'
import type { Metadata, ResourceDefinition } from './schema.ts'
import { conditions, duration, int32, int64, objectName, text, timestamp } from './schema.ts'

const secretKey = (what: string, key: string) =>
  z.object({
    name: objectName().meta({ description: `Name of the Secret with the ${what}.` }),
    key: text(253).default(key).meta({ description: 'The key of the Secret that holds it.' }),
  })

export const maintenanceWindow = z.object({
  schedule: text(128).meta({ description: 'When the window opens, as a cron expression of five fields.' }),
  duration: duration().meta({ description: 'How long it stays open.' }),
  timeZone: text(64).default('UTC').meta({ description: 'An IANA time zone, for example Europe/Berlin.' }),
})
export type MaintenanceWindow = z.infer<typeof maintenanceWindow>

const spec = z
  .object({
    talosconfigSecretRef: secretKey('talosconfig', 'talosconfig').meta({
      description: 'How to reach the Talos API: a Secret with a talosconfig whose certificate has the role os:admin.',
    }),
    kubeconfigSecretRef: secretKey('kubeconfig', 'kubeconfig').optional().meta({
      description: "How to reach the cluster's Kubernetes API: a Secret with a kubeconfig. Absent: the cluster that Ichor runs in.",
    }),
    imageFactory: text(253).optional().meta({
      description:
        'Host of the Image Factory that builds installer images, for example factory.talos.dev. Absent: the one that the running image names.',
    }),
    maintenanceWindows: z
      .array(maintenanceWindow)
      .max(16)
      .optional()
      .meta({ description: 'Outside these windows nothing new is begun; what is open is carried to its end. Absent: always open.' }),
  })
  .meta({ description: 'How to reach the cluster, and when it may be worked on.' })

const range = z.object({
  lowest: text(64).meta({ description: 'The lowest version seen.' }),
  highest: text(64).meta({ description: 'The highest version seen.' }),
})

const status = z
  .object({
    observedGeneration: int64().optional().meta({ description: 'The generation of spec that this status answers.' }),
    clusterID: text(128).optional().meta({ description: 'The id that Talos gives the cluster.' }),
    talos: range.optional().meta({ description: 'Talos versions seen.' }),
    kubernetes: range.optional().meta({ description: 'Kubelet versions seen.' }),
    etcd: range.optional().meta({ description: 'etcd versions seen.' }),
    cilium: text(64).optional().meta({ description: 'Cilium version seen; absent where it does not run.' }),
    kubeProxy: z.enum(['enabled', 'disabled']).optional().meta({ description: 'Whether kube-proxy runs.' }),
    machines: z
      .object({
        total: int32().meta({ description: 'How many machines the cluster has.' }),
        controlPlanes: int32().meta({ description: 'How many of them are control planes.' }),
        ready: int32().meta({ description: 'How many of them are running and ready.' }),
        summary: text(32).meta({ description: 'For print columns: ready of total.' }),
      })
      .optional()
      .meta({ description: 'The machines of the cluster, counted.' }),
    etcdMembers: int32().optional().meta({ description: 'How many members etcd has.' }),
    lock: z
      .object({
        holder: text(512).meta({ description: 'Who holds it.' }),
        since: timestamp().optional().meta({ description: 'Since when.' }),
      })
      .optional()
      .meta({ description: 'The cluster lock; absent when it is free.' }),
    credentialExpires: timestamp().optional().meta({ description: 'When the client certificate of the talosconfig expires.' }),
    conditions: conditions().optional(),
  })
  .meta({ description: 'What was seen of the cluster last.' })

export type TalosClusterSpec = z.infer<typeof spec>
export type TalosClusterStatus = z.infer<typeof status>
export type TalosCluster = { readonly metadata: Metadata; readonly spec: TalosClusterSpec; readonly status: TalosClusterStatus }

export const talosCluster: ResourceDefinition = {
  kind: 'TalosCluster',
  plural: 'talosclusters',
  singular: 'taloscluster',
  shortNames: ['tc'],
  description: 'One Talos cluster: how to reach it, and what was seen of it.',
  spec,
  status,
  specRules: [],
  columns: [
    { name: 'Talos', type: 'string', jsonPath: '.status.talos.lowest', description: 'The lowest Talos version seen.' },
    { name: 'Kubernetes', type: 'string', jsonPath: '.status.kubernetes.lowest', description: 'The lowest kubelet version seen.' },
    { name: 'Machines', type: 'string', jsonPath: '.status.machines.summary', description: 'Machines ready of all.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether the cluster is reachable and healthy.',
    },
    { name: 'Lock', type: 'string', jsonPath: '.status.lock.holder', description: 'Who holds the cluster lock.' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Since when it exists.' },
  ],
}
