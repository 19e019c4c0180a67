import { cpus, loadavg, totalmem } from 'node:os'
import type { FirstPicture } from './first-picture.ts'
import type { RolloutTime } from './rollout-in-virtual-time.ts'
import type { WireRollout } from './rollout-on-the-wire.ts'
import type { StartOfList } from './start-of-list.ts'
import type { Account } from './time-account.ts'

export type Measured = {
  readonly command: string
  readonly startedAt: Date
  /** Of the last minute, before anything was measured: above 0.5 or so, somebody else was at work. */
  readonly loadBefore: number
  readonly virtual: readonly RolloutTime[]
  readonly wire: readonly WireRollout[]
  readonly list: StartOfList | { readonly missing: string }
  readonly picture: Partial<FirstPicture>
}

type Row = { readonly what: string; readonly value: string; readonly aim?: string; readonly isMet?: boolean }

export const loadNow = (): number => loadavg()[0] ?? 0

const seconds = (ms: number): string => (ms >= 100_000 ? `${Math.round(ms / 1000)} s` : `${(ms / 1000).toFixed(1)} s`)
const megabytes = (kb: number): string => `${Math.round(kb / 1024)} MiB`
const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((all, one) => all + one, 0)
const size = ({ controlPlanes, workers }: { readonly controlPlanes: number; readonly workers: number }): string =>
  `${controlPlanes}+${workers}`
const most = (ratio: number, aim: number): Pick<Row, 'value' | 'aim' | 'isMet'> => ({
  value: ratio.toFixed(3),
  aim: `at most ${aim.toFixed(2)}`,
  isMet: ratio <= aim,
})

/** Wall time over what the machines and the mandated waits took. */
export const overheadOf = ({ total }: Account): number => 1 + total('ours') / (total('machine') + total('stability'))

export const rowsOf = ({ virtual, wire, list, picture }: Measured): readonly Row[] => [
  ...(picture.onNothingMs === undefined
    ? []
    : [
        {
          what: 'First picture of `npm run demo`, fresh clone, nothing installed, empty npm cache',
          value: seconds(picture.onNothingMs),
          aim: 'at most 60 s',
          isMet: picture.onNothingMs <= 60_000,
        },
      ]),
  ...(picture.installedMs === undefined
    ? []
    : [
        {
          what: 'First picture of `npm run demo`, installed',
          value: seconds(picture.installedMs),
          aim: 'at most 5 s',
          isMet: picture.installedMs <= 5_000,
        },
      ]),
  ...virtual.map(one => ({ what: `Rollout overhead, ${size(one)} machines, virtual time`, ...most(overheadOf(one.account), 1.05) })),
  ...wire.map(one => ({
    what: `Rollout overhead, ${size(one)} machines, on the wire, ${one.speed} times as fast as real`,
    ...(one.speed <= 15 ? most(overheadOf(one.account), 1.05) : { value: overheadOf(one.account).toFixed(3) }),
  })),
  'missing' in list
    ? { what: 'Start of `ichor operation list` over `kubectl get`', value: `not measured: ${list.missing}` }
    : { what: 'Start of `ichor operation list` over `kubectl get talosoperations`', ...most(list.ichorMs / list.kubectlMs, 1.5) },
  ...wire.flatMap(one => {
    const machines = one.controlPlanes + one.workers
    return [
      {
        what: `Requests to the Kubernetes API per machine upgraded, ${size(one)}`,
        value: String(Math.round(sum(one.counts.kubernetes) / machines)),
      },
      { what: `Calls to the Talos API per machine upgraded, ${size(one)}`, value: String(Math.round(sum(one.counts.talos) / machines)) },
      { what: `Resident memory of the controller, idle, ${size(one)}`, value: megabytes(one.idleRssKb) },
      { what: `Resident memory of the controller, most during the rollout, ${size(one)}`, value: megabytes(one.peakRssKb) },
    ]
  }),
]

export const asText = (rows: readonly Row[]): string => {
  const width = Math.max(...rows.map(({ what }) => what.length))
  return rows
    .map(({ what, value, aim, isMet }) => `${what.padEnd(width)}  ${value.padStart(9)}${aim ? `  ${aim}${isMet ? '' : '  MISSED'}` : ''}`)
    .join('\n')
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')

export const asMarkdown = (measured: Measured): string => {
  const { virtual, wire, list } = measured
  const shares = (what: string, { total, oursByStep }: Account): readonly string[] => [
    what,
    ...(['machine', 'stability', 'ours'] as const).map(share => seconds(total(share))),
    oursByStep()
      .slice(0, 5)
      .map(([step, ms]) => `${step} ${seconds(ms)}`)
      .join(', '),
  ]
  const counted = (counts: Readonly<Record<string, number>>, machines: number) =>
    Object.entries(counts)
      .toSorted((a, b) => b[1] - a[1])
      .filter(([, count]) => count / machines >= 1)
      .map(([what, count]) => [`\`${what}\``, (count / machines).toFixed(1)])
  const large = wire.toSorted((a, b) => a.workers - b.workers).at(-1)
  const machines = large ? large.controlPlanes + large.workers : 1
  return `# Benchmarks

Made by \`${measured.command}\` on ${measured.startedAt.toISOString().slice(0, 10)}; made anew by every run of it. ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB of memory, Linux ${process.arch}, Node ${process.version}; load average
before the start ${measured.loadBefore.toFixed(1)}. Ratios are of one run; seconds and megabytes are of this machine.

${table(
  ['what', 'measured', 'aim', ''],
  rowsOf(measured).map(({ what, value, aim = '', isMet }) => [what, value, aim, isMet === undefined ? '' : isMet ? 'met' : '**missed**']),
)}

## Where the time of a rollout goes

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
)}

## Start of a listing

${
  'missing' in list
    ? `Not measured: ${list.missing}.`
    : `${list.objects} operations on ${list.server}. Medians of ${list.runs} runs of each in turns, after a warm-up: \`ichor operation list\` ${Math.round(list.ichorMs)} ms, \`kubectl get talosoperations\` ${Math.round(list.kubectlMs)} ms.`
}
${
  large
    ? `
## What the controller asks, per machine upgraded

Counted in the controller's process during the rollout of ${size(large)} machines, ${large.speed} times as fast as real; discovery, leader election and Events are in it. What comes once per machine or more:

${table(['Kubernetes API', 'requests'], counted(large.counts.kubernetes, machines))}

${table(['Talos API', 'calls'], counted(large.counts.talos, machines))}
`
    : ''
}`
}
