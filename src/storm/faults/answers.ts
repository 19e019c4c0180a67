import type { FaultKind } from '../../ports/fault.ts'
import type { PortCall } from '../../world/calls.ts'
import { machinesOf } from '../plan.ts'
import type { Plan, Trouble } from '../plan.ts'
import type { Stage } from '../stage.ts'
import { LEADER_LEASE, NAMESPACE } from '../story.ts'

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
const ofTalos = (name: string): string => `talos.${name}`
/** To whom the Lease of the leaders is not given, he does nothing at all. */
const LEADERS = `${NAMESPACE}/${LEADER_LEASE}`
/** What is asked by that kind, and hardly by another. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  talos: ['machine', 'etcd', 'pull', 'install', 'reboot', 'upgrade', 'forfeitLeadership', 'setInstallImage', 'configuration'].map(ofTalos),
  node: [
    ...['machine', 'etcd', 'service', 'reboot', 'shutdown', 'restartService', 'restartService', 'forfeitLeadership', 'defragment'],
    ...['disarmAlarms', 'leaveEtcd', 'removeMember', 'reset', 'maintenance'],
  ].map(ofTalos),
  kubernetes: [
    ...['machine', 'components', 'components', 'service', 'manifests', 'manifests', 'pull', 'pullForPods', 'setComponentImage'].map(
      ofTalos,
    ),
    ...['talos.lastWords', 'kube.nodes', 'kube.controlPlane', 'kube.controlPlane', 'kube.compareManifests', 'kube.applyManifests'],
    ...['kube.pruneManifests', 'kube.deprecatedApis', 'kube.addons'],
  ],
}

/** What Ichor asks of its own objects. That there is none nobody answers who has it. */
const OF_ITS_OWN = ['operation', 'operations', 'machine', 'machines', 'changeOperation', 'createMachine', 'replaceLease'].map(
  name => `home.${name}`,
)
const OWN_KINDS: readonly FaultKind[] = ['unreachable', 'busy', 'conflict', 'forbidden']

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
  draw: ({ random, kind, shape, horizonMs, calls }) => ({
    family: 'answers',
    ...(random.chance(0.15)
      ? { what: random.pick(OF_ITS_OWN), word: random.pick(OWN_KINDS) }
      : { what: random.pick(random.chance(0.5) ? (OWN[kind] ?? WHATS) : WHATS), word: random.pick(KINDS) }),
    // Where something has just been done, mostly.
    when: random.chance(0.5) ? { call: random.between(1, calls) } : { at: random.chance(0.5) ? 0 : random.between(0, horizonMs) },
    // One machine's, or everybody's.
    ...(random.chance(0.5) ? { machine: random.between(0, machinesOf(shape) - 1) } : {}),
    forMs: random.between(5000, 400_000),
  }),
  strike: (stage, { what, word, machine: index }) => {
    const [port, name] = what.split('.')
    const kind = [...KINDS, ...OWN_KINDS].find(one => one === word)
    if (kind === undefined) throw new Error(`there is no fault ${word}`)
    const addresses = index !== undefined && port === 'talos' ? stage.machine(index).addresses : undefined
    stage.note(`${what} is answered by ${kind}${addresses ? `, at ${addresses[0]}` : ''}`)
    return stage.disturb(call =>
      call.port === port && call.name === name && (addresses?.includes(call.target) ?? true) && call.target !== LEADERS
        ? { do: 'fail', when: 'before', fault: { kind, message: `${call.target}: ${call.name}: ${kind}` } }
        : undefined,
    )
  },
}

/** Whether somebody may be told that there is no lock: then its holder has none to give back, and whoever wants it takes it over once he has ended. */
export const tellsOfNoLock = ({ strikes }: Plan): boolean => strikes.some(s => s.what === 'home.lease' && s.word === 'notFound')
