import { beforeEach, describe, expect, it } from 'vitest'
import type { Bench } from './test-bench.ts'
import { bench, putCluster, putOperation } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench()
})

const cluster = (name: string) => putCluster(world, name)
const operation = (name: string, more?: Parameters<typeof putOperation>[2]) => putOperation(world, name, more)
const created = () => world.objects.get('talosoperations/ichor-system/talos-1-13-9')

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
    ['no v', ['1.13.9'], 'error: version "1.13.9" lacks the leading v; did you mean v1.13.9?'],
    [
      'a typo',
      ['v1.13'],
      'error: version "v1.13" is not a version (the patch number is missing: v1.13.0?); write it with a leading v and three numbers, like v1.13.9',
    ],
    [
      'a pre-release',
      ['v1.14.0-alpha.1'],
      'error: version "v1.14.0-alpha.1" is a pre-release; only final releases can be a target, like v1.14.0',
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
      'a negative count of seconds',
      ['v1.13.9', '--min-ready-seconds', '-1'],
      'error: --min-ready-seconds -1 is not a number from 0 to 86400',
    ],
    ['seconds in words', ['v1.13.9', '--min-ready-seconds', 'ten'], 'error: --min-ready-seconds "ten" is not a number from 0 to 86400'],
    [
      'a start that is no time',
      ['v1.13.9', '--start-after', 'tomorrow', '--plan'],
      'error: --start-after "tomorrow": must be a time with its zone, for example 2026-03-01T22:00:00Z',
    ],
    [
      'a start on a day that there is not',
      ['v1.13.9', '--start-after', '2026-02-30T22:00:00Z'],
      'error: --start-after "2026-02-30T22:00:00Z": must be a time with its zone, for example 2026-03-01T22:00:00Z',
    ],
    [
      'a name that no object can have',
      ['v1.13.9', '--name', 'Wrong_Name', '--plan'],
      'error: --name "Wrong_Name": must be the name of an object: lower-case letters, digits, - and ., beginning and ending with a letter or a digit',
    ],
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
    [
      'a time without a wait',
      ['v1.13.9', '--timeout', '5m'],
      'error: --timeout says how long --wait may take: add --wait. Nothing was done.',
    ],
    ['a plan and none', ['v1.13.9', '--plan', '--no-plan'], "error: options '--plan' and '--no-plan' exclude each other"],
    ['no plan and one', ['v1.13.9', '--no-plan', '--plan'], "error: options '--plan' and '--no-plan' exclude each other"],
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

  it('says where there are clusters when there is none here', async () => {
    world.put('talosclusters', { metadata: { name: 'home', namespace: 'edge' }, spec: {} })
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(1)
    expect(world.err).toEqual([
      'error: there is no TalosCluster in namespace ichor-system',
      '  There is home in namespace edge: add -n edge',
      '  Add one with: ichor cluster add NAME --talosconfig FILE -n ichor-system',
    ])
  })

  it('asks, and takes only yes for a yes', async () => {
    cluster('home')
    expect(await world.run('upgrade', 'talos', 'v1.13.9')).toBe(2)
    expect(world.err.at(-1)).toBe('error: Nobody can be asked here: add --yes. Nothing was done.')
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

  it('starts the same on two clusters of a namespace at once', async () => {
    cluster('home')
    cluster('lab')
    operation('talos-1-13-9', { status: { phase: 'Running' } })
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--cluster', 'lab', '--yes')).toBe(0)
    expect(world.writes).toEqual(['create talosoperations talos-1-13-9-2'])
    // Each of the two is still told of its own.
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--cluster', 'lab', '--yes')).toBe(1)
    expect(world.err).toContainEqual(expect.stringContaining('error: operation talos-1-13-9-2 is there already'))
  })

  const plan = {
    cluster: 'home',
    kind: 'talos',
    found: { talos: { lowest: 'v1.13.5', highest: 'v1.13.9' }, kubernetes: { lowest: 'v1.36.2', highest: 'v1.36.2' }, cilium: '1.19.2' },
    refusals: [],
    notes: ['No snapshot storage is configured: no snapshot is taken.'],
    order: [
      {
        stage: 'upgrade',
        name: 'cp-1',
        role: 'controlplane' as const,
        from: 'v1.13.5',
        to: 'v1.13.9',
        loses: ['One etcd member of 3 is away.', '4 pods move.'],
      },
      { stage: 'upgrade', name: 'wk-1', role: 'worker' as const, from: 'v1.13.5', to: 'v1.13.9', skip: 'held', loses: [] },
      { stage: 'upgrade', name: 'wk-2', role: 'worker' as const, from: 'v1.13.5', to: 'v1.13.9', loses: [] },
    ],
    holder: 'ichor-controller/op/ichor-system/other',
  }

  it('shows a plan and writes nothing', async () => {
    cluster('home')
    world.plan = plan
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--plan')).toBe(0)
    expect(world.out).toEqual([
      'Plan: talos v1.13.9 on cluster home, 2 of 3 machines',
      'Found: Talos v1.13.5 to v1.13.9, Kubernetes v1.36.2, Cilium 1.19.2',
      '',
      '#   MACHINE   ROLE           FROM      TO        GOES AWAY MEANWHILE',
      '1   cp-1      controlplane   v1.13.5   v1.13.9   One etcd member of 3 is away; 4 pods move',
      '-   wk-1      worker         v1.13.5             skipped: held',
      '2   wk-2      worker         v1.13.5   v1.13.9   nothing else',
      '',
      'Note: No snapshot storage is configured: no snapshot is taken.',
      '',
      'The lock of cluster home is held by operation ichor-system/other; it will wait and start by itself.',
      '',
      'No check refuses it. Nothing was written.',
    ])
    expect(world.writes).toEqual([])
  })

  it('ends with 3 when the plan is refused, and with --override where that passes it', async () => {
    cluster('home')
    world.plan = { ...plan, refusals: [{ rule: 'skew', message: 'v1.15.0 skips v1.14', overridable: true }] }
    expect(await world.run('upgrade', 'talos', 'v1.15.0', '--yes')).toBe(3)
    expect(world.err).toEqual([
      'error: the checks refuse talos v1.15.0 on cluster home; nothing was started',
      '  skew: v1.15.0 skips v1.14 (--override passes it)',
      '  --plan shows the whole plan.',
    ])
    expect(world.writes).toEqual([])
    expect(await world.run('upgrade', 'talos', 'v1.15.0', '--plan', '--override', '-o', 'json')).toBe(0)
    expect(JSON.parse(world.out.join('\n'))).toEqual(world.plan)
    expect(await world.run('upgrade', 'talos', 'v1.15.0', '--override', '--yes')).toBe(0)
  })

  it('says first what refuses it, leaves out machines of which nothing is known, and does not promise to start', async () => {
    cluster('home')
    const [first, ...others] = plan.order
    const order = [{ ...first!, from: 'unknown', loses: [] }, ...others]
    world.plan = { ...plan, order, refusals: [{ rule: 'skew', message: 'v1.15.0 skips v1.14', overridable: false }] }
    expect(await world.run('upgrade', 'talos', 'v1.15.0', '--plan')).toBe(3)
    expect(world.out).toEqual([
      'Plan: talos v1.15.0 on cluster home, 2 of 3 machines',
      'Found: Talos v1.13.5 to v1.13.9, Kubernetes v1.36.2, Cilium 1.19.2',
      '',
      'Refused: skew: v1.15.0 skips v1.14',
      '',
      '#   MACHINE   ROLE     FROM      TO        GOES AWAY MEANWHILE',
      '-   wk-1      worker   v1.13.5             skipped: held',
      '1   wk-2      worker   v1.13.5   v1.13.9   nothing else',
      '',
      'Note: No snapshot storage is configured: no snapshot is taken.',
      '',
      'The lock of cluster home is held by operation ichor-system/other.',
      '',
      'It would be refused. Nothing was written.',
    ])
  })

  it('complains in one line where nobody can be asked, before it plans', async () => {
    cluster('home')
    world.plan = plan
    expect(await world.run('upgrade', 'talos', 'v1.13.9')).toBe(2)
    expect([world.out, world.err]).toEqual([[], ['error: Nobody can be asked here: add --yes. Nothing was done.']])
  })

  it('says that the controller may reach what this machine cannot, and shows no order of unknown machines', async () => {
    cluster('home')
    const message = 'wk-1 (10.0.0.4) does not answer: no route.'
    world.plan = { ...plan, refusals: [{ rule: 'MachineUnreachable', message, overridable: false }] }
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(3)
    expect(world.err.slice(1)).toEqual([
      `  MachineUnreachable: ${message}`,
      '  --no-plan leaves the checks to the controller, which may reach what cannot be reached from here.',
    ])
    world.plan = { ...world.plan, order: plan.order.map(machine => ({ ...machine, from: 'unknown', loses: [] })) }
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--plan')).toBe(3)
    expect(world.out).toContain('Machines: cp-1, wk-1, wk-2; what would change on them is not known.')
    expect(world.out).not.toContain(expect.stringContaining('GOES AWAY MEANWHILE'))
  })

  it('says with --plan, too, that the name is taken', async () => {
    cluster('home')
    operation('mine', { status: { phase: 'Completed' } })
    world.plan = plan
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--name', 'mine', '--plan')).toBe(1)
    expect([world.out, world.err[0]]).toEqual([[], 'error: operation mine exists already in namespace ichor-system'])
  })

  it('takes a start time with a zone, and a cluster as -o name prints it', async () => {
    cluster('home')
    const given = ['--start-after', '2026-03-01T22:00:00+01:00', '--cluster', 'taloscluster.ichor.maesh.dev/home']
    expect(await world.run('upgrade', 'talos', 'v1.13.9', ...given, '--yes')).toBe(0)
    expect(created()?.spec).toMatchObject({ clusterRef: { name: 'home' }, startAfter: '2026-03-01T22:00:00+01:00' })
  })

  it('says at the start who holds the lock, once', async () => {
    cluster('home')
    world.plan = plan
    const line = 'The lock of cluster home is held by operation ichor-system/other; it will wait and start by itself.'
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--yes')).toBe(0)
    expect(world.err.filter(one => one === line)).toHaveLength(1)
    world.err.length = 0
    world.canAsk = true
    world.answers = ['y']
    expect(await world.run('upgrade', 'talos', 'v1.13.9', '--name', 'other')).toBe(0)
    expect(world.err.filter(one => one === line)).toHaveLength(1)
  })

  it('says only once that there is nothing to do', async () => {
    cluster('home')
    world.plan = { ...plan, order: plan.order.map(machine => ({ ...machine, skip: 'runs v1.13.9 already' })) }
    world.canAsk = true
    expect(await world.run('upgrade', 'talos', 'v1.13.9')).toBe(3)
    expect(world.err.filter(line => line.includes('nothing to do'))).toHaveLength(1)
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
