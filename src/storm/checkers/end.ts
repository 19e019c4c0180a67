import { operationHolder } from '../../api/names.ts'
import { isFinished } from '../../api/phases.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import { isStopped } from '../../core/ledger.ts'
import type { Checker } from '../checker.ts'
import { tellsOfNoLock } from '../faults/answers.ts'
import { isHarmless } from '../harmless.ts'
import type { Machine } from '../../world/machine.ts'
import { isExplained, isLeftOut } from './explained.ts'

/** It has come to an end, or waits for somebody who is named. */
export const hasSettled = ({ status, spec, metadata }: TalosOperation, all: readonly TalosOperation[]): boolean => {
  if (isFinished(status.phase)) return metadata.deletionTimestamp === undefined && metadata.finalizers.length === 0
  if (metadata.deletionTimestamp !== undefined) return false
  if (isStopped(status)) return !status.machines?.some(t => t.phase === 'Running')
  if (spec.paused) return status.phase === 'Paused'
  if (status.failureReason !== 'ClusterLockHeld') return false
  const holder = all.find(o => status.lock?.holder.endsWith(`/${o.metadata.name}`))
  return holder?.spec.paused === true && holder.status.phase === 'Paused'
}

/** How often an operation boots a machine that it was done to: by its kind, its mode, or by what it does to a single one. */
const BOOTS: Readonly<Record<string, number>> = { talos: 1, reboot: 1 }

export const fairWeatherEnd: Checker = {
  name: 'harmless-trouble-costs-time-only',
  rule: 'cases',
  post: ({ stage, world, targetOf, onOperation }, object) => {
    const { plan } = stage
    if (!isHarmless(plan)) return
    // An operation may be gone by then, and what it did is still there.
    const done = new Set<Machine>()
    onOperation(({ after }) => {
      for (const machine of world.machines) if (after && targetOf(after, machine)?.phase === 'Completed') done.add(machine)
    })
    return () => {
      const stopped = stage.operations().filter(o => o.status.phase !== 'Completed')
      for (const operation of stopped) {
        const { metadata, status } = operation
        if (!isExplained(operation, plan)) object(`${metadata.name} is ${status.phase}: ${status.failureReason ?? ''} ${status.message}`)
      }
      const { action } = (plan.operations[0]?.spec['node'] ?? {}) as { action?: string }
      const { mode } = (plan.operations[0]?.spec['config'] ?? {}) as { mode?: string }
      // A machine that ends by what was asked for is started by whoever comes by next.
      if (action === 'shutdown' || action === 'reset') return
      for (const machine of world.machines) {
        // Those who failed may have been sent into it once more.
        if (stopped.some(o => targetOf(o, machine)?.phase === 'Failed')) continue
        const boots = world.journal.of('boot', machine.name).length
        if (boots !== (done.has(machine) ? (BOOTS[action ?? mode ?? plan.kind] ?? 0) : 0))
          object(`${machine.name} was booted ${boots} times`)
        if (plan.kind === 'talos' && stopped.length === 0 && !done.has(machine) && !isLeftOut(machine.index, plan))
          object(`all is done, and nothing was done to ${machine.name}`)
      }
    }
  },
}

export const lockIsFree: Checker = {
  name: 'lock-is-free-in-the-end',
  rule: 'spec 6',
  post: (scene, object) => () => {
    const { holder, uid } = scene.lock()
    if (holder === '') return
    if (tellsOfNoLock(scene.stage.plan)) return
    // Where a hand has taken the UID off the Lease, only the name is left to go by.
    const isIt = ({ metadata: { namespace, name, uid: own } }: TalosOperation): boolean =>
      uid === '' ? operationHolder(namespace, name) === holder : own === uid
    const operation = scene.stage.operations().find(isIt)
    if (!operation) object(`${holder} does not exist any more, and holds the lock`)
    else if (isFinished(operation.status.phase)) object(`${holder} is ${operation.status.phase}, and holds the lock`)
  },
}
