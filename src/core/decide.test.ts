import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ANNOTATION, FINALIZER } from '../api/names.ts'
import type { TalosCluster } from '../api/talos-cluster.ts'
import type { OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import type { Lease } from '../ports/home.ts'
import type { MachineFacts } from '../ports/talos.ts'
import { decide } from './decide.ts'
import type { Answer, Kind, Opening, Refusal, Step, Turn, Verdict } from './kind.ts'
import { YES, no, wait } from './kind.ts'
import { iso } from './ledger.ts'
import { metadata, operation, world } from './samples.ts'
import type { Facts, World } from './world.ts'
import { NO_FACTS } from './world.ts'

const NOW = Date.UTC(2026, 8, 1, 8)
const nothing = async () => ({ ok: true, value: undefined }) as const
const act = { long: false, disruptive: true, describe: () => 'doing it', run: nothing } as const

type Ways = {
  readonly refusals?: readonly Refusal[]
  readonly work?: Answer
  readonly turn?: Turn
  readonly open?: Opening
  readonly taken?: Answer
  readonly healthy?: Verdict
  readonly names?: readonly string[]
}
/** A kind of one step, and one thing that it gives back. */
const sample = ({
  refusals = [],
  work = no('it is not done'),
  turn = YES,
  open = { open: { goal: {} } },
  taken = YES,
  healthy = YES,
  names = ['wk-1', 'wk-2'],
}: Ways = {}): Kind => {
  const step: Step = { name: 'work', summary: '', done: () => work, act, failure: 'InternalError', commits: true }
  return {
    name: 'sample',
    block: 'sample',
    summary: 'Does it.',
    spec: z.object({}),
    checkNeeds: () => [],
    checks: () => ({ found: {}, refusals, notes: [] }),
    stages: [
      {
        name: 'rollout',
        summary: '',
        orderNeeds: () => [],
        order: () => names.map(name => ({ name, role: 'worker' as const })),
        turn: () => turn,
        open: () => open,
        steps: [step],
        abandon: [
          {
            name: 'give-back',
            summary: '',
            done: () => taken,
            guard: () => healthy,
            act: { ...act, disruptive: false },
            failure: 'InternalError',
          },
        ],
        preview: () => ({ from: '', to: '', loses: [] }),
      },
    ],
  }
}

const lease: Lease = {
  namespace: 'ichor-system',
  name: 'ichor-home',
  uid: 'l',
  resourceVersion: '1',
  holder: 'ichor-controller/op/ichor-system/up',
  durationSeconds: 1,
  transitions: 1,
  acquireTime: '2026-09-01T07:30:00.000000Z',
  renewTime: '2026-09-01T07:30:00.000000Z',
  annotations: { [ANNOTATION.holderUid]: 'uid-up' },
}
const machine = (): MachineFacts => ({
  address: '',
  hostname: 'wk-1',
  nodename: 'wk-1',
  role: 'worker',
  uuid: '',
  nodeID: '',
  clusterID: '',
  clusterName: '',
  version: 'v1',
  platform: '',
  arch: '',
  secureBoot: false,
  bootID: 'b1',
  stage: 'running',
  ready: true,
  unmet: [],
  schematic: '',
  factory: '',
  extensions: [],
  installImage: '',
  fallbackArmed: false,
  etcdQuotaBytes: 0,
})
const facts: Facts = {
  ...NO_FACTS,
  nodes: { ok: true, value: [] },
  policies: { ok: true, value: [] },
  machines: { 'wk-1': { ok: true, value: machine() }, 'wk-2': { ok: true, value: machine() } },
}
const lock = { lease: 'ichor-home', holder: lease.holder, since: lease.acquireTime }
const preflight = { checkedAt: iso(NOW), underLock: true, refusals: [] }
const target = (change: Partial<Target> = {}): Target => ({
  name: 'wk-1',
  role: 'worker',
  phase: 'Running',
  before: { bootID: 'b1' },
  goal: {},
  startedAt: iso(NOW),
  stepStartedAt: iso(NOW),
  ...change,
})
const pending: Target = { name: 'wk-2', role: 'worker', phase: 'Pending' }
const at = (status: OperationStatus): OperationStatus => ({ phase: 'Running', lock, preflight, ...status })
const guarded = { metadata: { finalizers: [FINALIZER] } }

const decided = (op: TalosOperation, ways: Ways = {}, seen: Partial<World> = {}) =>
  decide(sample(ways), op, world({ now: NOW, lock: lease, facts, ...seen }))
const status = (answer: ReturnType<typeof decided>): OperationStatus => ('status' in answer && answer.status ? answer.status : {})

describe('the decision', () => {
  it('is the same when it is asked twice', () => {
    const op = operation(at({ machines: [target({ step: 'work' }), pending] }), guarded)
    expect(JSON.stringify(decided(op))).toBe(JSON.stringify(decided(op)))
  })

  it('asks for the facts that it misses', () => {
    expect(decided(operation(at({ machines: [target()] }), guarded), {}, { facts: NO_FACTS })).toEqual({
      do: 'look',
      needs: [{ what: 'machine', name: 'wk-1' }, { what: 'nodes' }],
    })
  })
})

it('stops at a status that nobody comes to, with what to do about it', () => {
  const strange = operation(at({ machines: [target({ step: 'warp' })] }), guarded)
  expect(() => decided(strange)).toThrow(/there is no step warp .*another version of Ichor: cancel this one and start another/)
})

describe('before the lock', () => {
  const free = { lock: undefined }
  it('accepts, checks, and takes the lock, in this order', () => {
    const accepted = decided(operation(), {}, free)
    expect(accepted).toMatchObject({ do: 'record', status: { phase: 'Pending' } })
    const checked = decided(operation(status(accepted)), {}, free)
    expect(checked).toMatchObject({ do: 'record', status: { preflight: { underLock: false } } })
    expect(decided(operation(status(checked)), {}, free)).toEqual({ do: 'acquire', takeOver: undefined })
  })

  it.each<[string, TalosCluster['status']]>([
    ['nobody has looked at the cluster, which may be as new', {}],
    [
      'the cluster has machines, and the list of them is older',
      { conditions: [], machines: { total: 5, controlPlanes: 3, ready: 5, summary: '5/5' } },
    ],
  ])('waits where %s, instead of being refused for it', (_, seen) => {
    const cluster = { ...world().cluster, status: seen }
    const answer = decided(operation({ phase: 'Pending' }), {}, { ...free, cluster })
    expect(status(answer)).toMatchObject({
      phase: 'Pending',
      message: 'Waits until the machines of TalosCluster home are discovered.',
    })
    expect(decided(operation(status(answer)), {}, { ...free, cluster })).toMatchObject({ do: 'rest', forMs: expect.any(Number) })
  })

  it('says all refusals at once, and takes no lock', () => {
    const refusals = [
      { rule: 'A', message: 'one', overridable: true },
      { rule: 'B', message: 'two', overridable: false },
    ]
    const answer = decided(operation({ phase: 'Pending' }), { refusals }, free)
    expect(status(answer)).toMatchObject({ phase: 'Paused', failureReason: 'PreflightRefused', message: 'one. two.' })
    expect(decided(operation(status(answer)), { refusals }, free)).toEqual({ do: 'rest' })
  })

  it('lets override pass only what may be overridden', () => {
    const refusals = [
      { rule: 'A', message: 'one', overridable: true },
      { rule: 'B', message: 'two', overridable: false },
    ]
    const answer = decided(operation({ phase: 'Pending' }, { spec: { override: true } }), { refusals }, free)
    expect(status(answer)).toMatchObject({ failureReason: 'PreflightRefused', message: 'two.' })
  })

  it('does not begin before startAfter, nor outside the windows', () => {
    const later = operation({ phase: 'Pending' }, { spec: { startAfter: iso(NOW + 600_000) } })
    expect(decided(later, {}, free)).toMatchObject({ do: 'record', status: { phase: 'Pending', waiting: { until: iso(NOW + 600_000) } } })
    expect(decided(operation(status(decided(later, {}, free)), { spec: later.spec }), {}, free)).toEqual({ do: 'rest', forMs: 600_000 })
    const far = operation({ phase: 'Pending' }, { spec: { startAfter: iso(NOW + 90 * 86_400_000) } })
    expect(decided(operation(status(decided(far, {}, free)), { spec: far.spec }), {}, free)).toEqual({ do: 'rest', forMs: 3_600_000 })
  })

  it('gives back a lock that a refused one still holds', () => {
    expect(decided(operation({ phase: 'Paused', failureReason: 'PreflightRefused' }))).toEqual({ do: 'release' })
  })

  it('writes the Lease once more after a retry, before anything else', () => {
    const op = operation(at({ lastRetry: iso(NOW), machines: [target({ step: 'work' })] }), guarded)
    expect(decided(op)).toEqual({ do: 'acquire', takeOver: undefined })
    expect(decided(op, {}, { lock: { ...lease, renewTime: iso(NOW) } })).toMatchObject({ do: 'act' })
  })

  it('is reached again when the lock is gone from under it: what runs ends first', () => {
    const op = operation(at({ machines: [target({ step: 'work' })] }), guarded)
    const running = [{ target: 'wk-1', step: 'work', progress: '' }]
    expect(decided(op, {}, { lock: { ...lease, holder: 'a-person' }, running })).toEqual({ do: 'cancel-act', target: 'wk-1', step: 'work' })
    expect(decided(op, {}, { lock: { ...lease, holder: 'a-person' } })).toMatchObject({
      do: 'record',
      status: { phase: 'Paused', failureReason: 'ClusterLockHeld' },
    })
  })
})

describe('with the lock', () => {
  it('checks once more, then freezes the order', () => {
    const taken = decided(operation({ phase: 'Pending', preflight: { ...preflight, underLock: false } }))
    expect(status(taken)).toMatchObject({ phase: 'Running', lock })
    const checked = decided(operation(status(taken)))
    expect(status(checked).preflight?.underLock).toBe(true)
    expect(status(decided(operation(status(checked)))).machines?.map(m => m.name)).toEqual(['wk-1', 'wk-2'])
  })

  it('opens a machine with what it was before, and only then sets the finalizer and acts', () => {
    const opened = decided(operation(at({ machines: [{ name: 'wk-1', role: 'worker', phase: 'Pending' }, pending] })))
    expect(status(opened).machines?.[0]).toMatchObject({ phase: 'Running', before: { bootID: 'b1' } })
    expect(decided(operation(status(opened)))).toEqual({ do: 'add-finalizer' })
    const entered = decided(operation(status(opened), guarded))
    expect(status(entered).machines?.[0]).toMatchObject({ step: 'work' })
    const intended = decided(operation(status(entered), guarded))
    expect(intended).toMatchObject({ do: 'act', status: { machines: [{ actedAt: iso(NOW), attempts: 1 }, {}] } })
  })

  it('goes on with others while one waits after a bad answer', () => {
    const machines = [target({ step: 'work', retryAt: iso(NOW + 9000), fault: '503' }), target({ name: 'wk-2', step: 'work' })]
    expect(decided(operation(at({ machines }), guarded))).toMatchObject({ do: 'act', view: { target: { name: 'wk-2' } } })
  })

  it('skips, waits for its turn, and fails as the kind says', () => {
    const op = operation(at({ machines: [{ name: 'wk-1', role: 'worker', phase: 'Pending' }] }))
    expect(status(decided(op, { open: { skip: 'held' } })).machines?.[0]).toMatchObject({ phase: 'Skipped', message: 'held' })
    expect(decided(op, { turn: wait('control planes go first') })).toMatchObject({
      do: 'wait',
      status: { message: 'wk-1 is next: control planes go first' },
    })
    expect(status(decided(op, { open: { fail: { reason: 'MachineAmbiguous', message: 'two' } } }))).toMatchObject({
      failureReason: 'MachineAmbiguous',
    })
  })

  it('leaves a machine out only when what speaks for that has stayed so', () => {
    const opening = { open: { skip: 'it is gone', afterMs: 60_000 } }
    const op = (stepStartedAt?: string): TalosOperation =>
      operation(at({ machines: [{ name: 'wk-1', role: 'worker', phase: 'Pending', ...(stepStartedAt ? { stepStartedAt } : {}) }] }))
    const waiting = { for: 'wk-1: it is gone; it is left out if that stays so', until: iso(NOW + 60_000) }
    expect(decided(op(), opening)).toMatchObject({
      do: 'wait',
      status: { waiting, machines: [{ phase: 'Pending', stepStartedAt: iso(NOW) }] },
    })
    expect(decided(op(iso(NOW - 59_000)), opening)).toMatchObject({ do: 'wait', status: { waiting: { until: iso(NOW + 1_000) } } })
    expect(status(decided(op(iso(NOW - 60_000)), opening)).machines?.[0]).toMatchObject({ phase: 'Skipped', message: 'it is gone' })
  })

  it('gives a machine that cannot begin a quarter of an hour, counted from its turn', () => {
    const open: Opening = { wait: 'it does not answer', reason: 'MachineUnreachable' }
    const op = (stepStartedAt: string) => operation(at({ machines: [{ name: 'wk-1', role: 'worker', phase: 'Pending', stepStartedAt }] }))
    expect(decided(op(iso(NOW - 899_000)), { open })).toMatchObject({ do: 'wait' })
    expect(status(decided(op(iso(NOW - 900_000)), { open }))).toMatchObject({ failureReason: 'MachineUnreachable' })
  })

  it('appends machines that joined meanwhile, and then is completed', () => {
    const machines = [target({ phase: 'Completed' })]
    const appended = decided(operation(at({ machines })))
    expect(status(appended).machines?.map(m => `${m.name} ${m.phase}`)).toEqual(['wk-1 Completed', 'wk-2 Pending'])
    const completed = decided(operation(at({ machines, progress: { done: 1, skipped: 0, total: 1, summary: '1/1' } })), { names: ['wk-1'] })
    expect(status(completed)).toMatchObject({ phase: 'Completed', message: '1 machine done.' })
    expect(decided(operation(status(completed), guarded))).toEqual({ do: 'release' })
    // A hand has taken the UID off the Lease, or it is a namesake's.
    expect(decided(operation(status(completed), guarded), {}, { lock: { ...lease, annotations: {} } })).toEqual({ do: 'release' })
    const namesake = { ...lease, annotations: { [ANNOTATION.holderUid]: 'uid-of-another' } }
    expect(decided(operation(status(completed), guarded), {}, { lock: namesake })).toEqual({ do: 'drop-finalizer' })
    expect(decided(operation(status(completed), guarded), {}, { lock: undefined })).toEqual({ do: 'drop-finalizer' })
    expect(decided(operation(status(completed)), {}, { lock: undefined })).toEqual({ do: 'rest' })
  })
})

describe('asked to stop', () => {
  const asked = [
    ['paused', { spec: { paused: true } }],
    ['cancelled', { spec: { cancelled: true } }],
    ['deleted', { metadata: { deletionTimestamp: iso(NOW) } }],
  ] as const
  const machines = (change: Partial<Target>) => at({ machines: [target(change), pending] })
  const op = (status: OperationStatus, change: Parameters<typeof operation>[1]) =>
    operation(status, { ...change, metadata: { ...guarded.metadata, ...change?.metadata } })

  it.each(asked)('%s: carries a committed machine to its end', (_, change) => {
    expect(decided(op(machines({ step: 'work', actedAt: iso(NOW), committed: 'work' }), change))).toMatchObject({ do: 'act' })
    expect(
      status(decided(op(machines({ step: 'work', actedAt: iso(NOW), committed: 'work' }), change), { work: YES })).machines?.[0],
    ).toMatchObject({
      phase: 'Completed',
    })
  })

  it.each(asked)('%s: ends what runs, gives back what was taken, and closes a machine that is not committed', (_, change) => {
    const running = [{ target: 'wk-1', step: 'work', progress: '' }]
    expect(decided(op(machines({ step: 'work' }), change), {}, { running })).toEqual({ do: 'cancel-act', target: 'wk-1', step: 'work' })
    expect(decided(op(machines({ step: 'work' }), change), { taken: no('cordoned') })).toMatchObject({
      do: 'act',
      step: { name: 'give-back' },
    })
    expect(status(decided(op(machines({ step: 'work' }), change))).machines?.[0]?.phase).toMatch(/Pending|Cancelled/)
  })

  it('keeps what it took of a machine that is not healthy, with a word', () => {
    const answer = decided(op(machines({ step: 'work' }), { spec: { cancelled: true } }), {
      taken: no('cordoned'),
      healthy: wait('it is not healthy, so its cordon stays'),
    })
    expect(status(answer).machines?.[0]).toMatchObject({
      phase: 'Cancelled',
      message: 'closed before anything that cannot be undone, because the operation was cancelled; it is not healthy, so its cordon stays',
    })
  })

  it('says what was done, when it is cancelled', () => {
    expect(status(decided(op(at({ machines: [target({ phase: 'Completed' }), pending] }), { spec: { cancelled: true } })))).toMatchObject({
      phase: 'Cancelled',
      completedAt: iso(NOW),
    })
  })
})

describe('stopped by a failure', () => {
  const failed = (change: Partial<Target> = {}): OperationStatus =>
    at({
      phase: 'Paused',
      failureReason: 'DrainBlocked',
      message: 'held',
      machines: [target({ phase: 'Failed', step: 'work', ...change }), pending],
    })

  it('rests', () => {
    expect(decided(operation(failed(), guarded))).toEqual({ do: 'rest' })
  })

  it('gives back what it took as soon as the machine is healthy, and says so until then', () => {
    const unhealthy = { taken: no('cordoned'), healthy: wait('it is not healthy') } as const
    const told = decided(operation(failed({ message: 'DrainBlocked' }), guarded), unhealthy)
    expect(status(told).machines?.[0]?.message).toBe('DrainBlocked (it is not healthy)')
    expect(decided(operation(status(told), guarded), unhealthy)).toEqual({ do: 'rest', forMs: 15_000 })
    expect(decided(operation(status(told), guarded), { taken: no('cordoned') })).toMatchObject({ do: 'act', step: { name: 'give-back' } })
  })

  it('ends an act that still runs for the failed step', () => {
    expect(decided(operation(failed(), guarded), {}, { running: [{ target: 'wk-1', step: 'work', progress: '' }] })).toMatchObject({
      do: 'cancel-act',
    })
  })

  it('sees that its lock was taken over', () => {
    expect(
      status(decided(operation(failed(), guarded), {}, { lock: { ...lease, holder: 'ichor-controller/op/ichor-system/b' } })),
    ).not.toHaveProperty('lock')
  })

  const retry = { annotations: { [ANNOTATION.retry]: 'true' }, finalizers: [FINALIZER] }
  it('is retried by the annotation, once, unless its operator paused it', () => {
    expect(decided(operation(failed(), { metadata: retry }))).toMatchObject({
      do: 'drop-retry',
      status: { phase: 'Running', lastRetry: iso(NOW) },
    })
    expect(decided(operation(failed(), { metadata: retry, spec: { paused: true } }))).toEqual({ do: 'rest' })
    expect(decided(operation(failed(), { metadata: { ...retry, annotations: { [ANNOTATION.retry]: 'yes' } } }))).toEqual({ do: 'rest' })
    expect(decided(operation(at({ machines: [target({ step: 'work' })] }), { metadata: retry }))).toEqual({
      do: 'drop-retry',
      status: undefined,
    })
  })

  it('counts an applied retry once', () => {
    const applied = { ...retry, retryAppliedBy: 'argocd' }
    const first = decided(operation(failed(), { metadata: applied }))
    expect(status(first)).toMatchObject({ appliedRetry: { at: iso(NOW), ignored: 0 } })
    const again = decided(operation({ ...failed(), appliedRetry: { at: iso(NOW), ignored: 0 } }, { metadata: applied }))
    expect(again).toMatchObject({
      do: 'drop-retry',
      status: { failureReason: 'DrainBlocked', appliedRetry: { ignored: 1 } },
      event: { reason: 'RetryIgnored' },
    })
    expect(decided(operation({ ...failed(), appliedRetry: { at: iso(NOW), ignored: 1 } }, { metadata: applied }))).not.toHaveProperty(
      'event',
    )
  })
})

describe('after its end', () => {
  it('goes when its time to live is over, and is looked at again at least every hour until then', () => {
    const done = (agoMs: number) => operation({ phase: 'Completed', completedAt: iso(NOW - agoMs) }, { spec: { ttlAfterFinished: '720h' } })
    expect(decided(done(0), {}, { lock: undefined })).toEqual({ do: 'rest', forMs: 3_600_000 })
    expect(decided(done(720 * 3_600_000), {}, { lock: undefined })).toEqual({ do: 'delete' })
  })

  it('takes a retry away', () => {
    expect(
      decided(
        operation({ phase: 'Completed' }, { metadata: metadata({ annotations: { [ANNOTATION.retry]: 'true' } }) }),
        {},
        { lock: undefined },
      ),
    ).toEqual({ do: 'drop-retry', status: undefined })
  })
})
