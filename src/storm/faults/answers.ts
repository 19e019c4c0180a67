import type { FaultKind } from '../../ports/fault.ts'
import type { PortCall } from '../../world/calls.ts'
import { machinesOf } from '../plan.ts'
import type { Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** One sort of call gets no good answer while all others do: of one machine or of all. What a whole API that is away hides shows here. */

const ASKED: Readonly<Record<PortCall['port'], readonly string[]>> = {
  talos: [
    ...['machine', 'etcd', 'members', 'service', 'components', 'manifests', 'lastWords', 'configuration', 'dryRun', 'maintenance'],
    ...['reboot', 'install', 'upgrade', 'pull', 'pullForPods', 'setInstallImage', 'setComponentImage', 'applyConfiguration'],
    ...['forfeitLeadership', 'defragment', 'disarmAlarms', 'leaveEtcd', 'removeMember', 'reset', 'shutdown', 'restartService'],
  ],
  kube: [
    ...['version', 'nodes', 'podsOn', 'budgets', 'volumeAttachments', 'addons', 'controlPlane', 'deprecatedApis', 'compareManifests'],
    ...['cordon', 'uncordon', 'evict', 'deletePod', 'deleteNode', 'applyManifests', 'pruneManifests'],
  ],
  connections: ['talos', 'kube'],
  home: ['cluster', 'clusters', 'lease', 'texts', 'policies'],
}
const WHATS = Object.entries(ASKED).flatMap(([port, names]) => names.map(name => `${port}.${name}`))

const KINDS: readonly FaultKind[] = [
  ...([
    'unreachable',
    'unreachable',
    'busy',
    'forbidden',
    'unauthenticated',
    'notFound',
    'unsupported',
    'invalid',
    'precondition',
  ] as const),
  'unknown',
]

export const answers: Trouble<Stage> = {
  family: 'answers',
  harmless: false,
  draw: ({ random, shape, horizonMs, calls }) => ({
    family: 'answers',
    what: random.pick(WHATS),
    // Where something has just been done, mostly.
    when: random.chance(0.5) ? { call: random.between(1, calls) } : { at: random.chance(0.5) ? 0 : random.between(0, horizonMs) },
    word: random.pick(KINDS),
    // One machine's, or everybody's.
    ...(random.chance(0.5) ? { machine: random.between(0, machinesOf(shape) - 1) } : {}),
    forMs: random.between(5000, 400_000),
  }),
  strike: (stage, { what, word, machine: index }) => {
    const [port, name] = what.split('.')
    const kind = KINDS.find(one => one === word)
    if (kind === undefined) throw new Error(`there is no fault ${word}`)
    const addresses = index !== undefined && port === 'talos' ? stage.machine(index).addresses : undefined
    stage.note(`${what} is answered by ${kind}${addresses ? `, at ${addresses[0]}` : ''}`)
    return stage.disturb(call =>
      call.port === port && call.name === name && (addresses?.includes(call.target) ?? true)
        ? { do: 'fail', when: 'before', fault: { kind, message: `${call.target}: ${call.name}: ${kind}` } }
        : undefined,
    )
  },
}
