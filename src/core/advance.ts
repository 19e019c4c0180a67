import type { Target } from '../api/talos-operation.ts'
import type { Reason } from '../api/reasons.ts'
import { formatDuration } from '../api/duration.ts'
import type { Decision } from './decision.ts'
import { record } from './decision.ts'
import type { Stage } from './kind.ts'
import * as ledger from './ledger.ts'
import { nextStep } from './steps.ts'
import type { Need, View } from './world.ts'
import { displayName, machineFacts, nodeFacts, nodeOf, stateOf } from './world.ts'

/** What every question about a target may ask about without saying so. */
export const targetNeeds = (target: Pick<Target, 'name'>): readonly Need[] => [{ what: 'machine', name: target.name }, { what: 'nodes' }]

/**
 * A committing step was intended, or lies behind, although somebody else did it or a try of which nothing was heard: the machine is half done until it
 * is all done. One that went back to a step before is tried anew.
 */
export const isCommitted = (stage: Stage, view: View): boolean => {
  const { target } = view
  const steps = stage.steps.filter(s => s.applies?.(view) ?? true)
  const at = steps.findIndex(s => s.name === target.step)
  return steps.some((s, i) => (i <= at && s.name === target.committed) || (i < at && s.commits === true))
}

/** One target's next move. `prefix` tells that the operation will stop afterwards. */
export const advance = (stage: Stage, view: View, prefix?: string): Decision => {
  const { operation, target, world } = view
  const say = (text: string): string => (prefix ? `${prefix}: ${text}` : text)
  const outdated = isCommitted(stage, view) ? undefined : stage.outdated?.(view)
  if (outdated) return record(operation, ledger.returned(operation.status, world.now, target.name, outdated))
  const next = nextStep(stage.steps, view)
  switch (next.is) {
    case 'look':
      return { do: 'look', needs: next.needs }
    case 'done': {
      const facts = machineFacts(world, target.name)
      const nodes = nodeFacts(world)
      const after = facts.ok
        ? stateOf(facts.value, nodes.ok ? nodeOf(nodes.value, facts.value.nodename) : undefined, operation.metadata.uid)
        : undefined
      const outcome = stage.outcome?.(target, after) ?? `${target.before?.version ?? ''} -> ${after?.version ?? ''}`
      const came = `${outcome} in ${formatDuration(world.now - ledger.ms(target.startedAt))}`
      return record(operation, ledger.closed(operation.status, world.now, target.name, 'Completed', came, after), {
        type: 'Normal',
        reason: 'MachineCompleted',
        message: `${displayName(target)} is done: ${came}.`,
      })
    }
    case 'enter':
      return record(operation, ledger.entered(operation.status, world.now, target.name, next.step))
    case 'hold':
      return {
        do: 'wait',
        status: ledger.holding(
          ledger.waiting(operation.status, world.now, target.name, say(`${displayName(target)}: ${next.why}`), undefined),
          target.name,
          next.since,
        ),
        forMs: next.forMs,
      }
    case 'fail':
      return failure(view, next.reason, next.message)
    case 'wait':
      return {
        do: 'wait',
        status: ledger.holding(
          ledger.waiting(operation.status, world.now, target.name, say(`${displayName(target)}: ${next.why}`), next.until),
          target.name,
          undefined,
        ),
        forMs: next.forMs,
      }
    case 'act': {
      const message = say(`${displayName(target)}: ${next.act.describe(view)}`)
      const status = ledger.intended(operation.status, world.now, target.name, message, next.step.commits)
      return { do: 'act', status, view, step: next.step, act: next.act }
    }
  }
}

export const failure = ({ operation, target, world }: View, reason: Reason, message: string): Decision => {
  const status = ledger.failed(operation.status, world.now, target, reason, message)
  return record(operation, status, { type: 'Warning', reason, message })
}
