import { z } from 'zod'
import type { KindAction, OptionalField } from '../../api/talos-operation.ts'
import { matching, text } from '../../api/schema.ts'

/** There is no next machine that would have to wait. */
const alone: readonly OptionalField[] = ['minReadySeconds']
/** Nothing that runs on the machine has to leave it. */
const inPlace: readonly OptionalField[] = [...alone, 'maxUnavailable', 'drain', 'timeouts']

/** What can be done to one machine, and which fields go with it. */
export const ACTIONS = [
  { name: 'reboot', summary: 'Reboot a machine, drained and with etcd asked first', fields: ['mode'], ignores: alone },
  { name: 'shutdown', summary: 'Power a machine off, drained and with etcd asked first', fields: [], ignores: alone },
  {
    name: 'restart-service',
    summary: 'Restart the kubelet, or the service of an extension',
    fields: ['service'],
    needs: ['service'],
    ignores: inPlace,
  },
  {
    name: 'etcd-defrag',
    summary: 'Give back what is free in the etcd database of a control plane, and disarm NOSPACE when there is room',
    fields: [],
    ignores: inPlace,
  },
  { name: 'forfeit-leadership', summary: 'Move the leadership of etcd away from a control plane', fields: [], ignores: inPlace },
  {
    name: 'reset',
    summary: 'Take a machine out of the cluster and wipe it',
    fields: ['wipe', 'rebootAfter'],
    start: 'node-reset',
    ignores: alone,
  },
] as const satisfies readonly KindAction[]

export type Action = (typeof ACTIONS)[number]['name']
const NAMES = ACTIONS.map(a => a.name) as [Action, ...Action[]]

const only = (field: string, action: Action) => ({
  rule: `!has(self.${field}) || self.action == '${action}'`,
  message: `${field} goes with the action ${action} only`,
})

/** The block `spec.node`. */
export const nodeSpec = z
  .object({
    machine: text(253).min(1).meta({ description: 'The machine: the name of its TalosMachine, or its host name.' }),
    action: z.enum(NAMES).meta({ description: 'What to do with it.' }),
    mode: z.enum(['default', 'powercycle', 'force']).optional().meta({
      description:
        'How it is rebooted. default (also where absent): by kexec where it can. powercycle: through the firmware. force: at once, without stopping anything, for a machine that hangs in its shutdown (Talos 1.12 and newer).',
    }),
    service: matching(
      64,
      '^(kubelet|ext-[a-z0-9-]+)$',
      'must be kubelet or the service of an extension (ext-NAME): Talos lets nobody restart the others',
    )
      .optional()
      .meta({ description: 'The service to restart: kubelet, or ext-NAME.' }),
    wipe: z.enum(['state', 'disk']).optional().meta({
      description:
        'What a reset wipes. state (also where absent): configuration and data, so that Talos stays installed and waits for a configuration. disk: the whole system disk, from which nothing boots then.',
    }),
    rebootAfter: z.boolean().optional().meta({ description: 'Reboot the machine after its reset. Absent: it is powered off.' }),
  })
  .meta({
    description: 'One action on one machine.',
    'x-kubernetes-validations': [
      {
        rule: "(self.action == 'restart-service') == has(self.service)",
        message: 'service must be set exactly when action is restart-service',
      },
      only('mode', 'reboot'),
      only('wipe', 'reset'),
      only('rebootAfter', 'reset'),
    ],
  })
