import { ANNOTATION, LABEL } from '../api/names.ts'
import type { TalosCluster } from '../api/talos-cluster.ts'
import type { TalosMachine, TalosMachineSpec } from '../api/talos-machine.ts'
import { machineName } from '../core/machine-name.ts'
import { impostor } from '../core/recorded-machine.ts'
import { failed, type Result } from '../ports/fault.ts'
import type { Home, Key } from '../ports/home.ts'
import type { ClusterMember, MachineFacts, Talos } from '../ports/talos.ts'
import type { Log } from './log.ts'

/** A TalosMachine, and what was seen at its address just now. */
export type Seen = { readonly machine: TalosMachine; readonly facts: Result<MachineFacts> }

type Registrar = { readonly home: Home; readonly log: Log }

/**
 * The TalosMachine of a member: found by identity, else by address, else created. The name stays even when host name and address change. Undefined
 * where there is none and none could be made.
 */
export const registered = async (
  { home, log }: Registrar,
  cluster: TalosCluster,
  known: readonly TalosMachine[],
  member: ClusterMember,
  talos: Talos,
): Promise<Seen | undefined> => {
  const byIdentity = known.find(m => m.status.nodeID === member.nodeID && member.nodeID !== '')
  const found = await asked(talos, member, byIdentity?.spec.address)
  if (!found) return undefined
  const { address, facts } = found
  const nodeID = member.nodeID || (facts.ok && facts.value.nodeID) || ''
  const machine = byIdentity ?? known.find(m => m.spec.address === address && (m.status.nodeID === undefined || m.status.nodeID === nodeID))
  const spec: TalosMachineSpec = { ...machine?.spec, clusterRef: { name: cluster.metadata.name }, address, role: member.role }
  if (machine) return { machine: await kept(home, machine, spec), facts }
  const key = { namespace: cluster.metadata.namespace, name: machineName(member.hostname, nodeID) }
  const labels = { [LABEL.cluster]: cluster.metadata.name, [LABEL.role]: member.role }
  const created = await home.createMachine(key, spec, { labels, annotations: { [ANNOTATION.hostname]: member.hostname } })
  const made = created.ok || created.fault.kind !== 'alreadyExists' ? created : await inherited(home, key, spec, labels)
  if (made.ok) return { machine: made.value, facts }
  log.warn('a TalosMachine could not be created', { machine: key.name, fault: made.fault.message })
  return undefined
}

/**
 * Who deletes a TalosCluster and registers its machines under another name finds them again, with all that people have written on them. Those of a
 * TalosCluster that is there are left to it.
 */
const inherited = async (
  home: Home,
  key: Key,
  spec: TalosMachineSpec,
  labels: Readonly<Record<string, string>>,
): Promise<Result<TalosMachine>> => {
  const machine = await home.machine(key)
  if (!machine.ok) return machine
  const { name } = machine.value.spec.clusterRef
  const owner = await home.cluster({ namespace: key.namespace, name })
  if (!owner.ok && owner.fault.kind === 'notFound') return home.writeMachineSpec(machine.value, { ...machine.value.spec, ...spec }, labels)
  return owner.ok ? failed('alreadyExists', `TalosMachine ${key.name} is there already, of TalosCluster ${name}`) : owner
}

/** Its address, its role, and the label of that role are what they should be. */
export const kept = async (home: Home, machine: TalosMachine, spec: TalosMachineSpec): Promise<TalosMachine> => {
  const { address, role } = machine.spec
  if (address === spec.address && role === spec.role && machine.metadata.labels[LABEL.role] === role) return machine
  const written = await home.writeMachineSpec(machine, spec, { [LABEL.role]: spec.role })
  return written.ok ? written.value : machine
}

/**
 * The member's own answer, at the first of its addresses that gives it: at another one there may be nobody, or somebody else (a virtual address, or
 * the same address given out twice). Where none gives it, the recorded address or the first, and why not. Undefined where it has no address.
 */
const asked = async (
  talos: Talos,
  member: ClusterMember,
  recorded: string | undefined,
): Promise<{ readonly address: string; readonly facts: Result<MachineFacts> } | undefined> => {
  const { addresses } = member
  const first = recorded !== undefined && addresses.includes(recorded) ? recorded : addresses[0]
  if (first === undefined) return undefined
  const ask = async (address: string) => {
    const facts = await talos.machine(address)
    const fault = facts.ok ? impostor(address, { nodeID: member.nodeID }, facts.value) : undefined
    return { address, facts: fault ? { ok: false as const, fault } : facts }
  }
  const usual = await ask(first)
  if (usual.facts.ok) return usual
  const others = await Promise.all(addresses.filter(address => address !== first).map(ask))
  return others.find(({ facts }) => facts.ok) ?? usual
}

/** One machine behind two addresses is one machine: of two TalosMachines that are answered by the same, the later one is none of its own. */
export const withoutTwins = (all: readonly Seen[]): readonly Seen[] =>
  all.map((one, i): Seen => {
    const nodeID = one.facts.ok ? one.facts.value.nodeID : ''
    const twin = nodeID === '' ? undefined : all.slice(0, i).find(({ facts }) => facts.ok && facts.value.nodeID === nodeID)
    if (!twin) return one
    const { machine } = one
    return {
      machine,
      facts: failed(
        'alreadyExists',
        `${machine.spec.address} is another address of the machine of TalosMachine ${twin.machine.metadata.name} (${twin.machine.spec.address}, Talos node id ${nodeID}). Delete one of the two.`,
      ),
    }
  })
