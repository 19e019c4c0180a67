import type { Family, Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'
import { access } from './access.ts'
import { ailing } from './ailing.ts'
import { answers } from './answers.ts'
import { configuration } from './configuration.ts'
import { etcdSays } from './etcd-says.ts'
import { gates } from './gates.ts'
import { apiAway, apiErrors, stale, watch } from './kubernetes.ts'
import { address, dead, etcd, installer, locked, reboot, slow } from './machines.ts'
import { machineSays } from './machine-says.ts'
import { objects } from './objects.ts'
import { gitops, people } from './people.ts'
import { programs } from './programs.ts'
import { status } from './status.ts'
import { clock, crash, leaders, lostReply } from './processes.ts'

export const troubles: Readonly<Record<Family, Trouble<Stage>>> = {
  crash,
  'lost-reply': lostReply,
  slow,
  dead,
  locked,
  installer,
  reboot,
  address,
  etcd,
  'api-errors': apiErrors,
  watch,
  stale,
  'api-away': apiAway,
  clock,
  leaders,
  people,
  gitops,
  access,
  configuration,
  programs,
  gates,
  status,
  'etcd-says': etcdSays,
  'machine-says': machineSays,
  objects,
  answers,
  ailing,
}
