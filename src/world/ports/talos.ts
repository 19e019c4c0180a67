import type { FaultKind, Result } from '../../ports/fault.ts'
import { done, failed, ok } from '../../ports/fault.ts'
import type { ClusterMember, LongCall, MachineFacts, Talos } from '../../ports/talos.ts'
import type { Answer, Code, Refusal } from '../answer.ts'
import { clockOf } from '../certificates.ts'
import type { World } from '../cluster.ts'
import { setConfig } from '../configuration.ts'
import { install, pullImage } from '../install.ts'
import { requestUpgrade } from '../legacy-upgrade.ts'
import { isHeardByOthers } from '../heard.ts'
import type { Machine } from '../machine.ts'
import { answers, isInMaintenance, isReady, unmetConditions, versionOf } from '../machine.ts'
import { INSTALL_IMAGE, etcdQuotaOf, readScalar, writeScalar } from '../machine-config.ts'
import { kubernetesConfigOf } from '../kubernetes-config.ts'
import { requestReboot } from '../reboot.ts'
import { META_FALLBACK, runningSlot } from '../slots.ts'
import type { Ends } from '../stream.ts'
import type { Cancel } from '../time.ts'
import type { Client } from './client.ts'
import { appliedLater, type Caller } from './caller.ts'
import { componentCalls } from './components.ts'
import { configurationCalls } from './configuration.ts'
import { machineActions } from './machine-actions.ts'
import { objectionIn } from './handshake.ts'

/** A client certificate, as far as it decides anything here. */
export type Credential = {
  readonly role: 'os:admin' | 'os:operator' | 'os:reader'
  readonly begins: number
  readonly expires: number
  /** When the CA beside it ends. */
  readonly authorityExpires: number
}

/** The deadline of every call but the long ones. */
const DEADLINE_MS = 10_000
/** In which word of a change comes. */
const WORD_MS = 100
/** No answer to ARP. */
const NO_ROUTE_MS = 3100

const KINDS: Readonly<Record<Code, FaultKind>> = {
  Unknown: 'unknown',
  InvalidArgument: 'invalid',
  DeadlineExceeded: 'unreachable',
  NotFound: 'notFound',
  AlreadyExists: 'alreadyExists',
  PermissionDenied: 'forbidden',
  FailedPrecondition: 'precondition',
  Unimplemented: 'unsupported',
  Internal: 'unknown',
  Unavailable: 'unreachable',
  ResourceExhausted: 'busy',
}

const fault = (address: string, name: string, { code, message }: Refusal): ReturnType<typeof failed> => {
  const kind =
    code === 'Unknown' && message.includes('validating installer image') && message.includes('not found') ? 'notFound' : KINDS[code]
  return failed(kind, `${address}: ${name}: ${code}: ${message}`)
}

const factsOf = (world: World, machine: Machine, address: string): MachineFacts => {
  const slot = runningSlot(machine.disk)
  return {
    address,
    hostname: machine.hostname,
    nodename: kubernetesConfigOf(world.site, machine).registersNode ? machine.name : '',
    role: machine.role,
    uuid: machine.uuid,
    nodeID: machine.nodeID,
    clusterID: world.site.clusterID,
    clusterName: world.site.clusterName,
    version: versionOf(machine),
    platform: machine.platform,
    arch: machine.arch,
    secureBoot: slot.secureBoot,
    bootID: machine.bootID,
    stage: machine.stage,
    ready: isReady(world.site, machine),
    unmet: unmetConditions(world.site, machine),
    schematic: slot.schematic,
    factory: slot.factory,
    extensions: slot.extensions,
    installImage: readScalar(machine.config, INSTALL_IMAGE) ?? '',
    fallbackArmed: machine.disk.meta.has(META_FALLBACK),
    etcdQuotaBytes: etcdQuotaOf(machine.config),
  }
}

