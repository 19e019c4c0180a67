// What there is to measure, part by part. `quick` is a shorter version that is for a look, not for the page.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { firstPicture } from './first-picture.ts'
import { kilobytes, megabytes, percent, ratioAtLeast, ratioAtMost, type Row, seconds, secondsAtMost, size, table } from './format.ts'
import { kubernetesInVirtualTime } from './kubernetes-in-virtual-time.ts'
import { manyMachines } from './many-machines.ts'
import type { Found } from './report.ts'
import { rolloutInVirtualTime } from './rollout-in-virtual-time.ts'
import { rolloutOnTheWire } from './rollout-on-the-wire.ts'
import { rolloutReport } from './rollout-report.ts'
import type { Shipped } from './shipped.ts'
import { snapshotDownload } from './snapshot-download.ts'
import { startOfList } from './start-of-list.ts'
import { thousandOperations } from './thousand-operations.ts'

export type Part = {
  /** On the terminal, with how long it takes on two cores. */
  readonly about: string
  /** Undefined where `quick` leaves it out. */
  readonly measure: (shipped: Shipped, quick: boolean) => Promise<Found> | undefined
}

const demo = async (): Promise<Found> => {
  const { onNothingMs, installedMs } = await firstPicture({ runs: 5 })
  return {
    rows: [
      {
        what: 'First picture of `npm run demo`, fresh clone, nothing installed, empty npm cache',
        ...secondsAtMost(onNothingMs, 60),
      },
      { what: 'First picture of `npm run demo`, installed', ...secondsAtMost(installedMs, 5) },
    ],
  }
}

const rollout = async (shipped: Shipped, quick: boolean): Promise<Found> =>
  rolloutReport(
    [await rolloutInVirtualTime(3, 3, 1), await rolloutInVirtualTime(5, 20, 1)],
    quick
      ? [await rolloutOnTheWire(shipped, 3, 3, 50)]
      : [await rolloutOnTheWire(shipped, 3, 3, 6), await rolloutOnTheWire(shipped, 5, 20, 50)],
  )

const kubernetes = async (): Promise<Found> => {
  const found = [await kubernetesInVirtualTime(3, 3, 1), await kubernetesInVirtualTime(5, 20, 1)]
  return {
    rows: found.map(one => ({
      what: `Upgrade of Kubernetes over the restarts of its parts, ${size(one)} machines, virtual time`,
      ...ratioAtMost(one.restartingMs / one.ownMs, 1.1),
    })),
    details: `## Where the time of an upgrade of Kubernetes goes

v1.35.4 to v1.36.2. *Parts*: the programs, each from its image in the configuration to the moment when it works, one after the other. *Until the manifests*: from the first image to the last manifest. *All*: with all pulls before, and the pods
of kube-proxy after.

${table(
  ['run', 'parts', 'until the manifests', 'all'],
  found.map(one => [size(one), seconds(one.ownMs), seconds(one.restartingMs), seconds(one.wallMs)]),
)}`,
  }
}

const listing = async (shipped: Shipped, quick: boolean): Promise<Found> => {
  const what = 'Start of `ichor operation list` over `kubectl get talosoperations`'
  const list = await startOfList(shipped, quick ? 15 : 31)
  if ('missing' in list) return { rows: [{ what, value: `not measured: ${list.missing}` }] }
  return {
    rows: [{ what, ...ratioAtMost(list.ichorMs / list.kubectlMs, 1.5) }],
    details: `## Start of a listing

${list.objects} operations on ${list.server}. Medians of ${list.runs} runs of each in turns, after a warm-up: \`ichor operation list\` ${Math.round(list.ichorMs)} ms, \`kubectl get talosoperations\` ${Math.round(list.kubectlMs)} ms.`,
  }
}

const bytesIn = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)

const bundle = async ({ dist }: Shipped): Promise<Found> => ({
  rows: [{ what: 'Size of what is built, without the packages that it loads', value: `${(bytesIn(dist) / 1024 ** 2).toFixed(1)} MiB` }],
})

const SNAPSHOT_MIB = 1024
const MOST_SNAPSHOT_KB = 150_000_000 / 1024

