import { etcdSnapshot } from '../api/etcd-snapshot.ts'
import type { ResourceDefinition } from '../api/schema.ts'
import { talosCluster } from '../api/talos-cluster.ts'
import { talosMachine } from '../api/talos-machine.ts'
import { talosOperation } from '../api/talos-operation.ts'
import { kinds } from '../kinds/registry.ts'

/** All resources of Ichor, the operation's with the blocks of the kinds that are built. */
export const resources = (): readonly ResourceDefinition[] => [talosOperation(kinds), talosCluster, talosMachine, etcdSnapshot]
