// Our four resources, with one kind of operation: what both servers are asked about.
import { z } from 'zod'
import { etcdSnapshot } from '../../../src/api/etcd-snapshot.ts'
import type { ResourceDefinition } from '../../../src/api/schema.ts'
import { text } from '../../../src/api/schema.ts'
import { talosCluster } from '../../../src/api/talos-cluster.ts'
import { talosMachine } from '../../../src/api/talos-machine.ts'
import { talosOperation } from '../../../src/api/talos-operation.ts'

const talos = {
  name: 'talos',
  block: 'talos',
  summary: 'Upgrades Talos Linux.',
  spec: z.object({ version: text(64).min(1).meta({ description: 'The version to go to, with v.' }) }),
}
const reboot = {
  name: 'reboot',
  block: 'reboot',
  summary: 'Reboots machines.',
  spec: z.object({ mode: z.enum(['default', 'powercycle']).default('default').meta({ description: 'How to reboot.' }) }),
}

export const resources: readonly ResourceDefinition[] = [talosOperation([talos, reboot]), talosCluster, talosMachine, etcdSnapshot]
