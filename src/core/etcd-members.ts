import type { EtcdMember, EtcdView } from '../ports/talos.ts'
import type { Result } from '../ports/fault.ts'

/** One control plane and what its own etcd answered. */
export type ControlPlaneView = {
  readonly name: string
  readonly address: string
  /** The member that it was when its etcd was heard last; it may advertise another address than the one at which we ask it. */
  readonly knownAs?: string | undefined
  readonly view: Result<EtcdView>
}

/** Views of those that answered. */
export type Answered = ControlPlaneView & { readonly view: { readonly ok: true; readonly value: EtcdView } }
export const answered = (controlPlanes: readonly ControlPlaneView[]): readonly Answered[] =>
  controlPlanes.filter((c): c is Answered => c.view.ok)

/** The host of a peer URL (`https://[fd00::1]:2380`), as addresses are compared here. */
export const peerHost = (url: string): string => plainAddress(url.replace(/^[a-z]+:\/\/(\[[^\]]*\]|[^:/]*).*$/i, '$1'))

const plainAddress = (address: string): string =>
  address
    .replace(/^\[|\]$/g, '')
    .replace(/%.*$/, '')
    .toLowerCase()

/**
 * The machine that a member runs on: by the member id which the machine itself names, else by peer address, else by the id that it named last. Never by
 * name: member names are host names as Talos spells them, Node names are lower case, and either may be fully qualified.
 */
export const machineOf = (member: EtcdMember, controlPlanes: readonly ControlPlaneView[]): ControlPlaneView | undefined =>
  controlPlanes.find(c => c.view.ok && c.view.value.status.memberID === member.id) ??
  controlPlanes.find(c => member.peerURLs.some(url => peerHost(url) === plainAddress(c.address))) ??
  controlPlanes.find(c => !c.view.ok && c.knownAs === member.id)

/** The member id of the leader, where all that answered name the same; undefined else. */
export const agreedLeader = (controlPlanes: readonly ControlPlaneView[]): string | undefined => {
  const leaders = new Set(answered(controlPlanes).map(c => c.view.value.status.leader))
  const [leader] = leaders
  return leaders.size === 1 && leader !== undefined && leader !== '' ? leader : undefined
}

/** The name of the control plane that leads etcd; undefined where there is no leader, no agreement, or it runs on no machine that we know. */
export const leaderName = (controlPlanes: readonly ControlPlaneView[]): string | undefined => {
  const leader = agreedLeader(controlPlanes)
  const views = answered(controlPlanes)
  const own = views.find(c => c.view.value.status.memberID === leader)
  const member = views.flatMap(c => c.view.value.members).find(m => m.id === leader)
  return own?.name ?? (member && machineOf(member, controlPlanes)?.name)
}
