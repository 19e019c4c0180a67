import { z } from 'zod'
import type { Metadata, ResourceDefinition } from './schema.ts'
import { answeredGeneration, conditions, nameRef, text, timestamp } from './schema.ts'

const spec = z
  .object({
    clusterRef: nameRef('TalosCluster, in the same namespace').meta({ description: 'The cluster that the machine belongs to.' }),
    address: text(253).min(1).meta({ description: "The machine's own address, never a virtual or load-balanced one." }),
    role: z.enum(['controlplane', 'worker']).meta({ description: 'Whether it is a control plane or a worker.' }),
    installImage: text(512)
      .optional()
      .meta({ description: 'The installer image for this machine, without a tag, where it is to differ from the one that runs.' }),
  })
  .meta({ description: 'Which machine it is, and what is wanted of it.' })

const status = z
  .object({
    observedGeneration: answeredGeneration(),
    hostname: text(253).optional().meta({ description: 'Its host name, as the machine itself spells it.' }),
    nodeName: text(253).optional().meta({ description: 'The name of its Kubernetes Node.' }),
    uuid: text(64).optional().meta({ description: 'Its SMBIOS UUID.' }),
    nodeID: text(128).optional().meta({ description: "Talos' node identity." }),
    bootID: text(64).optional().meta({ description: 'The id of its current boot; another one proves a reboot.' }),
    talosVersion: text(64).optional().meta({ description: 'The Talos version that it runs.' }),
    schematic: text(128).optional().meta({ description: 'The Image Factory schematic id of what it runs.' }),
    kubeletVersion: text(64).optional().meta({ description: 'The version of its kubelet.' }),
    stage: text(32).optional().meta({ description: 'The stage that Talos reports, for example running.' }),
    etcdMemberID: text(32).optional().meta({ description: 'Its etcd member id, in hexadecimal digits; absent on workers.' }),
    lastSeen: timestamp().optional().meta({ description: 'When its Talos API answered last.' }),
    conditions: conditions().optional(),
  })
  .meta({ description: 'What was seen of the machine last.' })

export type TalosMachineSpec = z.infer<typeof spec>
export type TalosMachineStatus = z.infer<typeof status>
export type TalosMachine = { readonly metadata: Metadata; readonly spec: TalosMachineSpec; readonly status: TalosMachineStatus }
export type Role = TalosMachineSpec['role']

export const talosMachine: ResourceDefinition = {
  kind: 'TalosMachine',
  plural: 'talosmachines',
  singular: 'talosmachine',
  shortNames: ['tm'],
  description: 'One machine of a Talos cluster.',
  spec,
  status,
  specRules: [],
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name', description: 'The cluster.' },
    { name: 'Role', type: 'string', jsonPath: '.spec.role', description: 'Its role.' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName', description: 'Its Kubernetes Node.' },
    { name: 'Address', type: 'string', jsonPath: '.spec.address', description: 'Its address.' },
    { name: 'Talos', type: 'string', jsonPath: '.status.talosVersion', description: 'Talos version.' },
    { name: 'Kubelet', type: 'string', jsonPath: '.status.kubeletVersion', description: 'Kubelet version.', priority: 1 },
    { name: 'Stage', type: 'string', jsonPath: '.status.stage', description: 'Talos machine stage.' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status', description: 'Running and ready.' },
    { name: 'Schematic', type: 'string', jsonPath: '.status.schematic', description: 'Image Factory schematic id.', priority: 1 },
    { name: 'Boot', type: 'string', jsonPath: '.status.bootID', description: 'Boot id.', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Since when it exists.' },
  ],
}
