import { z } from 'zod'
import type { Metadata, ResourceDefinition } from './schema.ts'
import { answeredGeneration, conditions, duration, int32, limit, matching, objectName, text, timestamp } from './schema.ts'

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

/** Any object of the managed cluster, but no Secret: what an expression sees of it is shown in status. */
const objectRef = z.object({
  apiVersion: matching(317, '^([a-z0-9.-]+/)?v[a-z0-9]+$', 'must be an API version, for example v1 or ceph.rook.io/v1').meta({
    description: 'Its API version, for example v1 or ceph.rook.io/v1.',
  }),
  kind: matching(63, '^[A-Z][A-Za-z0-9]*$', 'must be a kind, for example CephCluster').meta({
    description: 'Its kind, for example CephCluster.',
  }),
  namespace: objectName().optional().meta({ description: 'Its namespace; absent where the type has none.' }),
  name: objectName().meta({ description: 'Its name.' }),
})
export type ObjectRef = z.infer<typeof objectRef>

export const healthGate = z.object({
  name: matching(63, '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', 'must be lower-case letters, digits and -').meta({
    description: 'What the gate is called in messages.',
  }),
  objectRef: objectRef.meta({
    description: 'The object that is asked. It is read with the rights that Ichor has in the cluster.',
    'x-kubernetes-validations': [
      {
        rule: "!(self.apiVersion == 'v1' && self.kind == 'Secret')",
        message: 'a gate cannot look at a Secret: what it sees is shown in status',
      },
    ],
  }),
  expr: text(2048).min(1).meta({
    description:
      'What must be true, in CEL. object (or self) is the object, status is its status. Only true lets the next machine begin; false, an error, a missing field and a missing object do not.',
  }),
  stableFor: duration().default('1m').meta({ description: 'How long it must have been true without a gap.' }),
  timeout: limit().optional().meta({
    description: 'How long an operation waits for it before it is Paused with HealthGateTimeout. Absent: as long as it takes.',
  }),
})
export type HealthGate = z.infer<typeof healthGate>

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
    healthGates: z
      .array(healthGate)
      .max(16)
      .optional()
      .meta({
        description:
          'What must hold before any operation begins a machine, the first and each that follows. A machine that is open is never held up.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
  })
  .meta({ description: 'How to reach the cluster, and when it may be worked on.' })

const range = z.object({
  lowest: text(64).meta({ description: 'The lowest version seen.' }),
  highest: text(64).meta({ description: 'The highest version seen.' }),
})

const status = z
  .object({
    observedGeneration: answeredGeneration(),
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
  // The lock of a cluster is the Lease `ichor-NAME`, and that of this name is where controllers elect their leader.
  rules: [
    {
      rule: "self.metadata.name != 'controller'",
      message: 'a TalosCluster cannot be called controller: its lock would be the Lease of the leader',
    },
    // Its lock and its machines carry the name as a label.
    {
      rule: 'size(self.metadata.name) <= 63',
      message: 'the name of a TalosCluster has at most 63 characters, because its machines carry it as a label',
    },
  ],
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
