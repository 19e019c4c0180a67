import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../api/names.ts'
import type { OperationSpec, OperationStatus, TalosOperation, Target } from '../api/talos-operation.ts'
import { clockTime, holderText, summarize } from './summary.ts'

const at = (time: string) => `2026-03-01T${time}Z`
const now = Date.parse(at('14:10:00'))

const operation = (
  given: {
    spec?: Partial<OperationSpec>
    status?: OperationStatus
    annotations?: Record<string, string>
    deleted?: boolean
    created?: string
  } = {},
): TalosOperation => ({
  metadata: {
    name: 'talos-1-13-9',
    namespace: 'prod',
    uid: 'u1',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: at(given.created ?? '14:00:00'),
    ...(given.deleted ? { deletionTimestamp: at('14:09:00') } : {}),
    labels: {},
    annotations: given.annotations ?? {},
    finalizers: [],
  },
  spec: {
    clusterRef: { name: 'home' },
    kind: 'talos',
    paused: false,
    override: false,
    cancelled: false,
    talos: { version: 'v1.13.9' },
    ...given.spec,
  } as OperationSpec,
  status: given.status ?? {},
})

const machine = (name: string, phase: Target['phase'], more: Partial<Target> = {}): Target => ({
  name,
  role: name.startsWith('cp') ? 'controlplane' : 'worker',
  phase,
  ...more,
})

const opened = machine('cp-2', 'Running', { step: 'drain', stepStartedAt: at('14:06:40'), message: '3 pods left' })
const machines = [
  machine('cp-1', 'Completed'),
  opened,
  machine('cp-3', 'Pending'),
  machine('wk-1', 'Pending'),
  machine('wk-2', 'Skipped', { message: 'held' }),
]

const failed: OperationStatus = {
  phase: 'Paused',
  failureReason: 'InstallFailed',
  message: 'cp-2: the installer ended with exit code 1',
  lastFailure: {
    reason: 'InstallFailed',
    message: 'expected exit code 0, seen 1: no space left on device',
    machine: 'cp-2',
    step: 'install',
    at: at('14:07:00'),
  },
  machines: [machine('cp-1', 'Completed'), machine('cp-2', 'Failed', { step: 'install' }), machine('cp-3', 'Pending')],
  lock: { lease: 'ichor-home', holder: 'ichor-controller/op/prod/talos-1-13-9', since: at('14:00:30') },
}

