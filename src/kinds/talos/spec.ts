import { z } from 'zod'
import { matching, text } from '../../api/schema.ts'

/** The block `spec.talos`. */
export const talosSpec = z.object({
  version: matching(
    64,
    '^v(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$',
    'must be a final release with a leading v and three numbers, like v1.13.9',
  ).meta({
    description: 'The Talos version to upgrade to: a final release with a leading v, like v1.13.9.',
  }),
  schematic: matching(64, '^[0-9a-f]{64}$', 'must be an Image Factory schematic id: 64 lower-case hexadecimal digits')
    .optional()
    .meta({ description: 'Image Factory schematic id to move to. Absent: each machine keeps the schematic that it runs.' }),
  image: text(512).optional().meta({
    description: 'Full installer reference with a tag or a digest, not both. Absent: built from the schematic that each machine runs.',
  }),
  rebootMode: z.enum(['default', 'powercycle']).default('default').meta({
    description:
      'How machines are rebooted. default: by kexec where the machine can. powercycle: through the firmware, which also proves the boot loader.',
  }),
  snapshot: z.enum(['auto', 'required', 'skip']).default('auto').meta({
    description:
      'Whether an etcd snapshot is taken before the first control plane. auto: where the cluster has snapshot storage, with a note where it has none.',
  }),
})
