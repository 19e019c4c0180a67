import { z } from 'zod'
import { ANNOTATION } from '../api/names.ts'
import type { Candidate, GivingBack, Kind, Step } from '../core/kind.ts'
import { YES, kind, no, unknown, wait } from '../core/kind.ts'
import { openTargets, receiptOf, targetsOf } from '../core/ledger.ts'
import type { View } from '../core/world.ts'
import { machineFacts, nodeFacts, nodeOf } from '../core/world.ts'
import { done as nothing, ok } from '../ports/fault.ts'
import type { NodeFacts } from '../ports/kube.ts'

/**
 * A small kind that has one of everything the engine knows: a long act with a receipt, one that commits, a cordon that is given back, a milestone, a
 * wait and a soak. Stories are about the engine; the kinds that are shipped have theirs of their own.
 */

const MINUTE = 60_000

const addressOf = ({ target, world }: View): string => world.machines.find(m => m.metadata.name === target.name)?.spec.address ?? ''
const nodeOfTarget = ({ target, world }: View): NodeFacts | undefined => {
  const nodes = nodeFacts(world)
  return nodes.ok && target.node ? nodeOf(nodes.value, target.node) : undefined
}
const isOurs = (view: View): boolean => nodeOfTarget(view)?.annotations[ANNOTATION.cordonedBy] === view.operation.metadata.uid

const asRecorded = (view: View) => {
  const facts = machineFacts(view.world, view.target.name)
  if (!facts.ok) return wait('it does not answer', 'MachineUnreachable')
  if (facts.value.bootID !== view.target.before?.bootID) return wait('it was rebooted by somebody else')
  return facts.value.stage === 'running' ? YES : wait(`it is ${facts.value.stage}`)
}

const IMAGE = 'ghcr.io/siderolabs/installer:v1.13.9'

const fetch: Step = {
  name: 'fetch',
  summary: 'Pulls the image.',
  done: view => (receiptOf(view.target, 'fetch') ? YES : no('the image is not pulled yet')),
  guard: asRecorded,
  act: {
    long: true,
    disruptive: false,
    describe: () => 'pulling',
    run: async ({ talos }, view, call) => {
      const pulled = await talos.pull(addressOf(view), IMAGE, call)
      return pulled.ok ? ok({ receipt: pulled.value }) : pulled
    },
    fatal: fault => (fault.kind === 'notFound' ? { reason: 'ImageNotFound', message: fault.message } : undefined),
  },
  deadlineMs: () => 15 * MINUTE,
  failure: 'ImageNotFound',
}

const install: Step = {
  name: 'install',
  summary: 'Runs the installer.',
  done: view => (receiptOf(view.target, 'install') ? YES : no('the installer has not ended yet')),
  guard: asRecorded,
  act: {
    long: true,
    disruptive: true,
    describe: () => 'installing',
    run: async ({ talos }, view, call) => {
      const outcome = await talos.install(addressOf(view), IMAGE, call)
      if (!outcome.ok) return outcome
      const { exitCode, lines } = outcome.value
      return ok(exitCode === 0 ? { receipt: 'exit code 0' } : { failed: { reason: 'InstallFailed' as const, message: lines.join(' | ') } })
    },
  },
  deadlineMs: () => 30 * MINUTE,
  failure: 'InstallFailed',
  commits: true,
}

const cordon: Step = {
  name: 'cordon',
  summary: 'Cordons the Node.',
  done: view => (nodeOfTarget(view)?.unschedulable === false ? no('its Node is schedulable') : YES),
  guard: asRecorded,
  act: {
    long: false,
    disruptive: true,
    describe: () => 'cordoning its Node',
    run: async ({ kube }, view) => {
      const node = nodeOfTarget(view)
      return node ? kube.cordon(node, view.operation.metadata.uid) : nothing
    },
  },
  deadlineMs: () => 5 * MINUTE,
  failure: 'NodeNotReady',
}

const reboot: Step = {
  name: 'reboot',
  summary: 'Reboots the machine.',
  done: view => {
    const facts = machineFacts(view.world, view.target.name)
    if (!facts.ok) return unknown('it does not answer')
    return facts.value.bootID === view.target.before?.bootID ? no('it has not rebooted') : YES
  },
  guard: asRecorded,
  act: { long: false, disruptive: true, describe: () => 'rebooting', run: ({ talos }, view) => talos.reboot(addressOf(view), 'default') },
  settleMs: ({ world }) => world.timing.rebootSettleMs,
  deadlineMs: () => 30 * MINUTE,
  failure: 'RebootTimeout',
  milestone: true,
  commits: true,
}

