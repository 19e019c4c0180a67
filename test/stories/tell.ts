// A story as text: what Ichor decided, and what came of it on each machine. No times and no ids: they change with every draw of the seed.
import type { OperationStatus } from '../../src/api/talos-operation.ts'
import type { Story } from '../../src/storm/story.ts'
import type { JournalEntry } from '../../src/world/journal.ts'
import { ICHOR } from '../../src/world/ports/home.ts'

const ON_A_MACHINE = new Set([
  ...['pulled', 'pull-failed', 'install-began', 'installed', 'install-failed', 'install-cut', 'forfeit', 'install-image'],
  ...['cordon', 'uncordon', 'evicted', 'evict-refused', 'pod-deleted', 'drain-gave-up', 'node-deleted'],
  ...['component-image', 'static-pod', 'static-pod-crashed', 'kubelet-restart', 'config-applied', 'config-rolled-back'],
  ...['shutdown-requested', 'reset-requested', 'wiped', 'service-restart', 'etcd-defragmented', 'etcd-removed'],
  ...[
    'reboot-requested',
    'upgrade-requested',
    'stuck',
    'locked',
    'sequence-failed',
    'down',
    'boot',
    'boot-failed',
    'power-on',
    'cut',
    'healed',
  ],
])
const IN_THE_CLUSTER = new Set(['quorum-lost', 'quorum', 'api-down', 'api-up', 'leader-lost', 'alarm', 'manifest'])

/** Waits of less than this are not worth a line. */
const LONG_MS = 5 * 60_000

export type Teller = { readonly text: () => string; readonly note: (what: string) => void }

/** Listens from now on. */
export const listen = (story: Story, name: string): Teller => {
  const { world } = story
  const decided: string[] = []
  const machines = new Map<string, string[]>(world.machines.map(m => [m.name, []]))

  world.journal.onEntry((entry: JournalEntry) => {
    if (IN_THE_CLUSTER.has(entry.what)) decided.push(plain(`* ${entry.what} ${entry.machine || entry.detail}`))
    const own = machines.get(entry.machine)
    if (!own || !ON_A_MACHINE.has(entry.what)) return
    const line = plain(`${entry.what} ${entry.detail}`)
    if (own.at(-1) !== line) own.push(line)
  })

  let seen: OperationStatus = {}
  const heard = new Set<string>()
  world.store.watch(ICHOR.operations, undefined, ({ object }) => {
    if (object.metadata.name !== name) return
    const status = (object['status'] ?? {}) as OperationStatus
    const waited = seen.waiting
    if (waited && waited.for !== status.waiting?.for && world.schedule.now() - Date.parse(waited.since) >= LONG_MS)
      decided.push(plain(`waited for ${waited.for}`))
    for (const { at, message } of status.history ?? []) {
      const key = `${at} ${message}`
      if (heard.has(key)) continue
      heard.add(key)
      decided.push(plain(message))
    }
    seen = status
  })

  return {
    note: what => void decided.push(`* ${what}`),
    text: () =>
      [
        ...decided,
        `= ${[seen.phase, seen.failureReason].filter(Boolean).join(', ')}`,
        ...[...machines].flatMap(([machine, lines]) => ['', machine, ...lines.map(line => `  ${line}`)]),
        '',
      ].join('\n'),
  }
}

const plain = (text: string): string =>
  text
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '')
    .replaceAll(/-[0-9a-f]{8,10}-[a-z0-9]{5}\b/g, '-…')
    .replaceAll(/@sha256:[0-9a-f]{64}/g, '')
    .replaceAll(/\b([0-9a-f]{6})[0-9a-f]{58}\b/g, '$1…')
    .replace(/ in (\d+[hms] ?)+$/, '')
    .trimEnd()