const snapshot = async (): Promise<Found> => {
  const what = 'Throughput of an etcd snapshot of 1 GiB over `talosctl etcd snapshot`'
  const found = await snapshotDownload(SNAPSHOT_MIB, 5)
  if ('missing' in found) return { rows: [{ what, value: `not measured: ${found.missing}` }] }
  const { fromSimulated, fromPeer } = found
  const speed = (ms: number): string => `${Math.round((1000 * SNAPSHOT_MIB) / ms)} MiB/s`
  const peak = Math.max(fromSimulated.ourPeakRssKb, fromPeer.ourPeakRssKb)
  return {
    rows: [
      { what: `${what}, from a simulated machine`, ...ratioAtLeast(fromSimulated.talosctlMs / fromSimulated.ourMs, 0.9) },
      // Without an aim: both are as fast as a gigabit line here.
      { what: `${what}, from a peer that costs nothing`, value: (fromPeer.talosctlMs / fromPeer.ourMs).toFixed(3) },
      {
        what: 'Resident memory of our client, most during such a download',
        ...{ value: megabytes(peak), aim: 'below 150 MB', isMet: peak < MOST_SNAPSHOT_KB },
      },
    ],
    details: `## An etcd snapshot

1 GiB in messages of 1 KiB, to a file, each from the start of a process to its end, in turns. From a simulated machine, medians of three: ours ${speed(fromSimulated.ourMs)}, talosctl ${speed(fromSimulated.talosctlMs)}; the machine makes the
messages as it goes, in the same time for both. From a peer that has them ready, medians of five: ours ${speed(fromPeer.ourMs)}, talosctl ${speed(fromPeer.talosctlMs)}; a gigabit line carries about 112 MiB/s.`,
  }
}

const machines = async (shipped: Shipped): Promise<Found> => {
  const found = await manyMachines(shipped, 5, 195)
  const count = found.controlPlanes + found.workers
  const row = (what: string, value: string): Row => ({ what: `${what}, ${size(found)}`, value })
  return {
    rows: [
      row('Start of the simulated machines in one process', seconds(found.machines.startMs)),
      row('Resident memory of the simulated machines', megabytes(found.machines.rssKb)),
      row('Processor of the simulated machines at rest, of one core', percent(found.machines.load)),
      row('First discovery by the controller', seconds(found.controller.startMs)),
      row('Resident memory of the controller, idle', megabytes(found.controller.rssKb)),
      row('Processor of the controller at rest, of one core', percent(found.controller.load)),
      {
        ...row('Connections of the controller to the machines', String(found.controller.connections)),
        ...{ aim: 'at most one each', isMet: found.controller.connections <= count },
      },
    ],
  }
}

const operations = async (shipped: Shipped, quick: boolean): Promise<Found> => {
  const { stored, run, reactionMs, requestsPerPass, passesPerOperation, retainedKb, between, rssKb } = await thousandOperations(
    shipped,
    1_000,
    quick ? 50 : 1_000,
  )
  const beside = `beside ${stored} that are stored`
  return {
    rows: [
      { what: `From a new operation to what is done about it, 99th percentile, ${beside}`, value: `${Math.round(reactionMs.p99)} ms` },
      { what: 'The same, median', value: `${Math.round(reactionMs.p50)} ms` },
      { what: 'Requests to the Kubernetes API per look at an operation', value: requestsPerPass.toFixed(1) },
      {
        what: 'Looks at an operation that finds nothing to do, from its creation until it is deleted',
        value: passesPerOperation.toFixed(1),
      },
      {
        what: `Growth of what the controller holds after a collection, per operation, over the last nine tenths of ${run} in a row`,
        value: kilobytes((retainedKb.late - retainedKb.early) / between),
      },
      { what: 'What it holds then', value: megabytes(retainedKb.late) },
      { what: 'What it occupies then: its resident memory, before the collection', value: megabytes(rssKb) },
    ],
  }
}

/** In the order of the page. */
export const parts: Readonly<Record<string, Part>> = {
  demo: { about: 'first picture of the demo, about 1 minute', measure: (_, quick) => (quick ? undefined : demo()) },
  rollout: { about: 'rollouts in virtual time and on the wire, about 7 minutes', measure: rollout },
  kubernetes: { about: 'upgrades of Kubernetes in virtual time', measure: kubernetes },
  listing: { about: 'start of a listing, about 1 minute', measure: listing },
  bundle: { about: 'size of what is built', measure: bundle },
  snapshot: { about: 'an etcd snapshot of 1 GiB, about 8 minutes', measure: (_, quick) => (quick ? undefined : snapshot()) },
  operations: { about: 'a thousand operations, about 10 minutes', measure: operations },
  machines: { about: '200 machines at rest, about 4 minutes', measure: (shipped, quick) => (quick ? undefined : machines(shipped)) },
}
