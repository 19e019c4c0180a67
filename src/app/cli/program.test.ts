import { beforeEach, describe, expect, it } from 'vitest'
import type { Bench } from './test-bench.ts'
import { bench, bootTime } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench()
})

const at = (minutes: number) => new Date(bootTime + minutes * 60_000).toISOString()
const cluster = (name: string) =>
  world.put('talosclusters', { metadata: { name }, spec: { talosconfigSecretRef: { name: `${name}-talosconfig` } } })
const operation = (name: string, more: { spec?: object; status?: object; annotations?: Record<string, string>; namespace?: string } = {}) =>
  world.put('talosoperations', {
    metadata: {
      name,
      creationTimestamp: at(-10),
      ...(more.annotations ? { annotations: more.annotations } : {}),
      ...(more.namespace ? { namespace: more.namespace } : {}),
    },
    spec: {
      clusterRef: { name: 'home' },
      kind: 'talos',
      talos: { version: 'v1.13.9' },
      paused: false,
      override: false,
      cancelled: false,
      ...more.spec,
    },
    status: more.status,
  })
const created = () => world.objects.get('talosoperations/ichor-system/talos-1-13-9')

const failure = {
  phase: 'Paused',
  failureReason: 'InstallFailed',
  message: 'cp-2: the installer ended with exit code 1',
  lastFailure: {
    reason: 'InstallFailed',
    message: 'expected exit code 0, seen 1: no space left on device',
    machine: 'cp-2',
    step: 'install',
    at: at(-3),
  },
  machines: [
    {
      name: 'cp-1',
      role: 'controlplane',
      phase: 'Completed',
      before: { version: 'v1.13.5' },
      after: { version: 'v1.13.9' },
      startedAt: at(-9),
      finishedAt: at(-5),
    },
    {
      name: 'cp-2',
      role: 'controlplane',
      phase: 'Failed',
      step: 'install',
      before: { version: 'v1.13.5' },
      startedAt: at(-5),
      message: 'no space left on device',
    },
    { name: 'wk-1', role: 'worker', phase: 'Pending' },
  ],
  progress: { done: 1, skipped: 0, total: 3, summary: '1/3' },
  lock: { lease: 'ichor-home', holder: 'ichor-controller/op/ichor-system/talos-1-13-9', since: at(-9) },
}