const back: Step = {
  name: 'back',
  summary: 'Waits until machine and Node are ready.',
  done: view => {
    const facts = machineFacts(view.world, view.target.name)
    if (!facts.ok) return unknown('it does not answer')
    if (facts.value.stage !== 'running' || !facts.value.ready) return no('it is not ready')
    const node = nodeOfTarget(view)
    return node?.ready === true && node.bootID === facts.value.bootID ? YES : no('its Node is not Ready')
  },
  stableMs: ({ world }) => world.timing.etcdStableMs,
  deadlineMs: () => 15 * MINUTE,
  failure: 'MachineNotReady',
}

const uncordon: Step = {
  name: 'uncordon',
  summary: 'Lifts its own cordon.',
  done: view =>
    !nodeFacts(view.world).ok
      ? unknown('the Kubernetes API does not answer')
      : isOurs(view)
        ? no('its Node is still cordoned by this operation')
        : YES,
  act: {
    long: false,
    disruptive: false,
    describe: () => 'uncordoning its Node',
    run: async ({ kube }, view) => {
      const node = nodeOfTarget(view)
      return node ? kube.uncordon(node) : nothing
    },
  },
  deadlineMs: () => 5 * MINUTE,
  failure: 'NodeNotReady',
}

const soak: Step = {
  name: 'soak',
  summary: 'Stays ready for a while.',
  applies: ({ operation }) => operation.spec.minReadySeconds > 0,
  done: back.done,
  stableMs: ({ operation }) => operation.spec.minReadySeconds * 1000,
  deadlineMs: ({ operation }) => operation.spec.minReadySeconds * 1000 + 15 * MINUTE,
  failure: 'NodeNotReady',
}

const giveBack: GivingBack = {
  ...uncordon,
  name: 'give-back',
  guard: view => {
    const facts = machineFacts(view.world, view.target.name)
    return facts.ok && facts.value.stage === 'running' && nodeOfTarget(view)?.ready === true
      ? YES
      : wait('it is not healthy, so its cordon stays')
  },
}

/** One machine after the other, control planes first. `forbidden` is a refusal that override passes. */
export const restartKind: Kind = kind({
  name: 'restart',
  block: 'restart',
  summary: 'Installs and restarts every machine, one after the other.',
  spec: z.object({ forbidden: z.boolean().default(false).meta({ description: 'Whether its check refuses.' }) }),
  checkNeeds: () => [],
  checks: operation => ({
    found: {},
    refusals: (operation.spec['restart'] as { forbidden?: boolean } | undefined)?.forbidden
      ? [{ rule: 'Forbidden', message: 'It is forbidden.', overridable: true }]
      : [],
    notes: [],
  }),
  stages: [
    {
      name: 'restart',
      summary: 'One after the other.',
      orderNeeds: () => [],
      order: (_, world) =>
        world.machines
          .map(({ metadata, spec, status }): Candidate => ({
            name: metadata.name,
            address: spec.address,
            role: spec.role,
            ...(status.hostname ? { hostname: status.hostname } : {}),
            ...(status.nodeName ? { node: status.nodeName } : {}),
          }))
          .toSorted((a, b) => (a.role === b.role ? (a.name < b.name ? -1 : 1) : a.role === 'controlplane' ? -1 : 1)),
      turn: ({ operation }) => {
        const failed = targetsOf(operation.status).find(t => t.phase === 'Failed')
        return openTargets(operation.status).length > 0 || failed ? wait('another machine is open') : YES
      },
      open: ({ world, target }) => {
        const facts = machineFacts(world, target.name)
        if (!facts.ok) return { wait: 'it does not answer', reason: 'MachineUnreachable' }
        return facts.value.version === 'v1.13.9' ? { skip: 'already there' } : { open: { goal: {} } }
      },
      outdated: ({ target, world }) => {
        const facts = machineFacts(world, target.name)
        return facts.ok && facts.value.bootID !== target.before?.bootID ? 'it was rebooted by somebody else' : undefined
      },
      steps: [fetch, install, cordon, reboot, back, uncordon, soak],
      abandon: [giveBack],
      preview: () => ({ from: 'v1.13.5', to: 'v1.13.9', loses: [] }),
    },
  ],
})
