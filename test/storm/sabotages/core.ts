import type { Setting } from '../../../src/storm/setting.ts'
import type { Sabotage } from '../spoiling.ts'

/** The next machine is not begun while the storage system says that it is not well. */
const WATCHED_STORAGE: Setting = {
  gates: [
    {
      name: 'ceph',
      expr: 'status.ceph.health == "HEALTH_OK"',
      objectRef: { apiVersion: 'ceph.rook.io/v1', kind: 'CephCluster', namespace: 'rook-ceph', name: 'main' },
      stableFor: '5s',
    },
  ],
}

/** What decides, and whose a cordon is. */
export const core: readonly Sabotage[] = [
  {
    name: 'believe-an-edited-status',
    file: 'src/core/decide.ts',
    find: `if (why !== undefined)`,
    replace: `if (why === '')`,
    caughtBy: 'one-control-plane-open',
    strikes: [{ family: 'status', what: 'a phase that does not exist', when: { at: 5000 }, forMs: 100_000 }],
  },
  {
    name: 'let-terms-differ',
    file: 'src/core/etcd-gate.ts',
    find: `if (terms.size > 1)`,
    replace: `if (terms.size > 9)`,
    caughtBy: 'odd-etcd-is-heeded',
    strikes: [{ family: 'etcd-says', what: 'is in another term', when: { at: 0 }, machine: 1, forMs: 100_000 }],
  },
  {
    name: 'begin-past-the-gates',
    file: 'src/core/rolling-out.ts',
    find: `if (gates.are === 'closed') return`,
    replace: `if (gates.are === 'closed' && world.cluster.spec.healthGates === undefined) return`,
    caughtBy: 'gates-hold-before-a-machine',
    setting: WATCHED_STORAGE,
    strikes: [{ family: 'gates', what: 'is degraded', when: { at: 90_000 }, forMs: 200_000 }],
  },
  {
    name: 'steal-the-lock-of-a-stranger',
    file: 'src/core/lock-claim.ts',
    find: `  if (!holder) return 'it is none of ours, so it is left alone'`,
    replace: `  if (!holder) return undefined`,
    caughtBy: 'lock-is-not-stolen',
    strikes: [{ family: 'people', what: 'edit lease', when: { at: 10_000 }, forMs: 60_000 }],
  },
  {
    name: 'keep-the-lock-for-ever',
    file: 'src/core/decide.ts',
    find: `  if (!isFinished(operation.status.phase)) return undefined
  if (isLeftWith(world.lock, operation)) {`,
    replace: `  if (!isFinished(operation.status.phase)) return undefined
  if (isLeftWith(world.lock, operation) && operation.spec.paused) {`,
    caughtBy: 'lock-is-free-in-the-end',
  },
  {
    name: 'no-finalizer',
    file: 'src/core/rolling-out.ts',
    find: `  if (open.length > 0 && !hasFinalizer(operation)) return { do: 'add-finalizer' }`,
    replace: ``,
    caughtBy: 'gone-leaves-nothing-open',
    strikes: [{ family: 'people', what: 'delete operation', when: { at: 6000 } }],
  },
  {
    name: 'let-go-of-one-that-has-done-something',
    file: 'src/core/decision.ts',
    find: `!isInTheMiddle(operation.status) && deedOf(kind, operation) === undefined`,
    replace: `!isInTheMiddle(operation.status)`,
    caughtBy: 'deeds-are-remembered',
    spec: { kind: 'config', config: { mode: 'no-reboot', patches: [{ inline: 'machine:\n  certSANs: [ichor.example.com]\n' }] } },
    strikes: [
      { family: 'people', what: 'pause', when: { at: 30_000 }, forMs: 500_000 },
      { family: 'people', what: 'delete operation', when: { at: 200_000 } },
    ],
  },
  {
    name: 'end-without-telling-what-was-done',
    file: 'src/core/decide.ts',
    find: `    const deeds = untoldDeeds(kind, operation, world)`,
    replace: `    const deeds = operation.spec.paused ? untoldDeeds(kind, operation, world) : undefined`,
    caughtBy: 'deeds-are-remembered',
    spec: { kind: 'config', config: { mode: 'no-reboot', patches: [{ inline: 'machine:\n  certSANs: [ichor.example.com]\n' }] } },
    strikes: [
      { family: 'people', what: 'edit lease', when: { at: 100_000 }, forMs: 590_000 },
      { family: 'people', what: 'delete operation', when: { at: 200_000 } },
    ],
  },
  {
    name: 'go-on-while-paused',
    file: 'src/core/decide.ts',
    find: `  if (!spec.paused)
    return status.phase`,
    replace: `  if (spec.kind !== '')
    return status.phase`,
    caughtBy: 'stopped-begins-nothing',
    strikes: [{ family: 'people', what: 'pause', when: { at: 6000 }, forMs: 590_000 }],
  },
  {
    name: 'honour-an-applied-retry-each-time',
    file: 'src/core/decide.ts',
    find: `  if (manager !== undefined && status.appliedRetry) {`,
    replace: `  if (manager === '' && status.appliedRetry) {`,
    caughtBy: 'a-retry-counts-once',
    strikes: [
      { family: 'gitops', what: 'applies with a retry', when: { at: 1000 }, forMs: 590_000 },
      { family: 'installer', what: 'fails', when: { at: 500 }, machine: 0, times: 3, forMs: 590_000 },
      { family: 'installer', what: 'fails', when: { at: 500 }, machine: 1, times: 3, forMs: 590_000 },
      { family: 'installer', what: 'fails', when: { at: 500 }, machine: 2, times: 3, forMs: 590_000 },
    ],
  },
  {
    name: 'forget-how-each-machine-failed',
    file: 'src/core/ledger.ts',
    find: `message: short(message), failure: { at: iso(now), reason } }))`,
    replace: `message: short(message) }))`,
    caughtBy: 'a-retry-tries-anew',
    strikes: [
      { family: 'installer', what: 'boots the old slot', when: { at: 0 }, machine: 3, times: 1, forMs: 590_000 },
      { family: 'people', what: 'retry', when: { at: 250_000 } },
    ],
  },
  {
    name: 'take-an-outage-for-acknowledged',
    file: 'src/core/etcd-gate.ts',
    find: `if (isSmall && acknowledged.includes('api-outage')) return []`,
    replace: `if (isSmall) return []`,
    caughtBy: 'outage-is-acknowledged',
    controlPlanes: 1,
  },
  {
    name: 'take-the-mark-for-a-proof',
    file: 'src/api/cordon-owner.ts',
    find: `return unschedulable && isOnlyOurs ?`,
    replace: `return unschedulable ?`,
    caughtBy: 'foreign-cordons-stay',
    strikes: [
      { family: 'people', what: 'uncordon', when: { at: 60_000 }, machine: 3 },
      { family: 'people', what: 'cordon', when: { at: 65_000 }, machine: 3 },
    ],
    // It stays cordoned while it is off.
    spec: { kind: 'node', node: { action: 'shutdown', machine: 'wk-1' } },
  },
  {
    name: 'take-the-lock-whoever-has-it',
    file: 'src/core/lock-claim.ts',
    find: `  const { lock } = world
  if (lock && lock.holder !== '') {`,
    replace: `  const { lock } = world
  if (lock && operation.metadata.name === 'another') return { may: 'take', from: lock.holder || undefined }
  if (lock && lock.holder !== '') {`,
    caughtBy: 'lock-is-not-stolen',
    strikes: [{ family: 'people', what: 'another operation', when: { at: 500 } }],
  },
  {
    name: 'take-the-lock-of-the-paused',
    file: 'src/core/lock-claim.ts',
    find: `  if (spec.paused) return 'its operator paused it'`,
    replace: `  if (spec.paused) return undefined`,
    caughtBy: 'lock-is-not-stolen',
    strikes: [
      { family: 'people', what: 'pause', when: { at: 6000 }, forMs: 590_000 },
      { family: 'people', what: 'another operation', when: { at: 100_000 } },
    ],
  },
  {
    name: 'wait-without-saying-since-when',
    file: 'src/core/ledger.ts',
    find: `const wait = { for: short(message), since,`,
    replace: `const wait = { for: short(message), since: '',`,
    caughtBy: 'every-wait-has-words',
  },
  {
    name: 'keep-the-finalizer',
    file: 'src/core/decide.ts',
    find: `  if (hasFinalizer(operation)) {
    const deeds`,
    replace: `  if (hasFinalizer(operation) && operation.spec.paused) {
    const deeds`,
    caughtBy: 'liveness',
  },
  {
    name: 'go-on-past-a-failed-control-plane',
    file: 'src/core/ledger.ts',
    find: `  return told({ ...paused(next, reason, message), lastFailure: failure }, now,`,
    replace: `  return told({ ...next, message, lastFailure: failure }, now,`,
    also: [
      {
        file: 'src/core/machine-steps/turn.ts',
        find: `(t.phase === 'Running' || t.phase === 'Failed')`,
        replace: `t.phase === 'Running'`,
      },
    ],
    caughtBy: 'failed-control-plane-freezes',
    strikes: [{ family: 'installer', what: 'fails', when: { at: 500 }, machine: 1, times: 3, forMs: 590_000 }],
  },
  {
    name: 'keep-the-lock-when-refused',
    file: 'src/core/decide.ts',
    find: `    return holdsLock(operation, world) ? { do: 'release' } : isUnguarded(kind, operation)`,
    replace: `    return isUnguarded(kind, operation)`,
    caughtBy: 'refused-touches-nothing',
    strikes: [{ family: 'etcd', what: 'has an alarm', when: { call: 4 }, machine: 0, forMs: 590_000 }],
  },
  {
    name: 'past-a-minor',
    file: 'src/core/compatibility/verdict.ts',
    find: `  if (Math.abs(b.minor - a.minor) > 1)`,
    replace: `  if (Math.abs(b.minor - a.minor) > 9)`,
    caughtBy: 'path-is-legal',
    talos: 'v1.11.6',
    spec: { kind: 'talos', talos: { version: 'v1.13.9' } },
  },
  {
    name: 'leave-who-failed-without-a-way-on',
    file: 'src/core/follow-up.ts',
    find: `    case 'failed':
      return [resume(`,
    replace: `    case 'failed':
      if (status.phase) return []
      return [resume(`,
    caughtBy: 'told-as-it-is',
    strikes: [{ family: 'installer', what: 'fails', when: { at: 500 }, machine: 1, times: 3, forMs: 590_000 }],
  },
]
