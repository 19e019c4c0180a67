// Somebody edits the status of an operation while it runs. Whatever becomes of that operation: nothing is done that could not be done without it, it
// says what it waits for or ends, and others go on.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OperationStatus } from '../src/api/talos-operation.ts'
import { operationStatus } from '../src/api/talos-operation.ts'
import { createStory, NAMESPACE, type Story } from '../src/storm/story.ts'
import type { Machine } from '../src/world/machine.ts'
import { ICHOR } from '../src/world/ports/home.ts'
import type { Mangling } from './mangle.ts'
import { mangled, mangling } from './mangle.ts'

const HOUR = 3_600_000
/** After which nothing of a machine answers any more. */
const ENDS = new Set(['reboot-requested', 'upgrade-requested', 'shutdown-requested', 'reset-requested'])
const ACTS = new Set([...ENDS, 'install-began', 'service-restart', 'forfeit'])

/** The edit comes so long after the so-many-th write of the status. */
type Edit = Mangling & { readonly write: number; readonly afterMs: number }
const edit: fc.Arbitrary<Edit> = fc
  .record({ mangling, write: fc.nat(70), afterMs: fc.constantFrom(0, 1, 300, 5_000, 60_000) })
  .map(({ mangling: how, ...when }) => ({ ...how, ...when }))

type Spec = { readonly kind: string } & Readonly<Record<string, unknown>>

const isSettled = ({ phase, failureReason }: OperationStatus = {}): boolean =>
  phase === 'Completed' ||
  phase === 'Cancelled' ||
  (phase === 'Paused' && failureReason !== undefined && failureReason !== 'ClusterLockHeld')

/** Everything that was wrong in a story with these edits. */
const wrongIn = async (spec: Spec, edits: readonly Edit[]): Promise<readonly string[]> => {
  const wrong: string[] = []
  const faults: string[] = []
  const story = createStory({ hear: (level, message) => void (level === 'error' && faults.push(message)) })
  const { world } = story
  await ready(story)
  const count = edits.length
  watchActs(story, wrong, 1 + count)
  const left = new Set(edits)
  let writes = 0
  const made: string[] = []
  world.store.watch(ICHOR.operations, undefined, ({ object }) => {
    if (object.metadata.name !== 'up') return
    const fits = operationStatus.safeParse(object['status'] ?? {})
    if (!fits.success) wrong.push(`a status that the CRD refuses: ${fits.error.message}`)
    writes++
    for (const one of left) {
      if (one.write > writes) continue
      left.delete(one)
      world.schedule.after(one.afterMs, () => {
        const now = world.store.get(ICHOR.operations, NAMESPACE, 'up')
        const status = now && mangled((now['status'] ?? {}) as OperationStatus, one)
        if (!now || !status) return
        made.push(`${JSON.stringify(now['status'])}\n -> ${JSON.stringify(status)}`)
        world.store.update(ICHOR.operations, { ...now, status })
      })
    }
  })
  story.start()
  story.create({ name: 'up', spec })
  await story.pass(1_000)
  story.create({ name: 'other', spec: { kind: 'node', node: { action: 'restart-service', machine: 'wk-2', service: 'kubelet' } } })
  const status = (): OperationStatus => story.operation('up')?.status ?? {}
  await story
    .until('it has settled', () => isSettled(status()), 8 * HOUR)
    .catch(() => {
      const { waiting, message } = status()
      if (!waiting?.for && !message) wrong.push('it neither ends nor says what it waits for')
    })
  await story.pass(HOUR)
  if (
    status().failureReason === 'InternalError' &&
    !/\bE-[0-9a-z.]+: /.test(status().message ?? '') &&
    count === 1 &&
    edits[0]?.how !== 'whole'
  )
    wrong.push(`InternalError without its id: ${status().message}`)
  if (faults.some(fault => !fault.startsWith('internal error')) || faults.length > 20)
    wrong.push(`errors: ${faults.slice(0, 5).join('\n')}`)
  if (writes > 600) wrong.push(`${writes} writes`)
  if (story.operation('up')) story.remove('up')
  await story.until('it is gone', () => story.operation('up') === undefined, 8 * HOUR).catch(() => void wrong.push('it cannot be deleted'))
  await story
    .until('the other ended', () => isSettled(story.operation('other')?.status), 8 * HOUR)
    .catch(() => void wrong.push('the other hangs'))
  const { failureReason } = story.operation('other')?.status ?? {}
  if (failureReason === 'InternalError') wrong.push('the other fell with it')
  return wrong.length > 0 ? [...wrong, ...made, story.tell()] : []
}

const ready = async (story: Story): Promise<void> => {
  const process = story.start('before')
  const known = (): number => story.world.store.list(ICHOR.machines, NAMESPACE).items.filter(m => 'status' in m).length
  await story.until('the machines are known', () => known() >= story.world.machines.length)
  process.kill()
  await story.pass(60_000)
}

const watchActs = ({ world }: Story, wrong: string[], most: number): void => {
  const serves = (m: Machine): boolean => {
    const member = world.etcd.memberOf(m)
    return world.isUp(m) && (m.role === 'worker' || (member !== undefined && world.etcd.isConnected(member)))
  }
  world.journal.onEntry(({ what, machine: name }) => {
    if (!ACTS.has(what)) return
    const { role } = world.machine(name)
    const away = world.machines.filter(m => m.name !== name && m.role === role && !serves(m)).map(m => m.name)
    if (ENDS.has(what) && away.length > 0) wrong.push(`${what} on ${name} while ${away.join(', ')} was away`)
    if (ENDS.has(what) && world.journal.of(what, name).length > most) wrong.push(`${what} on ${name} more than ${most} times`)
    const busy = world.machines.filter(m => m.name !== name && world.journal.of('install-began', m.name).length > ended(m.name))
    if (what === 'install-began' && busy.length > 0) wrong.push(`install on ${name} while ${busy.map(m => m.name).join(', ')} installs`)
  })
  const ended = (name: string): number =>
    world.journal.of('installed', name).length +
    world.journal.of('install-cut', name).length +
    world.journal.of('install-failed', name).length
}

const RUNS = Number(process.env['MANGLE_RUNS'] ?? 8)
const SEED = Number(process.env['MANGLE_SEED'] ?? 7)

describe('status edited by hand to nonsense', () => {
  it.each<[string, Spec]>([
    ['talos', { kind: 'talos', talos: { version: 'v1.13.9' } }],
    ['node, reboot', { kind: 'node', node: { action: 'reboot', machine: 'cp-2' } }],
    ['node, reset', { kind: 'node', node: { action: 'reset', machine: 'wk-1', rebootAfter: true } }],
  ])('%s: one operation stops or goes on as it should, others go on', { timeout: 600_000 }, async (_, spec) => {
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 2 }), async edits => {
        expect(await wrongIn(spec, edits)).toEqual([])
      }),
      { numRuns: RUNS, seed: SEED },
    )
  })
})
