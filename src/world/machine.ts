import type { MachineStage } from '../ports/talos.ts'
import type { ServerCertificate } from './certificates.ts'
import type { Installer } from './images.ts'
import type { Component, ProgramConfig } from './kubernetes-config.ts'
import { kubernetesConfigOf } from './kubernetes-config.ts'
import type { EventRing } from './machine-events.ts'
import { createEventRing } from './machine-events.ts'
import type { Service } from './services.ts'
import type { Site } from './site.ts'
import type { Disk, Slot } from './slots.ts'
import { createDisk, runningSlot } from './slots.ts'
import type { StaticPod } from './static-pods.ts'
import type { Cancel } from './time.ts'

export type Role = 'controlplane' | 'worker'

/** The sequence that runs, and thereby holds the lock of the sequencer. */
export type RunningSequence = {
  readonly name: string
  readonly actorID: string
  phase: string
  /** The place of that phase, from 0, and its tasks. */
  at: number
  tasks: readonly string[]
  readonly since: number
  abandoned: boolean
  stuck: boolean
}

/** A block device, `/dev/sda`. */
export type BlockDevice = { readonly path: string; readonly bytes: number; readonly readonly: boolean; readonly system: boolean }

const GiB = 1024 ** 3

/** One to install on, one for data, and an empty drive for discs. */
const DISKS: readonly BlockDevice[] = [
  { path: '/dev/sda', bytes: 100 * GiB, readonly: false, system: true },
  { path: '/dev/sdb', bytes: 500 * GiB, readonly: false, system: false },
  { path: '/dev/sr0', bytes: GiB, readonly: true, system: false },
]

/**
 * One machine: what is on its disk, in its firmware and in its memory. Everything in memory is lost when it goes down, and `life` then grows:
 * what was planned in an earlier life does not happen.
 */
export type Machine = {
  /** Its node name; names it in the journal. */
  readonly name: string
  readonly index: number
  /** What its configuration says; a machine without one counts as a worker. */
  role: Role
  uuid: string
  /** Talos' own node identity: 43 characters. */
  nodeID: string
  /** As the machine spells it, perhaps in upper case. */
  readonly hostname: string
  addresses: string[]
  /** Those that it comes back with from its next boot, where they are others. */
  nextAddresses: readonly string[] | undefined
  readonly platform: string
  readonly arch: string
  /** What the system disk holds. */
  readonly disk: Disk
  disks: readonly BlockDevice[]
  /** The machine configuration that runs; empty where there is none. */
  config: string
  /** The one on the disk, where that is another: the next boot takes it. */
  onDisk: string | undefined
  /** Whether the one on the disk came after the one that runs: so it is staged, and not what a trial goes back to. */
  isStaged: boolean
  /**
   * Talos has a resource of what is on its disk. It comes with a configuration that is given for good or for the next boot, not with a trial, and a boot
   * begins without one.
   */
  hasPersistent: boolean
  /** Documents that it got in maintenance and that do not suffice to boot; empty where there are none. */
  partial: string
  /** Ends the trial of a configuration before its time. */
  endTrial: Cancel | undefined
  /** Goes on where the machine waits for a configuration. */
  configured: (() => void) | undefined
  /** A configuration is being applied, or one was that the machine reboots for. */
  applying: 'one' | 'reboots' | undefined
  /** Its callers in maintenance come over SideroLink, and count as administrators. */
  siderolink: boolean
  /** What the containerd that the installer runs from has, by reference without digest. */
  readonly images: Map<string, Installer>
  /** Images of Kubernetes' programs that it was told to pull, by reference without digest. */
  readonly programs: Set<string>
  readonly events: EventRing

  powered: boolean
  /** Its network is cut: packets vanish without an answer. */
  cut: boolean
  /** By what it was told itself. */
  cutByConfig: boolean
  /** apid accepts calls. */
  apid: boolean
  /** What apid shows; undefined where it shows one of its own making, to everybody. */
  certificate: ServerCertificate | undefined
  life: number
  bootID: string
  /** Milliseconds since 1970. */
  bootedAt: number
  stage: MachineStage
  sequence: RunningSequence | undefined
  readonly services: Map<string, Service>
  /** No time server has answered it in this life. */
  waitsForTime: boolean
  /** The kubelet process runs. */
  kubelet: boolean
  /** What its kubelet was started with last. */
  kubeletRun: Pick<ProgramConfig, 'image' | 'rendered'>
  /** Talos has the kubelet run static pods, and the kubelet has reported them. */
  staticPods: boolean
  /** Which; what each is doing. */
  readonly pods: Map<Component, StaticPod>
  /** The installer noted a way back in this life; Talos drops only one that was there when it booted. */
  armed: boolean
  /** A stream of the installer is open or its work goes on. */
  installing: boolean
  /** Streams that are open; each is told when the connection breaks. */
  readonly streams: Set<() => void>
  /** When the MachineStatus was told last, what it said. */
  toldStatus: string
}

