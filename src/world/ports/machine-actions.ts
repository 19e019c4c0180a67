import type { Result } from '../../ports/fault.ts'
import { done, failed, ok } from '../../ports/fault.ts'
import type { MachineActions } from '../../ports/machine-actions.ts'
import type { Answer } from '../answer.ts'
import { answer } from '../answer.ts'
import type { World } from '../cluster.ts'
import { defragmentEtcd, leaveEtcd, removeEtcdMember } from '../etcd-membership.ts'
import type { Machine } from '../machine.ts'
import { answers, isInMaintenance } from '../machine.ts'
import { requestReset } from '../reset.ts'
import { controlService } from '../service-control.ts'
import type { Service } from '../services.ts'
import { requestShutdown } from '../shutdown.ts'
import { later } from '../site.ts'
import { openStream } from '../stream.ts'
import type { Caller } from './caller.ts'

const LEAVE_AGAIN_MS = 1000

/** The trailing run of Running: a longer one than is kept tells no begin. */
const startOf = ({ state, events }: Service): number | undefined => {
  if (state !== 'Running') return undefined
  const before = events.findLastIndex(e => e.state !== 'Running')
  return before < 0 ? undefined : events[before + 1]?.at
}

export const machineActions = (world: World, { call, long, fault, toMaintenance }: Caller): MachineActions => {
  const { site } = world
  const said = (address: string, name: string, result: Answer<unknown>): Result<void> => (result.ok ? done : fault(address, name, result))
  /** etcd's own calls hang where no etcd answers. */
  const onMember = (address: string, name: keyof MachineActions, run: (machine: Machine) => Promise<Result<void>> | Result<void>) =>
    call<void>(address, name, 'os:admin', true, async machine => {
      if (machine.role !== 'controlplane')
        return failed('unsupported', `${address}: ${name}: this call is only available on control plane nodes`)
      const view = world.etcd.view(machine)
      return view.ok ? run(machine) : fault(address, name, view)
    })

  return {
    service: (address, id) =>
      call(address, 'service', 'os:reader', false, machine => {
        const found = machine.services.get(id)
        if (!found) return ok(undefined)
        const startedAt = startOf(found)
        const last = found.events.at(-1)?.message
        return ok({
          id,
          state: found.state,
          health: found.health,
          ...(startedAt === undefined ? {} : { startedAt }),
          ...(last ? { lastEvent: last } : {}),
        })
      }),
    restartService: (address, id) =>
      call<void>(address, 'restartService', 'os:operator', true, machine => {
        const restarted = controlService(site, machine, id, 'restart')
        if (restarted.ok) return done
        return failed(machine.services.has(id) ? 'unsupported' : 'notFound', `${address}: restartService: ${restarted.message}`)
      }),
    shutdown: (address, { force }) =>
      call<void>(address, 'shutdown', 'os:operator', true, machine =>
        said(address, 'shutdown', requestShutdown(site, machine, force, world.drain)),
      ),
    reset: (address, { wipe, reboot }) =>
      call<void>(address, 'reset', 'os:admin', true, machine =>
        said(
          address,
          'reset',
          requestReset(
            site,
            machine,
            {
              graceful: true,
              reboot,
              partitions: wipe === 'disk' ? [] : ['STATE', 'EPHEMERAL'],
              userDisks: [],
              mode: 'system-disk',
            },
            world.drain,
          ),
        ),
      ),
    maintenance: address =>
      toMaintenance(address, machine =>
        answers(machine) && isInMaintenance(machine)
          ? ok({ uuid: machine.uuid })
          : failed('unreachable', `${address}: maintenance: connect: connection refused`),
      ),
    defragment: (address, options) =>
      onMember(address, 'defragment', machine =>
        long<void>(address, 'defragment', options, ends => {
          const stream = openStream<void>(site, machine, ends)
          defragmentEtcd(site, machine, () => stream.end(answer(undefined)))
          return stream.hungUp
        }),
      ),
    disarmAlarms: address =>
      onMember(address, 'disarmAlarms', () => {
        world.etcd.disarm()
        return done
      }),
    leaveEtcd: (address, options) =>
      onMember(address, 'leaveEtcd', machine =>
        long<void>(address, 'leaveEtcd', options, ends => {
          const stream = openStream<void>(site, machine, ends)
          const attempt = (): void => {
            if (!stream.open()) return
            const left = leaveEtcd(site, machine)
            if (left) return stream.end(left)
            later(site, machine, LEAVE_AGAIN_MS, attempt)
          }
          attempt()
          return stream.hungUp
        }),
      ),
    removeMember: (address, memberID) =>
      onMember(address, 'removeMember', () => {
        const removed = removeEtcdMember(site, memberID)
        return removed.ok || removed.code === 'NotFound' ? done : fault(address, 'removeMember', removed)
      }),
  }
}
