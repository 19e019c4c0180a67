import { readdress } from './addresses.ts'
import { beRunning, followChanges, powerOff, powerOn } from './boot.ts'
import type { ApiServer } from './api-server.ts'
import { createApiServer } from './api-server.ts'
import type { Evicted } from './budgets.ts'
import { evict } from './budgets.ts'
import { followCertificates, renewCertificate } from './certificates.ts'
import type { Calls } from './calls.ts'
import { createCalls } from './calls.ts'
import { withCordon } from './cordon.ts'
import { cut } from './cut.ts'
import type { DurationName, Range } from './durations.ts'
import { createDurations } from './durations.ts'
import type { Etcd, Member } from './etcd.ts'
import { createEtcd } from './etcd.ts'
import { peerURLsOf } from './etcd-membership.ts'
import type { Faults, MachineFaults } from './faults.ts'
import { createFaults } from './faults.ts'
import type { Registry } from './images.ts'
import { createRegistry, EMPTY_SCHEMATIC } from './images.ts'
import { isAtLeast } from './releases.ts'
import { inURL } from './in-url.ts'
import type { Journal } from './journal.ts'
import { createJournal } from './journal.ts'
import { followKubelet } from './kubelet.ts'
import type { Machine, Role } from './machine.ts'
import { createMachine, isUp, unmetConditions } from './machine.ts'
import { renderConfig } from './machine-config.ts'
import { installManifests } from './manifests.ts'
import type { Nodes } from './nodes.ts'
import { createNodes } from './nodes.ts'
import { RESOURCE, change, timestamp } from './objects.ts'
import type { Cilium, Workload } from './population.ts'
import { installAddons, installWorkload } from './population.ts'
import { createRandom } from './random.ts'
import type { ServerDrain } from './server-drain.ts'
import { createServerDrain } from './server-drain.ts'
import type { Site } from './site.ts'
import { wipeDisk } from './slots.ts'
import { followStaticPods } from './static-pods.ts'
import type { Store } from './store.ts'
import { createStore } from './store.ts'
import type { Schedule } from './time.ts'
import { createSchedule } from './time.ts'
import { installUnattended } from './unattended-install.ts'
import type { Vip } from './vip.ts'
import { createVip } from './vip.ts'
import { keepWorkloads } from './workloads.ts'

export type WorldOptions = {
  readonly seed: number
  readonly controlPlanes: number
  readonly workers: number
  /** Machines on which nothing is installed: they wait in maintenance for a configuration. Come after the workers. Default 0. */
  readonly spares?: number
  /** Talos version with `v`, of all machines or by index; default `v1.13.5`. */
  readonly talos?: string | ((index: number) => string)
  /** Default `v1.36.2`. */
  readonly kubernetes?: string
  /** What a vendor appends to the version that the API server tells, or the kubelet of a machine, by index: `+acme.2`. */
  readonly vendorTail?: (of: number | 'api server') => string
  /** Schematic id of what runs; default: none, the official installer. */
  readonly schematic?: string | ((index: number) => string)
  /** System extensions of that schematic. */
  readonly extensions?: readonly string[]
  /**
   * A virtual address that one control plane has at a time, the first one at the begin, and by which clients reach the API of the cluster; default none:
   * then they find any control plane.
   */
  readonly vip?: string
  /** Host of the Image Factory; default `factory.talos.dev`. */
  readonly factory?: string
  /** Hosts of further factories, which know the same schematics. */
  readonly factories?: readonly string[]
  /** `machine.install.image` by index; default: the image of what runs. */
  readonly installImage?: (index: number) => string
  readonly platform?: string
  /** Absent: Flannel. */
  readonly cilium?: Cilium
  /** Default true; with Cilium default false. */
  readonly kubeProxy?: boolean
  /** One or several, by index, control planes first; IPv4 or IPv6. The first is the one that clients are told. */
  readonly addresses?: (index: number) => string | readonly string[]
  /** The endpoint of the control plane in the machines' configurations; default: the address of the first one. Nothing in the world can look a name up. */
  readonly endpoint?: string
  /** What Nodes call their addresses, by index; default `InternalIP`. */
  readonly addressTypes?: (index: number) => 'InternalIP' | 'ExternalIP'
  /** Node names by index; default `cp-1`, `wk-1`, …. */
  readonly names?: (index: number) => string
  /** What the machine calls itself; default its node name. */
  readonly hostnames?: (index: number) => string
  /** Names of etcd members by index; default the host name. */
  readonly memberNames?: (index: number) => string
  readonly uuids?: (index: number) => string
  readonly etcdQuotaBytes?: number
  readonly workloads?: readonly Workload[]
  readonly durations?: Partial<Record<DurationName, Range>>
  /** Divides every duration. */
  readonly scale?: number
  /** Milliseconds since 1970 at which the story begins; the cluster has settled by then. */
  readonly start?: number
  /** Ichor's own resources live in another cluster, whose API never goes away. Default false. */
  readonly homeOutside?: boolean
  readonly clusterName?: string
  readonly journalLimit?: number
}

