import { z } from 'zod'
import { matching } from '../../api/schema.ts'

/** The block `spec.kubernetes`. */
export const kubernetesSpec = z.object({
  version: matching(
    64,
    '^v(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)$',
    'must be a final release with a leading v and three numbers, like v1.36.2',
  ).meta({
    description: 'The Kubernetes version to upgrade to: a final release with a leading v, like v1.36.2.',
  }),
  drain: z.enum(['never', 'minor', 'always']).default('never').meta({
    description:
      'Whether a machine is cordoned and drained before its kubelet is restarted. never: its pods go on running meanwhile. minor: where the kubelet goes to another minor, as Kubernetes advises. always: also for a patch release.',
  }),
  prune: z.boolean().default(false).meta({
    description:
      'Whether objects are deleted at the end that Talos once brought into the cluster by its bootstrap manifests, and that are no longer among them. The plan names them. Known by the inventory that Talos keeps since 1.13; an object that somebody else has taken over stays.',
  }),
})
