// The controller dies at each call that changes something, before or after its effect, one death in each run: of every kind, and of every action of
// kind node. Between two of these calls nothing has happened, so a death there is the death after the one before.
import type { PortCall } from '../../src/world/calls.ts'
import { ADDED } from '../../src/storm/operations.ts'
import { judge } from '../../src/storm/judge.ts'
import type { Plan } from '../../src/storm/plan.ts'
import { playPlan } from '../../src/storm/storm.ts'

type Case = {
  readonly talos?: string
  readonly kubernetes?: string
  readonly members?: number
  readonly spec: Plan['operations'][number]['spec']
}

const node = (action: string, machine: string, more: object = {}): Case['spec'] => ({ kind: 'node', node: { action, machine, ...more } })

/** Small and quick: what counts is the order of things, not their length. Three members, where etcd has something to say. */
export const cases: Readonly<Record<string, Case>> = {
  'talos, the installer by itself': { spec: { kind: 'talos', talos: { version: 'v1.13.9' } } },
  'talos, below 1.13': { talos: 'v1.12.5', kubernetes: 'v1.35.1', spec: { kind: 'talos', talos: { version: 'v1.12.9' } } },
  kubernetes: { kubernetes: 'v1.35.4', spec: { kind: 'kubernetes', kubernetes: { version: 'v1.36.2', drain: 'minor' } } },
  ...Object.fromEntries(
    ['try', 'no-reboot', 'staged', 'reboot'].map(mode => [
      `config, ${mode}`,
      { spec: { kind: 'config', config: { mode, patches: [{ inline: `machine:\n  certSANs:\n    - ${ADDED}\n` }] } } },
    ]),
  ),
  'node reboot, a worker': { spec: node('reboot', 'wk-1') },
  'node reboot, a control plane': { members: 3, spec: node('reboot', 'cp-2') },
  'node shutdown': { spec: node('shutdown', 'wk-1') },
  'node restart-service': { spec: node('restart-service', 'wk-1', { service: 'kubelet' }) },
  'node etcd-defrag': { members: 3, spec: node('etcd-defrag', 'cp-2') },
  'node forfeit-leadership': { members: 3, spec: node('forfeit-leadership', 'cp-1') },
  'node reset, a worker': { spec: node('reset', 'wk-1', { rebootAfter: true }) },
  'node reset, a control plane': { members: 4, spec: node('reset', 'cp-3') },
}

const planOf = ({ talos = 'v1.13.5', kubernetes = 'v1.36.2', members = 1, spec }: Case): Plan => ({
  seed: 7,
  kind: spec.kind,
  shape: {
    ...{ controlPlanes: members, workers: 1, talos, kubernetes, haste: 12, homeOutside: true, replicas: 1 },
    workloads: [{ name: 'web', replicas: 2, graceSeconds: 2 }],
  },
  operations: [{ name: 'op', spec: { ...(members < 3 ? { acknowledge: ['api-outage'] } : {}), ...spec } }],
  strikes: [],
  horizonMs: 1000,
  resumes: false,
})

/** Heartbeats of the leader, and what discovery writes, come again by themselves; some of each stand for all. */
const HEARTBEATS = new Set(['replaceLease', 'writeMachineStatus', 'writeClusterStatus', 'event'])

/** All calls that change something, in their order, until the operation is done. */
const callsOf = async (plan: Plan): Promise<readonly PortCall[]> => {
  const calls: PortCall[] = []
  let isOver = false
  const { violations, text } = await playPlan(plan, {
    arrange: ({ story }) => {
      story.world.calls.intercept(call => {
        isOver ||= story.operation('op')?.status.phase === 'Completed'
        if (call.changes && !isOver) calls.push(call)
        return undefined
      })
    },
  })
  if (violations.length > 0) throw new Error(text())
  if (!isOver) throw new Error(`it does not end well even without a death:\n${text()}`)
  return calls
}

export type Deaths = { readonly deaths: number; readonly calls: number; readonly wrong: readonly string[] }

/** Plays the case once for each of its deaths, or for every `stride`th of them, from the `from`th on. */
export const dieAtEachCall = async (told: Case, stride = 1, from = 0): Promise<Deaths> => {
  const plan = planOf(told)
  const calls = await callsOf(plan)
  const deaths = calls.flatMap((call, i) => {
    if (HEARTBEATS.has(call.name) && i % 9 !== 0) return []
    // A strike falls at the call after the one that it is told for.
    const when = i === 0 ? { at: 0 } : { call: i }
    const died = (what: string) => ({ what, words: `${what} call ${i + 1}, ${call.port}.${call.name} ${call.target}`, when })
    // Dead before a call is dead after the one before it; told apart where a call reaches a machine.
    return i === 0 || call.port === 'talos' ? [died('killed before'), died('killed after')] : [died('killed after')]
  })
  const chosen = deaths.filter((_, i) => i % stride === from % stride)
  const wrong: string[] = []
  for (const { what, words, when } of chosen) {
    const { violations, ends } = await judge({ ...plan, horizonMs: 600_000, strikes: [{ family: 'crash', what, when, forMs: 4000 }] })
    for (const v of violations) wrong.push(`${words}: ${v.checker}: ${v.what}`)
    if (violations.length === 0 && ends.join() !== 'Completed') wrong.push(`${words}: ${ends.join()}`)
  }
  return { deaths: chosen.length, calls: calls.length, wrong }
}