describe('upgrade talos', () => {
  it('creates an operation that says who asked, after everything was checked', async () => {
    cluster('home')
    expect(
      await world.run(
        'upgrade',
        'talos',
        '--acknowledge',
        'api-outage',
        'v1.13.9',
        '--max-unavailable',
        '25%',
        '--drain-policy',
        'force',
        '--reboot-mode',
        'powercycle',
        '--yes',
      ),
    ).toBe(0)
    expect(world.writes).toEqual(['create talosoperations talos-1-13-9'])
    expect(created()?.spec).toEqual({
      clusterRef: { name: 'home' },
      kind: 'talos',
      maxUnavailable: '25%',
      drain: { policy: 'force' },
      acknowledge: ['api-outage'],
      talos: { version: 'v1.13.9', rebootMode: 'powercycle' },
    })
    expect(created()?.metadata.annotations).toEqual({ 'ichor.maesh.dev/requested-by': 'alice@example.org' })
    expect(created()?.metadata.labels).toEqual({ 'ichor.maesh.dev/cluster': 'home' })
    expect(world.out).toEqual(['talosoperation.ichor.maesh.dev/talos-1-13-9 created'])
  })

  it('takes the kubeconfig user where the server does not tell', async () => {
    cluster('home')
    world.user = undefined
    await world.run('upgrade', 'talos', 'v1.13.9', '--override', '--yes')
    expect(created()?.metadata.annotations).toEqual({
      'ichor.maesh.dev/requested-by': 'admin@home',
      'ichor.maesh.dev/override-by': 'admin@home',
    })
  })

  const wrong: [string, string[], string][] = [
    ['no v', ['1.13.9'], 'error: version "1.13.9" has no v: write v1.13.9'],
    ['a typo', ['v1.13'], 'error: version "v1.13" is no version: write it as v1.13.9'],
    [
      'a pre-release',
      ['v1.14.0-alpha.1'],
      'error: version "v1.14.0-alpha.1" is no final version: only final versions such as v1.14.0 are installed',
    ],
    [
      'nobody away',
      ['v1.13.9', '--max-unavailable', '0'],
      'error: --max-unavailable 0: must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    [
      'no percent',
      ['v1.13.9', '--max-unavailable', '0%'],
      'error: --max-unavailable "0%": must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    [
      'too many percent',
      ['v1.13.9', '--max-unavailable', '150%'],
      'error: --max-unavailable "150%": must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    [
      'a negative number',
      ['v1.13.9', '--max-unavailable', '-1'],
      'error: --max-unavailable -1: must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    [
      'a word',
      ['v1.13.9', '--max-unavailable', 'abc'],
      'error: --max-unavailable "abc": must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ],
    ['half a schematic', ['v1.13.9', '--schematic', 'abc'], 'error: --schematic "abc": must be 64 hexadecimal digits'],
    [
      'a bare number of time',
      ['v1.13.9', '--drain-timeout', '10'],
      'error: --drain-timeout "10": must be a duration with units, for example 90s, 10m or 1h30m',
    ],
    ['no version', [], "error: missing required argument 'version'"],
    [
      'an unknown policy',
      ['v1.13.9', '--drain-policy', 'never'],
      "error: option '--drain-policy <choice>' argument 'never' is invalid. Allowed choices are wait, force, skip.",
    ],
    ['an unknown flag', ['v1.13.9', '--schematik', 'abc'], "error: unknown option '--schematik'"],
    [
      'a wait without a unit',
      ['v1.13.9', '--wait', '--timeout', '5'],
      'error: --timeout "5": must be a duration such as 90s, 10m or 1h30m',
    ],
  ]
  it.each(wrong)('refuses %s', async (_, args, message) => {
    cluster('home')
    expect(await world.run('upgrade', 'talos', ...args, '--yes')).toBe(2)
    expect(world.err[0]).toBe(message)
    expect(world.writes).toEqual([])
  })

  it('names the clusters that there are', async () => {
    cluster('home')
    cluster('edge')
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--cluster', 'hone', '--yes')).toBe(1)
    expect(world.err).toEqual(['error: there is no cluster "hone" in namespace ichor-system', '  There are: home, edge'])
    world.err.length = 0
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(2)
    expect(world.err).toEqual([
      'error: there are 2 clusters in namespace ichor-system: say which with --cluster',
      '  There are: home, edge',
    ])
  })

  it('asks, and takes only yes for a yes', async () => {
    cluster('home')
    expect(await world.run('upgrade', 'talos', 'v1.13.9')).toBe(2)
    expect(world.err.at(-1)).toBe('error: Start talos v1.13.9 on cluster home? Nobody can be asked here: add --yes. Nothing was done.')
    world.canAsk = true
    world.answers = ['maybe', 'y']
    expect(await world.run('upgrade', 'talos', 'v1.13.9')).toBe(2)
    expect(world.writes).toEqual([])
    expect(await world.run('upgrade', 'talos', 'v1.13.9')).toBe(0)
  })

  it('does not start the same twice at once, but again after the end', async () => {
    cluster('home')
    operation('talos-1-13-9', { status: { phase: 'Running' } })
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(1)
    expect(world.err[0]).toBe('error: operation talos-1-13-9 is there already, Running, created 10m ago')
    operation('talos-1-13-9', { status: { phase: 'Completed' } })
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(0)
    expect(world.writes).toEqual(['create talosoperations talos-1-13-9-2'])
  })

  const plan = {
    cluster: 'home',
    kind: 'talos',
    found: { talos: { lowest: 'v1.13.5', highest: 'v1.13.9' }, kubernetes: { lowest: 'v1.36.2', highest: 'v1.36.2' }, cilium: '1.19.2' },
    refusals: [],
    notes: ['No snapshot storage is configured: no snapshot is taken.'],
    order: [
      {
        name: 'cp-1',
        role: 'controlplane' as const,
        from: 'v1.13.5',
        to: 'v1.13.9',
        loses: ['One etcd member of 3 is away.', '4 pods move.'],
      },
      { name: 'wk-1', role: 'worker' as const, from: 'v1.13.5', to: 'v1.13.9', skip: 'held', loses: [] },
      { name: 'wk-2', role: 'worker' as const, from: 'v1.13.5', to: 'v1.13.9', loses: [] },
    ],
    holder: 'ichor-controller/op/ichor-system/other',
  }

  it('shows a plan and writes nothing', async () => {
    cluster('home')
    world.plan = plan
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--plan')).toBe(0)
    expect(world.out).toEqual([
      'Plan: talos on cluster home, 2 of 3 machines',
      'Found: Talos v1.13.5 to v1.13.9, Kubernetes v1.36.2, Cilium 1.19.2',
      '',
      '#   MACHINE   ROLE           FROM      TO        GOES AWAY MEANWHILE',
      '1   cp-1      controlplane   v1.13.5   v1.13.9   One etcd member of 3 is away; 4 pods move',
      '-   wk-1      worker         v1.13.5             skipped: held',
      '2   wk-2      worker         v1.13.5   v1.13.9   nothing else',
      '',
      'Note: No snapshot storage is configured: no snapshot is taken.',
      '',
      'The lock of cluster home is held by operation ichor-system/other: the operation would wait for it.',
      '',
      'No check refuses it. Nothing was written.',
    ])
    expect(world.writes).toEqual([])
  })

  it('ends with 3 when the plan is refused, and with --override where that passes it', async () => {
    cluster('home')
    world.plan = { ...plan, refusals: [{ rule: 'skew', message: 'v1.15.0 skips v1.14', overridable: true }] }
    expect(await world.run('upgrade', 'talos', 'v1.15.0', '--yes')).toBe(3)
    expect(world.err).toContain('Refused: skew: v1.15.0 skips v1.14 (--override passes it)')
    expect(world.writes).toEqual([])
    expect(await world.run('upgrade', 'talos', 'v1.15.0', '--plan', '--override', '-o', 'json')).toBe(0)
    expect(JSON.parse(world.out.join('\n'))).toEqual(world.plan)
    expect(await world.run('upgrade', 'talos', 'v1.15.0', '--override', '--yes')).toBe(0)
  })

  it('does not start what has nothing to do', async () => {
    cluster('home')
    world.plan = { ...plan, order: plan.order.map(machine => ({ ...machine, skip: 'runs v1.13.9 already' })) }
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(3)
    expect(world.err.slice(-2)).toEqual(['error: there is nothing to do on cluster home: runs v1.13.9 already', '  Nothing was started.'])
    expect(world.writes).toEqual([])
  })

  it('names the images below the table', async () => {
    cluster('home')
    operation('talos-1-13-9', { status: { phase: 'Running' } })
    world.plan = { ...plan, order: plan.order.map(machine => ({ ...machine, to: 'factory.example/metal-installer/abc:v1.13.9' })) }
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--plan')).toBe(0)
    expect(world.out).toContain('2   wk-2      worker         v1.13.5   v1.13.9   nothing else')
    expect(world.out).toContain('Installer image: factory.example/metal-installer/abc:v1.13.9')
  })

  it('says why it cannot plan', async () => {
    cluster('home')
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--plan')).toBe(1)
    expect(world.err).toEqual(['error: cannot plan: secrets "home-talosconfig" is forbidden'])
  })

  it('shows a refusal of the server field by field', async () => {
    cluster('home')
    world.faults.set('create talosoperations', {
      kind: 'invalid',
      message: 'TalosOperation is invalid',
      causes: [{ reason: 'FieldValueInvalid', field: 'spec.maxUnavailable', message: 'Invalid value: "object": must be a number' }],
    })
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(1)
    expect(world.err.slice(-2)).toEqual([
      'error: cannot create operation talos-1-13-9: the API server refuses it',
      '  spec.maxUnavailable: must be a number',
    ])
  })
})

describe('trouble with the API server', () => {
  it.each([
    ['unreachable', 'connection refused', 'error: cannot reach the Kubernetes API server at https://10.0.0.1:6443: connection refused'],
    ['unsupported', 'no such type', "error: Ichor's resource types are not installed on https://10.0.0.1:6443"],
    ['forbidden', 'User "eve" cannot list', 'error: cannot list operations: User "eve" cannot list'],
    ['unauthenticated', 'token expired', 'error: cannot list operations: token expired'],
  ] as const)('says %s in one line', async (kind, message, line) => {
    world.faults.set('*', { kind, message })
    expect(await world.run('operation', 'list')).toBe(1)
    expect(world.err[0]).toBe(line)
    expect(world.err).toHaveLength(2)
  })

  it('knows missing CRDs from a missing operation', async () => {
    world.faults.set('* talosoperations', { kind: 'notFound', message: 'not found' })
    expect(await world.run('operation', 'get', 'x')).toBe(1)
    expect(world.err).toEqual([
      "error: Ichor's resource types are not installed on https://10.0.0.1:6443",
      '  Install them with: ichor install --crds-only',
    ])
  })
})

describe('operation list', () => {
  it('prints what kubectl prints', async () => {
    operation('talos-1-13-9', { status: failure })
    operation('old', { status: { phase: 'Completed', progress: { done: 3, skipped: 0, total: 3, summary: '3/3' } } })
    operation('far', { namespace: 'edge' })
    expect(await world.run('operation', 'list')).toBe(0)
    expect(world.out).toEqual([
      'NAME           CLUSTER   KIND    PHASE       REASON          DONE   AGE',
      'talos-1-13-9   home      talos   Paused      InstallFailed   1/3    10m',
      'old            home      talos   Completed                   3/3    10m',
    ])
    world.out.length = 0
    await world.run('operation', 'list', '-A', '-o', 'name')
    expect(world.out).toEqual([
      'talosoperation.ichor.maesh.dev/talos-1-13-9',
      'talosoperation.ichor.maesh.dev/old',
      'talosoperation.ichor.maesh.dev/far',
    ])
    world.out.length = 0
    await world.run('op', 'ls', '-A')
    expect(world.out.at(-1)).toBe('edge           far            home      talos                                      10m')
    world.out.length = 0
    await world.run('operation', 'list', '-n', 'edge', '-o', 'yaml')
    expect(world.out.slice(0, 4)).toEqual(['apiVersion: v1', 'kind: List', 'metadata: {}', 'items:'])
  })

  it('says on standard error that there is nothing', async () => {
    expect(await world.run('operation', 'list')).toBe(0)
    expect([world.out, world.err]).toEqual([[], ['There are no operations in namespace ichor-system.']])
  })
})

describe('operation get', () => {
  it('answers at a glance', async () => {
    operation('talos-1-13-9', { status: failure, annotations: { 'ichor.maesh.dev/requested-by': 'alice' } })
    expect(await world.run('operation', 'get', 'talos-1-13-9')).toBe(0)
    expect(world.out).toEqual([
      'talos-1-13-9  talos v1.13.9 on cluster home, namespace ichor-system, asked for by alice',
      '✗ FAILED: InstallFailed on cp-2 in step install, 3m ago. Nothing advances until it is resumed.',
      '  cp-2: the installer ended with exit code 1',
      '  expected exit code 0, seen 1: no space left on device',
      '  InstallFailed: The Talos installer ended with an error. The machine still runs what it ran before.',
      '',
      'Lock      of cluster home: held by this operation since 13:51:00 UTC (9m)',
      'Progress  [########----------------] 1 of 3 done',
      'Next      wk-1',
      '',
      'MACHINE   ROLE           PHASE       STEP      TALOS               TIME   MESSAGE',
      'cp-1      controlplane   Completed             v1.13.5 → v1.13.9   4m',
      'cp-2      controlplane   Failed      install   v1.13.5                    no space left on device',
      'wk-1      worker         Pending',
      '',
      'What you can do',
      '  run the failed step again, once the cause is mended: ichor operation resume talos-1-13-9 -n ichor-system',
      '  stop it for good:                                    ichor operation cancel talos-1-13-9 -n ichor-system',
      '  or, with kubectl:                                    kubectl annotate talosoperation talos-1-13-9 -n ichor-system ichor.maesh.dev/retry=true --overwrite',
    ])
  })

  it('looks for an absent one elsewhere', async () => {
    operation('a', { namespace: 'edge' })
    expect(await world.run('operation', 'get', 'a')).toBe(1)
    expect(world.err).toEqual([
      'error: there is no operation "a" in namespace ichor-system',
      '  There is one in namespace edge: add -n edge',
      '  There is no operation at all in this namespace; -n chooses another.',
    ])
  })
})

describe('steering', () => {
  it('pauses, and says when that takes effect', async () => {
    operation('a', { status: { phase: 'Running', machines: [{ name: 'wk-1', role: 'worker', phase: 'Running', step: 'install' }] } })
    expect(await world.run('operation', 'pause', 'a')).toBe(0)
    expect(world.writes).toEqual(['patch talosoperations a {"spec":{"paused":true}}'])
    expect(world.err[0]).toBe(
      'It takes effect at the next safe point of wk-1: a machine whose install has begun is carried to its end. The cluster lock is kept.',
    )
    await world.run('operation', 'pause', 'a')
    expect(world.out.at(-1)).toBe('talosoperation.ichor.maesh.dev/a is paused already')
  })

  it.each([
    ['a pause', { spec: { paused: true }, status: { phase: 'Paused' } }, '{"spec":{"paused":false}}'],
    ['a failure', { status: failure }, '{"metadata":{"annotations":{"ichor.maesh.dev/retry":"true"}}}'],
    [
      'both at once',
      { spec: { paused: true }, status: failure },
      '{"metadata":{"annotations":{"ichor.maesh.dev/retry":"true"}},"spec":{"paused":false}}',
    ],
    [
      'a pause while it waits for the lock',
      { spec: { paused: true }, status: { phase: 'Paused', failureReason: 'ClusterLockHeld' } },
      '{"spec":{"paused":false}}',
    ],
  ])('resumes after %s in one request', async (_, given, patch) => {
    operation('a', given)
    expect(await world.run('operation', 'resume', 'a')).toBe(0)
    expect(world.writes).toEqual([`patch talosoperations a ${patch}`])
  })

  it('says when there is nothing to resume', async () => {
    operation('a', { status: { phase: 'Running' } })
    expect(await world.run('operation', 'resume', 'a')).toBe(0)
    expect([world.writes, world.out]).toEqual([[], ['nothing to resume: operation a is running']])
    operation('b', { status: { phase: 'Completed' } })
    expect(await world.run('operation', 'resume', 'b')).toBe(1)
    expect(world.err.slice(-2)).toEqual(['error: operation b is Completed and cannot be resumed', '  Start another one instead.'])
  })

  it('cancels and deletes only when that is confirmed', async () => {
    operation('a', { status: { phase: 'Running' } })
    expect([await world.run('operation', 'cancel', 'a'), await world.run('operation', 'delete', 'a')]).toEqual([2, 2])
    expect(world.writes).toEqual([])
    expect([await world.run('operation', 'cancel', 'a', '--yes'), await world.run('operation', 'delete', 'a', '-y')]).toEqual([0, 0])
    expect(world.writes).toEqual(['patch talosoperations a {"spec":{"cancelled":true}}', 'delete talosoperations a'])
  })

  it('ends well when a cancelled operation is Cancelled', async () => {
    operation('a', { status: { phase: 'Running' } })
    const run = world.run('operation', 'cancel', 'a', '--yes', '--wait')
    await until(() => world.out.some(line => line.includes('Cancelling')))
    world.change('talosoperations', 'a', o => (o.status.phase = 'Cancelled'))
    expect(await run).toBe(0)
  })
})

describe('watching', () => {
  const running = {
    phase: 'Running',
    machines: [
      { name: 'cp-1', role: 'controlplane', phase: 'Running', step: 'drain', stepStartedAt: at(-1) },
      { name: 'wk-1', role: 'worker', phase: 'Pending' },
    ],
  }

  it('writes a line for each change where the output is no terminal, and ends with 0 when it is Completed', async () => {
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length > 0)
    world.pass(30_000)
    world.change('talosoperations', 'a', o => (o.status.machines[0].step = 'install'))
    world.change('talosoperations', 'a', o => (o.status.history = []))
    world.lose('connection refused; again in 1 s')
    world.lose('connection refused; again in 2 s')
    world.change('talosoperations', 'a', o => (o.status.waiting = { for: 'etcd to be healthy', since: at(0.25), until: at(5.5) }))
    world.change('talosoperations', 'a', o => {
      o.status = {
        ...o.status,
        phase: 'Completed',
        waiting: undefined,
        startedAt: at(-2),
        completedAt: at(0.5),
        machines: o.status.machines.map((m: object) => ({ ...m, phase: 'Completed' })),
      }
    })
    expect(await run).toBe(0)
    expect(world.out).toEqual([
      '14:00:00 cp-1: Running, step drain',
      '14:00:00 Running: cp-1 in step drain since 13:59:00 UTC (1m)',
      '14:00:30 cp-1: Running, step install',
      '14:00:30 no sight of it, connecting again: connection refused; again in 1 s',
      '14:00:30 connected again',
      '14:00:30 Waiting for etcd to be healthy, since 14:00:15 UTC (15s), until 14:05:30 UTC (5m left), on cp-1 (step install)',
      '14:00:30 cp-1: Completed',
      '14:00:30 wk-1: Completed',
      '14:00:30 Completed: 2 of 2 machines done in 2m 30s.',
    ])
    expect(world.err).toEqual([])
  })

  it.each([
    ['Cancelled', { phase: 'Cancelled' }, 4],
    ['failed', failure, 4],
    [
      'refused',
      {
        phase: 'Paused',
        failureReason: 'PreflightRefused',
        preflight: { refusals: [{ rule: 'skew', message: 'skips v1.14', overridable: true, overridden: false }] },
      },
      3,
    ],
  ])('ends when it is %s', async (_, status, code) => {
    operation('a', { status })
    expect(await world.run('operation', 'watch', 'a')).toBe(code)
  })

  it('goes on while the operation waits for the lock, is paused by a person or is about to retry', async () => {
    operation('a', { status: { phase: 'Paused', failureReason: 'ClusterLockHeld' } })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length === 1)
    world.change('talosoperations', 'a', o => {
      o.spec.paused = true
      o.status = { phase: 'Paused' }
    })
    world.change('talosoperations', 'a', o => {
      o.spec.paused = false
      o.status = failure
      o.metadata.annotations = { 'ichor.maesh.dev/retry': 'true' }
    })
    expect(world.out.length).toBeGreaterThan(2)
    world.remove('talosoperations', 'a')
    expect(await run).toBe(4)
    expect(world.err).toEqual(['Operation a was deleted.'])
  })

  it('leaves the operation alone on Ctrl-C, and says how to look again', async () => {
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.out.length > 0)
    world.interrupt()
    expect(await run).toBe(130)
    expect(world.writes).toEqual([])
    expect(world.err).toEqual(['Stopped watching. The operation goes on; look again with: ichor operation watch a -n ichor-system'])
  })

  it('stops watching when the time is up', async () => {
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a', '--timeout', '1m')
    await until(() => world.out.length > 0)
    world.pass(59_000)
    world.pass(1000)
    expect(await run).toBe(5)
  })

  it('draws one picture again and again on a terminal, and marks it stale while the server is away', async () => {
    world.isLive = true
    operation('a', { status: running })
    const run = world.run('operation', 'watch', 'a')
    await until(() => world.raw.length > 0)
    const height = world.raw[0]!.split('\n').length - 1
    world.pass(1000)
    expect(world.raw.at(-1)).toMatch(new RegExp(`^\\x1b\\[${height}A\\r\\x1b\\[0J`))
    expect(world.raw.at(-1)).toContain('cp-1 in step drain since 13:59:00 UTC (1m 1s)')
    expect(world.raw.at(-1)).not.toContain('watch it')
    world.lose('connection refused')
    expect(world.raw.at(-1)).toContain('Stale since 14:00:01 UTC, connecting again: connection refused')
    world.change('talosoperations', 'a', o => (o.status = { phase: 'Completed' }))
    expect(world.raw.at(-1)).not.toContain('Stale')
    expect(await run).toBe(0)
    expect(world.out).toEqual([])
  })

  it('waits after an upgrade was started', async () => {
    cluster('home')
    const run = world.run('upgrade', 'talos', 'v1.13.9', '--yes', '--wait')
    await until(() => world.out.length > 1)
    world.change('talosoperations', 'talos-1-13-9', o => (o.status = failure))
    expect(await run).toBe(4)
  })
})

