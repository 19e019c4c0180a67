import { z } from 'zod'
import type { Metadata, ResourceDefinition } from './schema.ts'
import { conditions, int64, nameRef, text, timestamp } from './schema.ts'

const spec = z.object({
  clusterRef: nameRef('TalosCluster, in the same namespace').meta({ description: 'The cluster that the machine belongs to.' }),
  address: text(253).min(1).meta({ description: "The machine's own address, never a virtual or load-balanced one." }),
  role: z.enum(['controlplane', 'worker']).meta({ description: 'Its role.' }),
  installImage: text(512).optional().meta({ description: 'Installer image without tag to use for this machine, where it differs from what runs.' }),
})

const status = z.object({
  observedGeneration: int64().optional().meta({ description: 'The generation of spec that this status answers.' }),
  hostname: text(253).optional().meta({ description: 'Host name, as the machine spells it.' }),
  nodeName: text(253).optional().meta({ description: 'Its Kubernetes Node.' }),
  uuid: text(64).optional().meta({ description: 'SMBIOS UUID.' }),
  nodeID: text(128).optional().meta({ description: "Talos' node identity." }),
  bootID: text(64).optional().meta({ description: 'Boot id.' }),
  talosVersion: text(64).optional().meta({ description: 'Talos version.' }),
  schematic: text(128).optional().meta({ description: 'Image Factory schematic id.' }),
  kubeletVersion: text(64).optional().meta({ description: 'Kubelet version.' }),
  stage: text(32).optional().meta({ description: 'Talos machine stage, for example running.' }),
  etcdMemberID: text(32).optional().meta({ description: 'etcd member id, 16 hexadecimal digits.' }),
  lastSeen: timestamp().optional().meta({ description: 'When its Talos API answered last.' }),
  conditions: conditions().optional(),
})

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