/** The invented cluster. Everything in it happens by `schedule`. */
export type World = {
  readonly site: Site
  readonly schedule: Schedule
  readonly store: Store
  readonly machines: readonly Machine[]
  readonly etcd: Etcd
  readonly registry: Registry
  readonly faults: Faults
  readonly journal: Journal
  readonly calls: Calls
  readonly api: ApiServer
  readonly nodes: Nodes
  readonly vip: Vip
  readonly drain: ServerDrain
  readonly homeOutside: boolean
  /** By node name or index; throws when there is none. */
  readonly machine: (which: string | number) => Machine
  /** The one that has an address, preferring one that is on. */
  readonly at: (address: string) => Machine | undefined
  readonly member: (which: string | number) => Member
  readonly isUp: (machine: Machine) => boolean
  readonly unmet: (machine: Machine) => readonly string[]
  /** Machines with a configuration that are not up, or whose etcd member is not connected; of a role if named. */
  readonly away: (role?: Role) => readonly Machine[]
  readonly evict: (namespace: string, name: string, uid?: string) => Evicted
  readonly addWorkload: (workload: Workload) => void

  readonly fault: (which: string | number, faults: Partial<MachineFaults>) => void
  readonly powerOff: (which: string | number) => void
  readonly powerOn: (which: string | number) => void
  /** Cuts the network of a machine without a sign, or mends it. */
  readonly blackHole: (which: string | number, on: boolean) => void
  /** Sets a machine's clock wrong by so much, in milliseconds; zero mends it. */
  readonly setClock: (which: string | number, offsetMs: number) => void
  /** The machine has these addresses: at once, or from its next boot on, as one that asks for its address does. */
  readonly readdress: (which: string | number, addresses: readonly string[], when?: 'now' | 'next boot') => void
  /** The API server answers 503 for so long. */
  readonly apiOutage: (ms: number) => void
  /** A person's `kubectl cordon`, `uncordon` and `delete node`. */
  readonly userCordon: (node: string) => void
  readonly userUncordon: (node: string) => void
  readonly userDeleteNode: (node: string) => void
  /** A member that answers, but through which nothing can be read. */
  readonly sicken: (which: string | number, on: boolean) => void
  /** Ends a control plane, deletes its etcd data and starts it. Who is a member remains one, without a machine. */
  readonly loseEtcdData: (which: string | number) => void
}

const DEFAULT_START = Date.UTC(2026, 8, 1, 8)
/** Before the story begins: pods start, a leader is elected, volumes are attached. */
const SETTLE_MS = 300_000
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const per = <T>(value: T | ((index: number) => T), index: number): T =>
  typeof value === 'function' ? (value as (index: number) => T)(index) : value

const installerImage = (factory: string, platform: string, schematic: string, version: string): string =>
  schematic ? `${factory}/${platform}-installer/${schematic}:${version}` : `ghcr.io/siderolabs/installer:${version}`