describe('machines', () => {
  it('are held and released', async () => {
    world.put('talosmachines', { metadata: { name: 'wk-1' }, spec: { clusterRef: { name: 'home' }, address: '10.0.0.5', role: 'worker' } })
    expect(await world.run('machine', 'hold', 'wk-1', '--reason', 'disk is being replaced')).toBe(0)
    expect(await world.run('machine', 'release', 'wk-1')).toBe(0)
    expect(await world.run('machine', 'release', 'wk-1')).toBe(0)
    expect(world.out).toEqual([
      'talosmachine.ichor.maesh.dev/wk-1 held: disk is being replaced',
      'talosmachine.ichor.maesh.dev/wk-1 released',
      'talosmachine.ichor.maesh.dev/wk-1 is not held',
    ])
    expect(world.writes[0]).toBe(
      'patch talosmachines wk-1 {"metadata":{"annotations":{"ichor.maesh.dev/upgrade-hold":"disk is being replaced"}}}',
    )
  })
})

describe('lock', () => {
  it('shows the holder and the queue, oldest first', async () => {
    cluster('home')
    cluster('edge')
    world.put('leases', {
      metadata: { name: 'ichor-home' },
      spec: { holderIdentity: 'ichor-controller/op/ichor-system/first', acquireTime: at(-9) },
    })
    const queued = { phase: 'Paused', failureReason: 'ClusterLockHeld' }
    world.put('talosoperations', {
      metadata: { name: 'third', creationTimestamp: at(-1) },
      spec: { clusterRef: { name: 'home' } },
      status: queued,
    })
    world.put('talosoperations', {
      metadata: { name: 'second', creationTimestamp: at(-5) },
      spec: { clusterRef: { name: 'home' } },
      status: queued,
    })
    expect(await world.run('lock')).toBe(0)
    expect(world.out).toEqual([
      'CLUSTER   HOLDER                         SINCE               WAITING',
      'home      operation ichor-system/first   13:51:00 UTC (9m)   1. second (5m), 2. third (1m)',
      'edge      (free)',
    ])
  })
})

