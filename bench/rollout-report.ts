import { ratioAtMost, megabytes, seconds, size, table } from './format.ts'
import type { Found } from './report.ts'
import type { RolloutTime } from './rollout-in-virtual-time.ts'
import type { WireRollout } from './rollout-on-the-wire.ts'
import type { Account } from './time-account.ts'

/** Wall time over what the machines and the mandated waits took. */
const overheadOf = ({ total }: Account): number => 1 + total('ours') / (total('machine') + total('stability'))
const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((all, one) => all + one, 0)

export const rolloutReport = (virtual: readonly RolloutTime[], wire: readonly WireRollout[]): Found => {
  const large = wire.toSorted((a, b) => a.workers - b.workers).at(-1)
  return {
    rows: [
      ...virtual.map(one => ({
        what: `Rollout overhead, ${size(one)} machines, virtual time`,
        ...ratioAtMost(overheadOf(one.account), 1.05),
      })),
      ...wire.map(one => ({
        what: `Rollout overhead, ${size(one)} machines, on the wire, ${one.speed} times as fast as real`,
        ...(one.speed <= 15 ? ratioAtMost(overheadOf(one.account), 1.05) : { value: overheadOf(one.account).toFixed(3) }),
      })),
      ...wire.flatMap(one => {
        const machines = one.controlPlanes + one.workers
        return [
          {
            what: `Requests to the Kubernetes API per machine upgraded, ${size(one)}`,
            value: String(Math.round(sum(one.counts.kubernetes) / machines)),
          },
          {
            what: `Calls to the Talos API per machine upgraded, ${size(one)}`,
            value: String(Math.round(sum(one.counts.talos) / machines)),
          },
          { what: `Resident memory of the controller, idle, ${size(one)}`, value: megabytes(one.idleRssKb) },
          { what: `Resident memory of the controller, most during the rollout, ${size(one)}`, value: megabytes(one.peakRssKb) },
        ]
      }),
    ],
    details: [timeDetails(virtual, wire), ...(large ? [countDetails(large)] : [])].join('\n\n'),
  }
}

const timeDetails = (virtual: readonly RolloutTime[], wire: readonly WireRollout[]): string => {
  const shares = (what: string, { total, oursByStep }: Account): readonly string[] => [
    what,
    ...(['machine', 'stability', 'ours'] as const).map(share => seconds(total(share))),
    oursByStep()
      .slice(0, 5)
      .map(([step, ms]) => `${step} ${seconds(ms)}`)
      .join(', '),
  ]
  return `## Where the time of a rollout goes

Talos 1.13.5 to 1.13.9, one machine at a time, with workloads that have budgets, grace periods and a volume. Every instant is booked by what the simulated machines do, not by what the controller believes:

- *machines*: a machine pulls, installs, drains, reboots, boots, registers or rejoins etcd, or a budget holds its pods;
- *stability*: what has to hold for a while holds, and the wait has begun: two samples of etcd before it is touched, 20 s after a member is back;
- *ours*: the world is ready for the next move, and the move has not come yet.

The overhead is (machines + stability + ours) / (machines + stability). In virtual time nothing but the controller's own waits counts: no processor, no network. On the wire all of it counts, and weighs as many times more as the
machines are faster than real ones; so a fast run is no measure of the overhead, and has no aim.

${table(
  ['run', 'machines', 'stability', 'ours', 'ours, by step'],
  [
    ...virtual.map(one => shares(`${size(one)}, virtual time`, one.account)),
    ...wire.map(one => shares(`${size(one)}, on the wire, ${one.speed}×`, one.account)),
  ],
)}`
}

const countDetails = (run: WireRollout): string => {
  const machines = run.controlPlanes + run.workers
  const counted = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .toSorted((a, b) => b[1] - a[1])
      .filter(([, count]) => count / machines >= 1)
      .map(([what, count]) => [`\`${what}\``, (count / machines).toFixed(1)])
  return `## What the controller asks, per machine upgraded

Counted in the controller's process during the rollout of ${size(run)} machines, ${run.speed} times as fast as real; discovery, leader election and Events are in it. What comes once per machine or more:

${table(['Kubernetes API', 'requests'], counted(run.counts.kubernetes))}

${table(['Talos API', 'calls'], counted(run.counts.talos))}`
}
