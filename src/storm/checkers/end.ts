import { isFinished } from '../../api/phases.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import { isStopped } from '../../core/ledger.ts'
import type { Checker } from '../checker.ts'
import { isHarmless } from '../draw.ts'
import type { Machine } from '../../world/machine.ts'
import type { Plan } from '../plan.ts'

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

/** How it ends that what was asked for is not there, or was set up so that it can never be. */
const REFUSED = new Set(['PreflightRefused', 'ImageNotFound', 'ServiceRestartRefused', 'DrainBlocked'])

/** It asks for too much, or does not accept what it costs. */
const mayBeRefused = ({ spec, metadata }: TalosOperation, { kind, shape, operations }: Plan): boolean =>
  kind === 'node' ||
  (shape.controlPlanes < 3 && !spec.acknowledge.includes('api-outage')) ||
  operations.some(o => o.name === metadata.name && o.mayBeRefused)

export const fairWeatherEnd: Checker = {
  name: 'harmless-trouble-costs-time-only',
  rule: 'cases',
  post: ({ stage, world, targetOf, onOperation }, object) => {
    if (!isHarmless(stage.plan)) return
    // An operation may be gone by then, and what it did is still there.
    const done = new Set<Machine>()
    onOperation(({ after }) => {
      for (const machine of world.machines) if (after && targetOf(after, machine)?.phase === 'Completed') done.add(machine)
    })
    return () => {
      const isRefusedRightly = stage
        .operations()
        .some(o => (REFUSED.has(o.status.failureReason ?? '') || o.spec.override) && mayBeRefused(o, stage.plan))
      if (isRefusedRightly) return
      for (const { metadata, status } of stage.operations())
        if (status.phase !== 'Completed') object(`${metadata.name} is ${status.phase}: ${status.failureReason ?? ''} ${status.message}`)
      if (stage.plan.kind !== 'talos') return
      for (const machine of world.machines) {
        const boots = world.journal.of('boot', machine.name).length
        const isLeft = stage.plan.operations.some(o => o.mayBeRefused) && !done.has(machine)
        if (boots !== (isLeft ? 0 : 1)) object(`${machine.name} was booted ${boots} times`)
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
    const operation = scene.stage.operations().find(o => o.metadata.uid === uid)
    if (!operation) object(`${holder} does not exist any more, and holds the lock`)
    else if (isFinished(operation.status.phase)) object(`${holder} is ${operation.status.phase}, and holds the lock`)
  },
}
