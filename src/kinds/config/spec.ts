import { z } from 'zod'
import type { TalosOperation } from '../../api/talos-operation.ts'
import { matching, objectName, text } from '../../api/schema.ts'
import { blockOf } from '../../core/kind.ts'

const keyOf = (what: string) =>
  z.object({
    name: objectName().meta({ description: `Name of the ${what}, in the namespace of the operation.` }),
    key: matching(253, '^[-._a-zA-Z0-9]+$', `must be a key of a ${what}: letters, digits, -, _ and .`).meta({
      description: 'The key whose text is the patch.',
    }),
  })

const patch = z
  .object({
    inline: text(32_768).min(1).optional().meta({ description: 'The patch itself. For what nobody may read, use a Secret.' }),
    secretKeyRef: keyOf('Secret').optional().meta({ description: 'A Secret that holds the patch.' }),
    configMapKeyRef: keyOf('ConfigMap').optional().meta({ description: 'A ConfigMap that holds the patch.' }),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: '[has(self.inline), has(self.secretKeyRef), has(self.configMapKeyRef)].filter(one, one).size() == 1',
        message: 'exactly one of inline, secretKeyRef and configMapKeyRef must be set',
      },
    ],
  })
export type PatchSource = z.output<typeof patch>

/** The block `spec.config`. */
export const configSpec = z.object({
  patches: z.array(patch).min(1).max(8).meta({
    description:
      'Patches of the machine configuration, one after another: strategic merge (also of several documents) or JSON patch, as talosctl takes them.',
  }),
  mode: z.enum(['no-reboot', 'reboot', 'staged', 'try']).default('try').meta({
    description:
      'How machines take it. try: at once, for three minutes, and for good when the machine is well with it; else Talos puts the old one back. no-reboot: at once, for good. staged: with the next boot, whenever that is. reboot: staged, and the machine is drained and rebooted.',
  }),
})

export type ConfigSpec = z.output<typeof configSpec>
export const specOf = (operation: TalosOperation): ConfigSpec => blockOf({ block: 'config', spec: configSpec }, operation)