describe('install', () => {
  it('waits until the types are served', async () => {
    world.crds = [{ metadata: { name: 'talosoperations.ichor.maesh.dev' }, spec: {} }]
    const run = world.run('install', '--crds-only')
    await until(() => world.out.length > 0)
    const crd = world.objects.get('customresourcedefinitions//talosoperations.ichor.maesh.dev')
    expect(crd).toBeDefined()
    world.pass(61_000)
    expect(await run).toBe(1)
    expect(world.err).toEqual(['error: talosoperations.ichor.maesh.dev is written but the API server does not serve it: not seen yet'])

    world.crds = [{ ...world.crds[0]!, status: { conditions: [{ type: 'Established', status: 'True' }] } }]
    expect(await world.run('install', '--crds-only')).toBe(0)
    expect(world.out.at(-1)).toBe('customresourcedefinition.apiextensions.k8s.io/talosoperations.ichor.maesh.dev unchanged')
  })

  it('needs to be told what', async () => {
    expect(await world.run('install')).toBe(2)
  })
})

describe('version', () => {
  it('answers without a server, too', async () => {
    expect(await world.run('version')).toBe(0)
    expect(world.out).toEqual(['Client      0.1.0', 'Kubernetes  v1.36.2', 'CRDs        not installed (ichor install --crds-only)'])
    world.out.length = 0
    world.faults.set('*', { kind: 'unreachable', message: 'connection refused' })
    expect(await world.run('version')).toBe(0)
    expect([world.out, world.err]).toEqual([['Client      0.1.0'], ['No server: connection refused']])
  })
})