const headlines: [string, TalosOperation, string, string][] = [
  ['new', operation({ created: '14:09:55' }), 'pending', 'Pending: its checks are running.'],
  [
    'left alone',
    operation({ created: '14:08:30' }),
    'pending',
    'Pending: no controller has looked at it for 1m 30s. Is the Ichor controller running?',
  ],
  [
    'running',
    operation({ status: { phase: 'Running', machines, message: '3 pods left' } }),
    'running',
    'Running: cp-2 in step drain since 14:06:40 UTC (3m 20s): 3 pods left',
  ],
  [
    'between machines',
    operation({ status: { phase: 'Running', message: 'cp-1 is done, cp-2 is next' } }),
    'running',
    'Running: cp-1 is done, cp-2 is next',
  ],
  [
    'waiting',
    operation({
      status: { phase: 'Running', machines, waiting: { for: 'etcd to be healthy', since: at('14:09:00'), until: at('14:20:00') } },
    }),
    'waiting',
    'Waiting for etcd to be healthy, since 14:09:00 UTC (1m), until 14:20:00 UTC (10m left), on cp-2 (step drain)',
  ],
  [
    'waiting without a limit, overnight',
    operation({ status: { phase: 'Running', waiting: { for: 'the maintenance window', since: '2026-02-28T23:00:00Z' } } }),
    'waiting',
    'Waiting for the maintenance window, since 2026-02-28 23:00:00 UTC (15h 10m)',
  ],
  [
    'queued',
    operation({
      status: {
        phase: 'Paused',
        failureReason: 'ClusterLockHeld',
        lock: { lease: 'ichor-home', holder: 'ichor-controller/op/prod/first' },
      },
    }),
    'queued',
    'Queued: the lock of cluster home is held by operation prod/first. It starts by itself when that one finishes.',
  ],
  [
    'pausing',
    operation({ spec: { paused: true }, status: { phase: 'Running', machines: [opened] } }),
    'pausing',
    'Pausing, once this is finished: cp-2 in step drain since 14:06:40 UTC (3m 20s): 3 pods left',
  ],
  [
    'paused',
    operation({ spec: { paused: true }, status: { phase: 'Paused' } }),
    'paused',
    'PAUSED by its operator. Nothing advances until it is resumed.',
  ],
  [
    'resumed just now',
    operation({ status: { phase: 'Paused', message: 'paused' } }),
    'resuming',
    'Resuming: the controller has not taken it up yet.',
  ],
  [
    'failed',
    operation({ status: failed }),
    'failed',
    'FAILED: InstallFailed on cp-2 in step install, 3m ago. Nothing advances until it is resumed.',
  ],
  [
    'failed, with others that still move',
    operation({
      status: {
        ...failed,
        machines: [
          machine('wk-1', 'Failed', { step: 'install' }),
          machine('wk-2', 'Running', { step: 'reboot', stepStartedAt: at('14:06:40') }),
        ],
      },
    }),
    'failing',
    'FAILED on cp-2: InstallFailed in step install, 3m ago. Still finishing wk-2 in step reboot since 14:06:40 UTC (3m 20s)',
  ],
  [
    'queued with a machine open',
    operation({
      status: {
        phase: 'Paused',
        failureReason: 'ClusterLockHeld',
        lock: { lease: 'ichor-home', holder: 'ichor-controller/op/prod/first' },
        machines: [opened],
      },
    }),
    'queued',
    'Queued: cp-2 is open; it waits for its lock of cluster home back, held by operation prod/first.',
  ],
  [
    'queued behind somebody unknown',
    operation({ status: { phase: 'Paused', failureReason: 'ClusterLockHeld', lock: { lease: 'ichor-home', holder: 'somebody' } } }),
    'queued',
    'Queued: the lock of cluster home is held by somebody, which is nothing of Ichor’s.',
  ],
  [
    'failed and paused',
    operation({ spec: { paused: true }, status: failed }),
    'failed',
    'FAILED: InstallFailed on cp-2 in step install, 3m ago. Nothing advances until it is resumed.',
  ],
  [
    'asked again',
    operation({ status: failed, annotations: { 'ichor.maesh.dev/retry': 'true' } }),
    'resuming',
    'Resuming: step install was asked for again.',
  ],
  [
    'asked again with another word',
    operation({ status: failed, annotations: { 'ichor.maesh.dev/retry': 'yes' } }),
    'failed',
    'FAILED: InstallFailed on cp-2 in step install, 3m ago. Nothing advances until it is resumed.',
  ],
  [
    'cancelling',
    operation({ spec: { cancelled: true }, status: { phase: 'Running', machines } }),
    'cancelling',
    'Cancelling: it stops at the next safe point (open: cp-2).',
  ],
  [
    'deleting',
    operation({ deleted: true, status: { phase: 'Running', machines } }),
    'deleting',
    'Deleting: it stops at the next safe point and is gone then (open: cp-2).',
  ],
  [
    'completed',
    operation({
      status: {
        phase: 'Completed',
        startedAt: at('14:00:00'),
        completedAt: at('14:09:05'),
        progress: { done: 5, skipped: 1, total: 6, summary: '5/6' },
      },
    }),
    'completed',
    'Completed: 5 of 6 machines done, 1 skipped in 9m 5s.',
  ],
  [
    'completed after several stages',
    operation({
      status: {
        phase: 'Completed',
        startedAt: at('14:00:00'),
        completedAt: at('14:02:09'),
        message: 'Kubernetes v1.35.4 -> v1.35.5 on 6 machines.',
        progress: { done: 1, skipped: 0, total: 1, stage: 7, stages: 7, summary: '1/1, stage 7/7' },
      },
    }),
    'completed',
    'Completed: Kubernetes v1.35.4 -> v1.35.5 on 6 machines in 2m 9s.',
  ],
  [
    'cancelled in one of several stages',
    operation({
      status: {
        phase: 'Cancelled',
        startedAt: at('14:00:00'),
        completedAt: at('14:02:09'),
        progress: { done: 5, skipped: 0, total: 6, stage: 6, stages: 7, summary: '5/6, stage 6/7' },
      },
    }),
    'cancelled',
    'Cancelled in 2m 9s.',
  ],
  ['cancelled', operation({ status: { phase: 'Cancelled' } }), 'cancelled', 'Cancelled: before anything was done.'],
]

it('notes a retry that counts only when a pause is lifted', () => {
  const status = { phase: 'Paused', failureReason: 'InstallFailed' } as const
  const annotations = { [ANNOTATION.retry]: 'true' }
  expect(summarize(operation({ spec: { paused: true }, annotations, status }), now).notes).toEqual([
    'A retry is asked for. It is paused by its operator as well, so that is made when it is resumed.',
  ])
  expect(summarize(operation({ annotations, status }), now).notes).toEqual([])
})

describe('the headline', () => {
  it.each(headlines)('%s', (_, given, state, headline) => {
    const summary = summarize(given, now)
    expect([summary.state, summary.headline]).toEqual([state, headline])
  })
})

