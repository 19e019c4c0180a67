import { z } from 'zod'
import type { ResourceDefinition } from './schema.ts'
import { answeredGeneration, conditions, int64, nameRef, text, timestamp } from './schema.ts'

const spec = z
  .object({
    clusterRef: nameRef('TalosCluster, in the same namespace').meta({ description: 'The cluster that the snapshot was taken of.' }),
    location: text(2048).min(1).meta({ description: 'Where it is stored, as a URL.' }),
  })
  .meta({ description: 'Where the snapshot is. Cannot be changed after creation.' })

const status = z
  .object({
    observedGeneration: answeredGeneration(),
    takenAt: timestamp().optional().meta({ description: 'When it was taken.' }),
    size: int64().optional().meta({ description: 'Size of the stored file in bytes.' }),
    sha256: text(64).optional().meta({ description: 'SHA-256 of the stored file, hexadecimal.' }),
    revision: int64().optional().meta({ description: 'The etcd revision that it holds.' }),
    etcdVersion: text(64).optional().meta({ description: 'The version of the etcd that it was taken of.' }),
    clusterID: text(128).optional().meta({ description: 'The id that Talos gives the cluster.' }),
    keyFingerprints: z
      .array(text(128))
      .max(16)
      .optional()
      .meta({ description: 'Fingerprints of the keys that the Secrets in it are encrypted with.' }),
    caFingerprints: z
      .array(text(128))
      .max(16)
      .optional()
      .meta({ description: 'Fingerprints of the CAs that the cluster had at that time.' }),
    conditions: conditions().optional(),
  })
  .meta({ description: 'What is known of the snapshot.' })

export const etcdSnapshot: ResourceDefinition = {
  kind: 'EtcdSnapshot',
  plural: 'etcdsnapshots',
  singular: 'etcdsnapshot',
  shortNames: ['snap'],
  description: 'One stored etcd snapshot.',
  spec,
  status,
  specRules: [{ rule: 'self == oldSelf', message: 'An EtcdSnapshot cannot be changed after creation.' }],
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name', description: 'The cluster.' },
    { name: 'Size', type: 'integer', jsonPath: '.status.size', description: 'Bytes.' },
    { name: 'Revision', type: 'integer', jsonPath: '.status.revision', description: 'etcd revision.' },
    { name: 'Etcd', type: 'string', jsonPath: '.status.etcdVersion', description: 'etcd version.' },
    { name: 'Taken', type: 'date', jsonPath: '.status.takenAt', description: 'When it was taken.' },
    { name: 'Location', type: 'string', jsonPath: '.spec.location', description: 'Where it is stored.', priority: 1 },
  ],
}