describe('help and usage', () => {
  it('suggests what was meant', async () => {
    expect(await world.run('operaton')).toBe(2)
    expect(world.err).toEqual(["error: unknown command 'operaton'", '  (Did you mean operation?)', '  ichor --help shows what there is.'])
  })

  it('explains exit codes, and flags in the words of the schema', async () => {
    expect(await world.run('upgrade', 'talos', '--help')).toBe(0)
    const help = world.out.join('\n')
    expect(help).toContain('Usage: ichor upgrade talos [options] <version>')
    expect(help).toMatch(/--reboot-mode <choice> +how machines are rebooted \(default: default\) \(choices:\s+"default", "powercycle"\)/)
    expect(help).toMatch(/--drain-timeout <duration> +how long a node may take to drain \(default: 10m\)/)
    expect(help).toContain('  3    The checks refuse the operation. No machine was touched.')
    expect(help).toContain('--kubeconfig <file>')
  })

  it('shows the help of a group without a command, as a usage error', async () => {
    expect(await world.run('operation')).toBe(2)
    expect(world.err.join('\n')).toContain('Usage: ichor operation|op [options] [command]')
  })
})

const until = async (holds: () => boolean): Promise<void> => {
  for (let turns = 0; !holds(); turns++) {
    if (turns > 1000) throw new Error('it never came to be')
    await new Promise(resolve => setImmediate(resolve))
  }
}