/** The Talos API of the world's cluster, for one client with one credential. */
export const createTalos = (world: World, client: Client, credential: Credential): Talos => {
  const { schedule, site } = world
  const after = (ms: number): Promise<void> => new Promise(resolve => void schedule.after(ms, resolve))

  /** Finds who answers at an address, or waits as long as it takes to find that nobody does. */
  const reach = async (address: string, name: string): Promise<Result<Machine>> => {
    const machine = world.at(address)
    if (machine && answers(machine) && isInMaintenance(machine))
      return failed('wrongPeer', `${address}: ${name}: x509: certificate signed by unknown authority`)
    if (machine && answers(machine)) return ok(machine)
    if (machine?.cut) {
      await after(DEADLINE_MS)
      return failed('unreachable', `${address}: ${name}: deadline of 10s exceeded`)
    }
    if (machine?.powered) return failed('unreachable', `${address}: ${name}: connect: connection refused`)
    await after(NO_ROUTE_MS)
    return failed('unreachable', `${address}: ${name}: connect: no route to host`)
  }
  const rank = { 'os:reader': 0, 'os:operator': 1, 'os:admin': 2 } as const
  const call = <T>(
    address: string,
    name: keyof Talos,
    needs: Credential['role'],
    changes: boolean,
    run: (machine: Machine) => Promise<Result<T>> | Result<T>,
  ): Promise<Result<T>> =>
    client.call({ port: 'talos', name, target: address, changes }, async () => {
      if (schedule.now() >= credential.expires)
        return failed('unauthenticated', `${address}: ${name}: remote error: tls: expired certificate`)
      const reached = await reach(address, name)
      if (!reached.ok) return reached
      if (rank[credential.role] < rank[needs])
        return failed('forbidden', `${address}: ${name}: PermissionDenied: not authorized; the credential needs the role ${needs}`)
      const objection = objectionIn(world, reached.value, credential, `${address}: ${name}`)
      if (objection) return objection
      const answered = await run(reached.value)
      const { slowMs } = site.faults.of(reached.value)
      if (slowMs > 0) await after(Math.min(slowMs, DEADLINE_MS))
      // Too late: whatever it was has happened.
      return slowMs < DEADLINE_MS ? answered : failed('unreachable', `${address}: ${name}: deadline of 10s exceeded`)
    })

  /** A stream: ends by itself, when its caller cancels, or when its process is killed. */
  const long = <T>(
    address: string,
    name: string,
    { cancellation, progress }: LongCall,
    open: (ends: Ends<T>) => Cancel,
  ): Promise<Result<T>> =>
    new Promise(resolve => {
      if (cancellation.cancelled) return resolve(failed('cancelled', `${address}: ${name}: cancelled`))
      let over = false
      const stops: (() => void)[] = []
      const finish = (result: Result<T>): void => {
        if (over) return
        over = true
        for (const stop of stops) stop()
        resolve(result)
      }
      const hangUp = open({
        line: text => {
          if (!over && client.isAlive()) progress(text)
        },
        end: (result: Answer<T>) => finish(result.ok ? ok(result.value) : fault(address, name, result)),
      })
      if (over) return
      const cancel = (): void => {
        finish(failed('cancelled', `${address}: ${name}: cancelled`))
        hangUp()
      }
      stops.push(cancellation.onCancel(cancel), client.onKill(cancel))
    })

  const toMaintenance = <T>(address: string, run: (machine: Machine) => Result<T>): Promise<Result<T>> =>
    client.call({ port: 'talos', name: 'maintenance', target: address, changes: false }, async () => {
      const machine = world.at(address)
      if (machine?.powered && !machine.cut) return run(machine)
      await after(NO_ROUTE_MS)
      return failed('unreachable', `${address}: maintenance: connect: no route to host`)
    })

  const caller: Caller = { call, long, fault, toMaintenance, applied: appliedLater(site, DEADLINE_MS) }

  return {
    ...machineActions(world, caller),
    ...componentCalls(site, caller),
    ...configurationCalls(site, caller),
    endpoints: world.machines.filter(m => m.role === 'controlplane').flatMap(m => m.addresses.slice(0, 1)),
    credentialBegins: credential.begins,
    credentialExpires: credential.expires,
    authorityExpires: credential.authorityExpires,
    roles: [credential.role],

    members: address =>
      call(address, 'members', 'os:reader', false, () =>
        ok(
          world.machines
            .filter(m => m.config !== '')
            .map((m): ClusterMember => ({
              hostname: m.hostname,
              nodeID: m.nodeID,
              role: m.role,
              addresses: [...m.addresses],
              operatingSystem: `Talos (${versionOf(m)})`,
            })),
        ),
      ),
    machine: async address => {
      const read = await call(address, 'machine', 'os:admin', false, machine => ok(factsOf(world, machine, address)))
      const machine = world.at(address)
      const runs = !read.ok && read.fault.kind === 'unreachable' && machine !== undefined && isHeardByOthers(world, machine)
      return runs ? { ok: false, fault: { ...read.fault, runs } } : read
    },
    clockAhead: address => call(address, 'clockAhead', 'os:admin', false, machine => ok(clockOf(site, machine) - schedule.now())),
    virtualAddresses: address =>
      call(address, 'virtualAddresses', 'os:admin', false, ({ role }) =>
        ok(role === 'controlplane' && site.virtualAddress !== '' ? [site.virtualAddress] : []),
      ),
    etcd: address =>
      call(address, 'etcd', 'os:reader', false, async machine => {
        const view = world.etcd.view(machine)
        if (view.ok) return ok(view.value)
        if (view.code === 'DeadlineExceeded') await after(DEADLINE_MS)
        return fault(address, 'etcd', view)
      }),
    watch: (address, told) => {
      let heard = ''
      const stops = new Set<() => void>()
      const stop = (): void => {
        for (const one of stops) one()
        stops.clear()
      }
      const look = (): void => {
        const machine = world.at(address)
        if (!machine || !answers(machine) || isInMaintenance(machine)) return
        const says = `${machine.bootID} ${machine.toldStatus}`
        if (says === heard) return
        heard = says
        const cancel = schedule.after(WORD_MS, () => {
          stops.delete(cancel)
          told('changed')
        })
        stops.add(cancel)
      }
      stops.add(site.listen(look)).add(client.onKill(stop))
      look()
      return stop
    },

    pull: (address, image, options) =>
      call(address, 'pull', 'os:operator', true, machine => long(address, 'pull', options, ends => pullImage(site, machine, image, ends))),
    install: (address, image, options) =>
      call(address, 'install', 'os:admin', true, machine => long(address, 'install', options, ends => install(site, machine, image, ends))),
    upgrade: (address, request) =>
      call(
        address,
        'upgrade',
        'os:admin',
        true,
        machine =>
          new Promise(resolve =>
            requestUpgrade(site, machine, { ...request, force: false }, world.drain, result =>
              resolve(result.ok ? done : fault(address, 'upgrade', result)),
            ),
          ),
      ),
    reboot: (address, mode) =>
      call(address, 'reboot', 'os:operator', true, machine => {
        const result = requestReboot(site, machine, mode)
        return result.ok ? done : fault(address, 'reboot', result)
      }),
    forfeitLeadership: address =>
      call(
        address,
        'forfeitLeadership',
        'os:admin',
        true,
        machine =>
          new Promise(resolve => {
            if (machine.role !== 'controlplane')
              return resolve(
                failed('unsupported', `${address}: forfeitLeadership: etcd forfeit leadership is only available on control plane nodes`),
              )
            site.journal.write(machine.name, 'forfeit')
            world.etcd.forfeit(machine, result => resolve(result.ok ? done : fault(address, 'forfeitLeadership', result)))
          }),
      ),
    setInstallImage: (address, image) =>
      call(address, 'setInstallImage', 'os:admin', true, machine =>
        caller.applied(machine, address, 'setInstallImage', () =>
          setConfig(site, machine, writeScalar(machine.config, INSTALL_IMAGE, image)),
        ),
      ),
  }
}