describe('the summary', () => {
  it('says each thing once, with the name that people use', () => {
    const target = machine('cp-2-ab12c', 'Running', {
      hostname: 'cp-2',
      step: 'pull',
      stepStartedAt: at('14:09:00'),
      message: 'cp-2: pull: 40 % of 128 MiB',
    })
    const waiting = { for: 'cp-2: pull: 40 % of 128 MiB', since: at('14:09:00') }
    expect(summarize(operation({ status: { phase: 'Running', machines: [target], waiting } }), now).headline).toBe(
      'Waiting: cp-2: pull: 40 % of 128 MiB, since 14:09:00 UTC (1m)',
    )
    expect(
      summarize(operation({ status: { phase: 'Running', machines: [target], message: 'cp-2: pull: 40 % of 128 MiB' } }), now),
    ).toMatchObject({
      headline: 'Running: cp-2 in step pull since 14:09:00 UTC (1m): 40 % of 128 MiB',
      detail: '',
    })
  })

  it('lists what is done and what comes next, in order', () => {
    const { done, next, progress } = summarize(operation({ status: { phase: 'Running', machines } }), now)
    expect({ done, next, progress }).toEqual({ done: ['cp-1'], next: ['cp-3', 'wk-1'], progress: { done: 1, skipped: 1, total: 4 } })
  })

  it('tells a failure with what was expected and seen, and the commands that continue', () => {
    const { failure, commands, lock } = summarize(operation({ status: failed }), now)
    expect(failure).toEqual({
      reason: 'InstallFailed',
      explained:
        'The installer image could not be pulled in time, or the installer ended with an error. The machine still runs what it ran before.',
      message: 'expected exit code 0, seen 1: no space left on device',
      machine: 'cp-2',
      step: 'install',
      when: { at: at('14:07:00'), ms: 180_000 },
      isCurrent: true,
    })
    expect(commands[0]).toEqual({
      purpose: 'run the failed step again, once the cause is mended',
      ichor: 'ichor operation resume talos-1-13-9 -n prod',
      kubectl: 'kubectl annotate talosoperation talos-1-13-9 -n prod ichor.maesh.dev/retry=true --overwrite',
    })
    expect(lock?.isOurs).toBe(true)
  })

  it('lifts pause and failure by one command', () => {
    const { commands } = summarize(operation({ spec: { paused: true }, status: failed }), now)
    expect(commands[0]?.kubectl).toBe(
      `kubectl patch talosoperation talos-1-13-9 -n prod --type=merge -p '{"metadata":{"annotations":{"ichor.maesh.dev/retry":"true"}},"spec":{"paused":false}}'`,
    )
  })

  it('keeps an earlier failure readable while it runs on', () => {
    const { failure } = summarize(operation({ status: { ...failed, phase: 'Running', failureReason: undefined } }), now)
    expect([failure?.reason, failure?.isCurrent]).toEqual(['InstallFailed', false])
  })

  it('counts only the refusals that still hold', () => {
    const refusals = [
      { rule: 'newer', message: 'v1.13.5 is older than v1.13.9', overridable: true, overridden: true },
      { rule: 'skew', message: 'v1.15.0 skips v1.14', overridable: true, overridden: false },
    ]
    const summary = summarize(
      operation({
        status: {
          phase: 'Paused',
          failureReason: 'PreflightRefused',
          preflight: { checkedAt: at('14:01:00'), underLock: false, refusals },
        },
      }),
      now,
    )
    expect([summary.state, summary.headline, summary.failure]).toEqual([
      'refused',
      'REFUSED: one check refused it. No machine was touched and no lock is held.',
      undefined,
    ])
  })

  it('says how to free a lock that may never be given back', () => {
    const waits = (machines: Target[], holder: string) =>
      summarize(
        operation({
          status: { phase: 'Paused', failureReason: 'ClusterLockHeld', message: 'm', lock: { lease: 'ichor-home', holder }, machines },
        }),
        now,
      ).detail
    const hint = 'If nothing holds that lock any more, free it with: ichor lock release home --force -n prod'
    expect([waits([opened], 'ichor-controller/op/prod/first'), waits([], 'somebody'), waits([], 'ichor-controller/op/prod/first')]).toEqual(
      [hint, hint, 'm'],
    )
  })

  it('offers nothing once it is over', () => {
    expect(summarize(operation({ status: { phase: 'Completed' } }), now).commands).toEqual([])
  })
})

it('says the day of another day', () => {
  expect(clockTime('2026-03-01T09:00:00.123456Z', now)).toBe('09:00:00 UTC')
  expect(clockTime('2026-02-27T09:00:00Z', now)).toBe('2026-02-27 09:00:00 UTC')
})

it('says holders in words', () => {
  expect(['ichor-controller/op/prod/a', 'ichor-controller/machine/prod/cp-1', 'somebody'].map(holderText)).toEqual([
    'operation prod/a',
    'control plane prod/cp-1',
    'somebody',
  ])
})