export type MachineOptions = {
  readonly name: string
  readonly index: number
  readonly role: Role
  readonly uuid: string
  readonly nodeID: string
  readonly hostname: string
  readonly addresses: readonly string[]
  readonly platform: string
  readonly slot: Slot
  readonly config: string
}

export const createMachine = (options: MachineOptions): Machine => ({
  name: options.name,
  index: options.index,
  role: options.role,
  uuid: options.uuid,
  nodeID: options.nodeID,
  hostname: options.hostname,
  addresses: [...options.addresses],
  nextAddresses: undefined,
  platform: options.platform,
  arch: 'amd64',
  disk: createDisk(options.slot),
  disks: options.platform === 'container' ? [] : DISKS,
  config: options.config,
  onDisk: undefined,
  isStaged: false,
  hasPersistent: true,
  partial: '',
  endTrial: undefined,
  configured: undefined,
  applying: undefined,
  siderolink: false,
  images: new Map(),
  programs: new Set(),
  events: createEventRing(),
  powered: true,
  cut: false,
  cutByConfig: false,
  apid: false,
  certificate: undefined,
  life: 0,
  bootID: '',
  bootedAt: 0,
  stage: 'unknown',
  sequence: undefined,
  services: new Map(),
  waitsForTime: false,
  kubelet: false,
  kubeletRun: { image: '', rendered: '' },
  staticPods: false,
  pods: new Map(),
  armed: false,
  installing: false,
  streams: new Set(),
  toldStatus: '',
})

export const versionOf = (machine: Machine): string => runningSlot(machine.disk).version

/** Waits for its first configuration, and answers everybody, but not much. */
export const isInMaintenance = (machine: Machine): boolean => machine.configured !== undefined

/** Whether a call from outside gets an answer at all. */
export const answers = (machine: Machine): boolean => machine.powered && machine.apid && !machine.cut

export const requiredServices = (machine: Machine): readonly string[] =>
  machine.role === 'controlplane' ? ['apid', 'etcd', 'kubelet', 'machined', 'trustd'] : ['apid', 'kubelet', 'machined']

const nodeReadyStatus = (site: Site, machine: Machine): string | undefined => {
  const node = site.store.get('nodes', '', machine.name)
  const conditions = (node?.status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions
  return conditions?.find(c => c.type === 'Ready')?.status
}

/** The conditions of MachineStatus that do not hold, `name: reason`. Looked at only while booting and running: elsewhere Talos says none. */
export const unmetConditions = (site: Site, machine: Machine): readonly string[] => {
  if (machine.stage !== 'booting' && machine.stage !== 'running') return []
  const unmet: string[] = machine.waitsForTime ? ['time: time is not synced'] : []
  const services: string[] = []
  for (const id of requiredServices(machine)) {
    const service = machine.services.get(id)
    if (service?.state !== 'Running') services.push(`${id} not running`)
    else if (service.health === 'unhealthy') services.push(`${id} not healthy`)
  }
  if (services.length > 0) unmet.push(`services: ${services.join(', ')}`)
  // What the kubelet says of them; a dead one says nothing any more.
  const pods = machine.kubelet && machine.staticPods ? [...machine.pods].filter(([, { isRunning }]) => !isRunning) : []
  if (pods.length > 0) unmet.push(`staticPods: ${pods.map(([id]) => `kube-system/${id}-${machine.name} not ready`).join(', ')}`)
  const status = nodeReadyStatus(site, machine)
  // Who registers with nobody has no Node to wait for.
  if (machine.kubelet && status !== 'True' && kubernetesConfigOf(site, machine).registersNode) {
    if (status === undefined) unmet.push(`nodeReady: node "${machine.name}" status is not available yet`)
    else unmet.push(`nodeReady: node "${machine.name}" is not ready`)
  }
  return unmet
}

export const isReady = (site: Site, machine: Machine): boolean => unmetConditions(site, machine).length === 0

/** In stage RUNNING and ready: what an operator would call up. */
/** It is back, whatever becomes of its static pods, which are begun anew now and then. */
export const isUp = (site: Site, machine: Machine): boolean =>
  answers(machine) && machine.stage === 'running' && unmetConditions(site, machine).every(condition => condition.startsWith('staticPods:'))

export const setStage = (site: Site, machine: Machine, stage: MachineStage): void => {
  if (machine.stage === stage) return
  machine.stage = stage
  site.journal.write(machine.name, 'stage', stage)
  site.tell(machine, 'stage')
}