export const createWorld = (options: WorldOptions): World => {
  const start = options.start ?? DEFAULT_START
  const schedule = createSchedule({ seed: options.seed, start: start - SETTLE_MS })
  const durations = createDurations(schedule.random, { overrides: options.durations, scale: options.scale })
  const factory = options.factory ?? 'factory.talos.dev'
  const registry = createRegistry({ factories: [...new Set([factory, 'factory.talos.dev', ...(options.factories ?? [])])] })
  let draw = schedule.random.next
  const store = createStore({ now: schedule.now, random: () => draw() })
  const warmup = createJournal(schedule.now)
  const journal = createJournal(() => Math.max(start, schedule.now()), options.journalLimit)
  const kubernetes = options.kubernetes ?? 'v1.36.2'
  const platform = options.platform ?? 'metal'
  const kubeProxy = options.kubeProxy ?? !options.cilium
  const clusterName = options.clusterName ?? 'home'
  const base62 = (digits: number): string => Array.from({ length: digits }, () => schedule.random.pick(BASE62.split(''))).join('')
  const clusterID = `${base62(43)}=`

  const machines: Machine[] = []
  const listeners = new Set<Parameters<Site['listen']>[0]>()
  const etcd: Etcd = createEtcd(() => site)
  const site: Site = {
    schedule,
    durations,
    journal: { ...journal, write: (...entry) => (schedule.now() < start ? warmup : journal).write(...entry) },
    registry,
    store,
    faults: createFaults(),
    etcd,
    machines,
    clusterID,
    clusterName,
    virtualAddress: options.vip ?? '',
    kubernetes: () => kubernetes,
    addressType: ({ index }) => options.addressTypes?.(index) ?? 'InternalIP',
    vendorTail: of => options.vendorTail?.(of === 'api server' ? of : of.index) ?? '',
    tell: (machine, changed) => {
      for (const listener of [...listeners]) listener(machine, changed)
    },
    listen: listener => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }

  const addressesOf = (index: number): readonly string[] => [options.addresses?.(index) ?? `10.5.0.${index + 2}`].flat()
  const endpoint = options.endpoint ?? `https://${inURL(addressesOf(0)[0] ?? '')}:6443`
  const add = (index: number, role: Role, count: number, isSpare = false): void => {
    const name = options.names?.(index) ?? `${isSpare ? 'new' : role === 'controlplane' ? 'cp' : 'wk'}-${count}`
    const hostname = options.hostnames?.(index) ?? name
    const version = per(options.talos ?? 'v1.13.5', index)
    // Since 1.14 there is no other installer than the factory's.
    const schematic = per(options.schematic ?? (isAtLeast(version, 1, 14) ? EMPTY_SCHEMATIC : ''), index)
    if (schematic) registry.addSchematic(schematic, options.extensions ?? [])
    const image = options.installImage?.(index) ?? installerImage(factory, platform, schematic, version)
    const machine = createMachine({
      name,
      index,
      role,
      uuid: options.uuids?.(index) ?? schedule.random.uuid(),
      nodeID: base62(43),
      hostname,
      addresses: addressesOf(index),
      platform,
      slot: {
        version,
        schematic,
        factory: schematic ? factory : '',
        extensions: schematic ? (options.extensions ?? []) : [],
        secureBoot: false,
      },
      config: isSpare
        ? ''
        : renderConfig({
            role,
            clusterID,
            clusterName,
            endpoint,
            installImage: image,
            kubernetes,
            etcdQuotaBytes: options.etcdQuotaBytes,
            flannel: options.cilium === undefined,
            kubeProxy,
          }),
    })
    machines.push(machine)
    if (isSpare) wipeDisk(machine.disk)
    if (role === 'controlplane') etcd.addMember(options.memberNames?.(index) ?? hostname, peerURLsOf(machine), machine)
  }
  for (let i = 0; i < options.controlPlanes; i++) add(i, 'controlplane', i + 1)
  for (let i = 0; i < options.workers; i++) add(options.controlPlanes + i, 'worker', i + 1)
  for (let i = 0; i < (options.spares ?? 0); i++) add(options.controlPlanes + options.workers + i, 'worker', i + 1, true)

  const api = createApiServer(site)
  const nodes = createNodes(site, api)
  const configured = machines.filter(machine => machine.config !== '')
  for (const machine of configured) beRunning(site, machine)
  for (const machine of configured) nodes.create(machine)
  for (const machine of configured) tellStatus(site, machine)
  followChanges(site)
  installUnattended(site)
  followCertificates(site)
  followKubelet(site)
  followStaticPods(site)
  site.listen(machine => tellStatus(site, machine))
  installAddons(site, { cilium: options.cilium, kubeProxy })
  // Their UIDs come from elsewhere, so that what else happens in a world does not change with their number.
  draw = createRandom(options.seed + 13 * 2 ** 32).next
  installManifests(site)
  draw = schedule.random.next
  const workloads = keepWorkloads(site, api, nodes)
  for (const workload of options.workloads ?? []) installWorkload(site, workload, machines)
  workloads.pass()
  for (const machine of machines) powerOn(site, machine)
  schedule.advanceTo(start)

  const find = (which: string | number): Machine => {
    const found = machines.find(m => m.index === which || m.name === which)
    if (!found) throw new Error(`no machine ${which}`)
    return found
  }
  const member = (which: string | number): Member => {
    const found = etcd.memberOf(find(which))
    if (!found) throw new Error(`no etcd member on ${which}`)
    return found
  }
  const setCordon = (node: string, on: boolean): void => {
    site.journal.write(node, on ? 'cordon' : 'uncordon', 'by a person')
    change(store, RESOURCE.nodes, '', node, now => withCordon(now, on, 'kubectl', timestamp(store.now())))
  }
  return {
    site,
    schedule,
    store,
    machines,
    etcd,
    registry,
    faults: site.faults,
    journal: site.journal,
    calls: createCalls(site),
    api,
    nodes,
    vip: createVip(site, options.vip),
    drain: createServerDrain(site, api, nodes),
    homeOutside: options.homeOutside ?? false,
    machine: find,
    at: address => {
      const having = machines.filter(m => m.addresses.includes(address))
      return having.find(m => m.powered) ?? having[0]
    },
    member,
    isUp: machine => isUp(site, machine),
    unmet: machine => unmetConditions(site, machine),
    away: role =>
      machines.filter(m => {
        if (m.config === '' || (role !== undefined && m.role !== role)) return false
        const own = etcd.memberOf(m)
        return !isUp(site, m) || (own !== undefined && !etcd.isConnected(own))
      }),
    evict: (namespace, name, uid) => evict(site, namespace, name, uid),
    addWorkload: workload => {
      installWorkload(site, workload, machines)
    },
    fault: (which, faults) => {
      const machine = find(which)
      Object.assign(site.faults.of(machine), faults)
      if (faults.diskFull !== undefined) site.tell(machine, 'disk')
    },
    powerOff: which => powerOff(site, find(which)),
    powerOn: which => powerOn(site, find(which)),
    blackHole: (which, on) => cut(site, find(which), on),
    setClock: (which, offsetMs) => {
      const machine = find(which)
      site.faults.of(machine).clockOffsetMs = offsetMs
      site.journal.write(machine.name, 'clock', `${offsetMs} ms`)
      renewCertificate(site, machine)
    },
    readdress: (which, addresses, when = 'now') => {
      const machine = find(which)
      if (when === 'next boot') machine.nextAddresses = addresses
      else {
        readdress(site, machine, addresses)
        renewCertificate(site, machine)
      }
    },
    apiOutage: ms => api.outage(schedule.now() + ms),
    userCordon: node => setCordon(node, true),
    userUncordon: node => setCordon(node, false),
    userDeleteNode: node => {
      site.journal.write(node, 'node-deleted', 'by a person')
      store.remove(RESOURCE.nodes, '', node)
    },
    sicken: (which, on) => {
      member(which).sick = on
      etcd.look()
    },
    loseEtcdData: which => {
      powerOff(site, find(which))
      etcd.forget(find(which))
      powerOn(site, find(which))
    },
  }
}

/** Tells what MachineStatus says, if that is news. */
const tellStatus = (site: Site, machine: Machine): void => {
  if (!machine.apid) return
  const unmet = unmetConditions(site, machine)
  const told = `${machine.stage} ${unmet.join('; ')}`
  if (told === machine.toldStatus) return
  machine.toldStatus = told
  machine.events.publish(site.schedule.now(), '', { type: 'MachineStatusEvent', stage: machine.stage, ready: unmet.length === 0, unmet })
}
