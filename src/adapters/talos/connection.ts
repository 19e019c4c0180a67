import type { Clock } from '../../ports/clock.ts'
import { failed, ok, type Fault, type Result } from '../../ports/fault.ts'
import type { EtcdSnapshots, Talos } from '../../ports/talos.ts'
import { formatAddress } from './address.ts'
import { type CallReport, talosCalls } from './calls.ts'
import { components } from './components.ts'
import { setComponentImage, setInstallImage } from './config.ts'
import { configurationCalls } from './configuration.ts'
import { diagnostics } from './diagnostics.ts'
import { readEtcd } from './etcd.ts'
import { machineActions } from './machine-actions.ts'
import { machineReader } from './machine-facts.ts'
import { watchMachine } from './machine-watch.ts'
import { readMembers } from './members.ts'
import { otherWay } from './other-way.ts'
import { parseTalosconfig } from './talosconfig.ts'
import { downloadSnapshot } from './snapshot.ts'
import { forfeitLeadership, installImage, pullImage, reboot, upgradeLegacy } from './upgrade.ts'

export type TalosConnectionOptions = {
  /** The text of a talosconfig. */
  readonly talosconfig: string
  /** Which of its contexts; its current one where none is named. */
  readonly context?: string
  /** Real time. */
  readonly clock: Clock
  /** Told of each finished call, failed ones too: for metrics and the benchmark. */
  readonly onCall?: ((report: CallReport) => void) | undefined
  readonly onFault?: ((fault: Fault) => void) | undefined
  /** How often a long quiet call is proved alive; 10 s. */
  readonly probeMs?: number
}

export type TalosConnection = Talos &
  EtcdSnapshots & {
    /** Takes no new calls; running ones may end, then the connections close. */
    readonly close: () => void
    /** Ends running calls too, as cancelled. */
    readonly destroy: () => void
  }

/**
 * The Talos API of the cluster of a talosconfig. Nothing is dialled until a call is made. A talosconfig that cannot be used is a Fault: `invalid`, or
 * `unauthenticated` where its certificate expired.
 */
export function talosConnection(options: TalosConnectionOptions): Result<TalosConnection> {
  const { clock } = options
  const parsed = parseTalosconfig(options.talosconfig, {
    now: new Date(clock.now()),
    ...(options.context === undefined ? {} : { context: options.context }),
  })
  if (!parsed.ok) return failed(/\bexpired on\b/.test(parsed.problem) ? 'unauthenticated' : 'invalid', parsed.problem)
  const config = parsed.value
  const calls = talosCalls({
    credential: config,
    credentialExpires: config.notAfter,
    credentialBegins: config.notBefore,
    clock,
    onCall: options.onCall,
    onFault: options.onFault,
    ...(options.probeMs === undefined ? {} : { probeMs: options.probeMs }),
  })
  const reader = machineReader(calls, clock)
  const configurations = configurationCalls(calls)
  const explained = otherWay(calls, config.endpoints, clock)
  return ok({
    ...machineActions(calls, clock),
    ...components(calls),
    ...configurations,
    ...diagnostics(calls, clock),
    endpoints: config.endpoints.map(formatAddress),
    credentialBegins: config.notBefore.getTime(),
    credentialExpires: config.notAfter.getTime(),
    authorityExpires: config.authorityNotAfter.getTime(),
    roles: config.roles,
    members: address => readMembers(calls, address),
    machine: async address => {
      const read = await reader.read(address)
      return read.ok ? read : { ok: false, fault: await explained(address, read.fault) }
    },
    etcd: address => readEtcd(calls, address),
    watch: (address, told) => watchMachine(calls, clock, address, told),
    pull: (address, image, call) => pullImage(calls, address, image, call),
    install: (address, image, call) => installImage(calls, address, image, call),
    upgrade: (address, request) => upgradeLegacy(calls, address, request),
    reboot: (address, mode) => reboot(calls, address, mode),
    forfeitLeadership: address => forfeitLeadership(calls, address),
    snapshot: (address, sink, call) => downloadSnapshot(calls, address, sink, call),
    setInstallImage: async (address, image) => {
      const set = await setInstallImage(calls, address, image)
      // Also after a failure: it may have come through.
      reader.forgetConfiguration(address)
      return set
    },
    setComponentImage: async (address, component, image) => {
      const set = await setComponentImage(calls, address, component, image)
      reader.forgetConfiguration(address)
      return set
    },
    applyConfiguration: async (address, change) => {
      const applied = await configurations.applyConfiguration(address, change)
      reader.forgetConfiguration(address)
      return applied
    },
    close: calls.close,
    destroy: calls.destroy,
  })
}
