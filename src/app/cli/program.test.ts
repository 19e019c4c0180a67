import { beforeEach, describe, expect, it } from 'vitest'
import { operationHolder } from '../../api/names.ts'
import { kinds } from '../../kinds/registry.ts'
import { crds } from './install-objects.ts'
import type { Bench } from './test-bench.ts'
import { bench, failure, minutes, putCluster, putOperation, until } from './test-bench.ts'

let world: Bench
beforeEach(() => {
  world = bench()
})

const cluster = (name: string) => putCluster(world, name)
const operation = (name: string, more?: Parameters<typeof putOperation>[2]) => putOperation(world, name, more)

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
      '  docs/install.md tells how to install Ichor; for a controller that you run yourself: ichor install --no-controller',
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
      '  InstallFailed: The installer image could not be pulled in time, or the installer ended with an error. The machine still runs what it ran before.',
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
      '  or, with kubectl:                                    kubectl annotate talosoperation talos-1-13-9 -n ichor-system ichor.maesh.dev/retry=true --overwrite',
      '  stop it for good:                                    ichor operation cancel talos-1-13-9 -n ichor-system',
    ])
  })

  it('titles what a machine changes to by what its kind changes, and leaves it out where it changes no version', async () => {
    // As the program runs this command: without kinds.
    const all = bench([])
    const of = (name: string, kind: string, machine: object) =>
      putOperation(all, name, {
        spec: { kind, talos: undefined, [kind]: kind === 'kubernetes' ? { version: 'v1.35.5' } : {} },
        status: { phase: 'Running', stage: 'kubelet', machines: [machine, { name: 'cp-2', role: 'controlplane', phase: 'Completed' }] },
      })
    const machine = { name: 'cp-1', role: 'controlplane', phase: 'Running', before: { version: 'v1.13.8' } }
    const goal = { from: 'ghcr.io/siderolabs/kubelet:v1.35.4', image: 'ghcr.io/siderolabs/kubelet:v1.35.5' }
    of('k', 'kubernetes', { ...machine, goal })
    of('n', 'node', machine)
    await all.run('operation', 'get', 'k')
    await all.run('operation', 'get', 'n')
    const tables = all.out.filter(line => /^(MACHINE|cp-)/.test(line)).map(line => line.split(/ {2,}/).slice(3))
    expect(tables).toEqual([
      ['STEP', 'KUBERNETES', 'TIME', 'MESSAGE'],
      ['v1.35.4 → v1.35.5'],
      ['v1.35.5'],
      ['STEP', 'TIME', 'MESSAGE'],
      [],
      [],
    ])
  })

  it('offers no --machines to a kind that is about the whole cluster, and names one of its own versions', async () => {
    const all = bench(kinds)
    putCluster(all, 'home')
    await all.run('upgrade', 'kubernetes', '--help')
    expect(all.out.join('\n')).not.toContain('--machines')
    expect(await all.run('upgrade', 'kubernetes', 'v1.36.2', '--machines', 'wk-1', '--yes')).toBe(2)
    expect(await all.run('upgrade', 'kubernetes', 'latest', '--yes')).toBe(2)
    expect(all.err.filter(line => line.startsWith('error'))).toEqual([
      "error: unknown option '--machines'",
      'error: version "latest" is not a version; write it with a leading v and three numbers, like v1.36.2',
    ])
  })

  it('counts what was skipped beside what is worked on', async () => {
    const machines = ['a', 'b', 'c', 'd'].map(name => ({ name, role: 'worker', phase: 'Skipped' }))
    operation('many', {
      status: {
        phase: 'Running',
        machines: [...machines, { name: 'e', role: 'worker', phase: 'Pending' }],
        progress: { done: 0, skipped: 4, total: 2, summary: '0/2' },
      },
    })
    operation('none', { status: { phase: 'Running', machines, progress: { done: 0, skipped: 4, total: 0, summary: '0/0' } } })
    expect([await world.run('operation', 'get', 'many'), await world.run('operation', 'get', 'none')]).toEqual([0, 0])
    expect(world.out).toContain(`Progress  [${'-'.repeat(24)}] 0 of 2 done, 4 skipped`)
    expect(world.out).toContain(`Progress  [${'-'.repeat(24)}] 0 of 0 done, 4 skipped`)
    expect(world.out.find(line => line.includes('or, with kubectl'))).toMatch(/kubectl: +kubectl get/)
  })

  it('tells a long failure once, and short in its row and in the history', async () => {
    const message = `expected exit code 0, seen 1: ${'the disk is full and nothing can be written any more, '.repeat(6)}so it ended`
    operation('a', {
      status: {
        ...failure,
        message,
        lastFailure: { ...failure.lastFailure, message },
        machines: [{ ...failure.machines[1], message }],
        history: [{ at: minutes(-3), message: `cp-2: failed in install: ${message}` }],
      },
    })
    await world.run('operation', 'get', 'a')
    const lines = world.out.filter(line => line.includes('expected exit code 0'))
    expect(lines.filter(line => line.includes('so it ended'))).toHaveLength(1)
    expect(lines.filter(line => line.endsWith('…'))).toHaveLength(2)
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
  it.each([
    ['no machine is open', {}, 'It takes effect at once: no machine is open.'],
    [
      'one can be given back',
      { machines: [{ name: 'wk-1-5c0a1', hostname: 'wk-1', role: 'worker', phase: 'Running', step: 'drain' }] },
      'wk-1 is given back at once, unless it comes to what has to be finished just now.',
    ],
    [
      'one has to be finished',
      { machines: [{ name: 'wk-1-5c0a1', hostname: 'wk-1', role: 'worker', phase: 'Running', step: 'verify', committed: 'reboot' }] },
      'wk-1 is carried to its end first: its reboot has begun.',
    ],
  ])('where %s, says so: pause, cancel, delete', async (_, status, words) => {
    for (const [verb, write] of [
      ['pause', 'patch talosoperations a {"spec":{"paused":true}}'],
      ['cancel', 'patch talosoperations a {"metadata":{"uid":"uid-1"},"spec":{"cancelled":true}}'],
      ['delete', 'delete talosoperations a'],
    ] as const) {
      operation('a', { status: { phase: 'Running', ...status } })
      world.err.length = 0
      world.writes.length = 0
      expect(await world.run('operation', verb, 'a', ...(verb === 'pause' ? [] : ['--yes']))).toBe(0)
      expect(world.writes).toEqual([write])
      expect(world.err[0]).toBe(words)
    }
  })

  it('says what a pause changes for one that has failed', async () => {
    operation('a', { status: { ...failure, lock: { lease: 'ichor-home', holder: operationHolder('ichor-system', 'a') } } })
    expect(await world.run('operation', 'pause', 'a')).toBe(0)
    expect(world.err[0]).toBe(
      'It stood still already, after InstallFailed. Paused it keeps the cluster lock, which who waits could have taken from it.',
    )
    operation('a', { status: failure })
    await world.run('operation', 'pause', 'a')
    expect(world.err).toContain('It stood still already, after InstallFailed.')
  })

  it('says that what is asked for is so already', async () => {
    operation('a', { spec: { paused: true }, status: { phase: 'Running' } })
    await world.run('operation', 'pause', 'a')
    expect(world.out.at(-1)).toBe('talosoperation.ichor.maesh.dev/a is paused already')
  })

  it('does not pause what is cancelling', async () => {
    operation('a', { spec: { cancelled: true }, status: { phase: 'Running' } })
    expect(await world.run('operation', 'pause', 'a')).toBe(1)
    expect([world.writes, world.err[0]]).toEqual([[], 'error: operation a is cancelling and cannot be paused'])
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
    expect(await world.run('operation', 'cancel', 'b', '--yes')).toBe(1)
    expect(world.err.at(-1)).toBe('error: operation b is Completed and cannot be cancelled')
  })

  it('cancels and deletes only when that is confirmed', async () => {
    operation('a', { status: { phase: 'Running' } })
    expect([await world.run('operation', 'cancel', 'a'), await world.run('operation', 'delete', 'a')]).toEqual([2, 2])
    expect(world.writes).toEqual([])
    expect([await world.run('operation', 'cancel', 'a', '--yes'), await world.run('operation', 'delete', 'a', '-y')]).toEqual([0, 0])
    expect(world.writes).toEqual([
      'patch talosoperations a {"metadata":{"uid":"uid-1"},"spec":{"cancelled":true}}',
      'delete talosoperations a',
    ])
  })

  it.each(['cancel', 'delete'])('does not %s a namesake that came while the question was open', async verb => {
    operation('a', { status: { phase: 'Running' } })
    world.canAsk = true
    world.answers = ['y']
    world.meanwhile = () => {
      world.remove('talosoperations', 'a')
      operation('a', { status: { phase: 'Running' } })
    }
    expect(await world.run('operation', verb, 'a')).toBe(1)
    expect(world.err).toContainEqual(expect.stringContaining('Somebody else changed it'))
    expect(world.writes).toEqual([])
  })

  it('ends well when a cancelled operation is Cancelled', async () => {
    operation('a', { status: { phase: 'Running' } })
    const run = world.run('operation', 'cancel', 'a', '--yes', '--wait')
    await until(() => world.out.some(line => line.includes('Cancelling')))
    world.change('talosoperations', 'a', o => (o.status.phase = 'Cancelled'))
    expect(await run).toBe(0)
  })
})

describe('machines', () => {
  it('are held and released', async () => {
    const spec = { clusterRef: { name: 'home' }, address: '10.0.0.5', role: 'worker' }
    world.put('talosmachines', { metadata: { name: 'wk-1' }, spec, status: { nodeName: 'wk-1' } })
    expect(await world.run('machine', 'hold', 'wk-1', '--reason', 'disk is being replaced')).toBe(0)
    expect(await world.run('machine', 'release', 'wk-1')).toBe(0)
    expect(await world.run('machine', 'release', 'wk-1')).toBe(0)
    expect(world.out).toEqual([
      'talosmachine.ichor.maesh.dev/wk-1 held: disk is being replaced',
      'talosmachine.ichor.maesh.dev/wk-1 released',
      'talosmachine.ichor.maesh.dev/wk-1 is not held',
    ])
    expect(world.err.at(-1)).toBe('A hold on its Node is taken off there: kubectl annotate node wk-1 ichor.maesh.dev/upgrade-hold-')
    expect(world.writes[0]).toBe(
      'patch talosmachines wk-1 {"metadata":{"annotations":{"ichor.maesh.dev/upgrade-hold":"disk is being replaced"}}}',
    )
  })
})

describe('what keeps an object back', () => {
  const machine = (name: string, hostname: string, more: object = {}) =>
    world.put('talosmachines', {
      metadata: { name, ...more },
      spec: { clusterRef: { name: 'home' }, address: '10.0.0.5', role: 'worker' },
      status: { hostname, nodeName: hostname, conditions: [{ type: 'Ready', status: 'False', message: 'etcd is not healthy.' }] },
    })
  const held = { annotations: { 'ichor.maesh.dev/upgrade-hold': 'disk is being replaced' } }

  it('is told below the row: why it is not ready, and the hold', async () => {
    machine('wk-1-5c0a1', 'wk-1', held)
    world.put('talosclusters', {
      metadata: { name: 'home' },
      spec: {},
      status: { conditions: [{ type: 'Ready', status: 'Unknown', message: 'No machine answers.' }] },
    })
    await world.run('machine', 'get', 'wk-1-5c0a1')
    expect(world.out.slice(2)).toEqual(['', 'Not ready: etcd is not healthy.', 'Held back from upgrades: disk is being replaced'])
    world.out.length = 0
    await world.run('cluster', 'get', 'home', '-o', 'wide')
    expect(world.out.slice(2)).toEqual(['', 'Ready is unknown: No machine answers.'])
  })

  it('says nothing below a row that is well', async () => {
    world.put('talosclusters', {
      metadata: { name: 'home' },
      spec: {},
      status: { conditions: [{ type: 'Ready', status: 'True', message: 'All is well.' }] },
    })
    await world.run('cluster', 'get', 'home')
    expect(world.out).toHaveLength(2)
  })

  it('is a column of the wide list of machines', async () => {
    machine('wk-1-5c0a1', 'wk-1', held)
    machine('wk-2-5c0a2', 'wk-2', { annotations: { 'ichor.maesh.dev/upgrade-hold': 'false' } })
    await world.run('machine', 'list', '-o', 'wide')
    expect(world.out.map(line => /(HOLD|disk is being replaced)$/.exec(line)?.[0])).toEqual(['HOLD', 'disk is being replaced', undefined])
    world.out.length = 0
    await world.run('machine', 'list')
    expect(world.out[0]).not.toContain('HOLD')
  })

  it('takes a host name for a machine where it is unambiguous', async () => {
    machine('wk-1-5c0a1', 'wk-1')
    expect([await world.run('machine', 'hold', 'wk-1'), await world.run('machine', 'release', 'wk-1')]).toEqual([0, 0])
    expect(world.out).toEqual(['talosmachine.ichor.maesh.dev/wk-1-5c0a1 held', 'talosmachine.ichor.maesh.dev/wk-1-5c0a1 released'])
    machine('wk-1-77777', 'wk-1')
    expect(await world.run('machine', 'get', 'wk-1')).toBe(1)
    expect(world.err.slice(-2)).toEqual(['error: 2 machines are called wk-1: say which', '  There are: wk-1-5c0a1, wk-1-77777'])
    expect(await world.run('machine', 'get', 'wk-9')).toBe(1)
    expect(world.err).toContain('error: there is no machine "wk-9" in namespace ichor-system')
  })
})

it('takes a name as -o name prints it', async () => {
  operation('a', { status: { phase: 'Running' } })
  expect(await world.run('operation', 'pause', 'talosoperation.ichor.maesh.dev/a')).toBe(0)
  expect(world.writes).toEqual(['patch talosoperations a {"spec":{"paused":true}}'])
  cluster('home')
  expect(await world.run('cluster', 'get', 'talosclusters/home')).toBe(0)
  expect(await world.run('lock', 'taloscluster.ichor.maesh.dev/home')).toBe(0)
  expect(await world.run('cluster', 'get', 'talosoperation/home')).toBe(1)
})

describe('lock', () => {
  it('shows the holder and the queue, oldest first', async () => {
    cluster('home')
    cluster('edge')
    world.put('leases', {
      metadata: { name: 'ichor-home' },
      spec: { holderIdentity: 'ichor-controller/op/ichor-system/first', acquireTime: minutes(-9) },
    })
    const queued = { phase: 'Paused', failureReason: 'ClusterLockHeld' }
    world.put('talosoperations', {
      metadata: { name: 'third', creationTimestamp: minutes(-1) },
      spec: { clusterRef: { name: 'home' } },
      status: queued,
    })
    world.put('talosoperations', {
      metadata: { name: 'second', creationTimestamp: minutes(-5) },
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
    world.crds = crds().filter(({ metadata }) => metadata.name === 'talosoperations.ichor.maesh.dev')
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
    expect(world.out).toEqual([
      'Client      0.1.0',
      'Kubernetes  v1.36.2',
      'CRDs        not installed (ichor install --no-controller -n ichor-system)',
      'Controller  not found (no Deployment ichor-controller in namespace ichor-system)',
    ])
    world.out.length = 0
    expect([await world.run('--version'), world.out]).toEqual([0, ['0.1.0']])
    world.out.length = 0
    world.faults.set('*', { kind: 'unreachable', message: 'connection refused' })
    expect(await world.run('version')).toBe(0)
    expect([world.out, world.err]).toEqual([['Client      0.1.0'], ['No server: connection refused']])
    world.out.length = world.err.length = 0
    expect(await world.run('version', '-o', 'json')).toBe(0)
    expect([JSON.parse(world.out.join('\n')), world.err]).toEqual([{ client: '0.1.0' }, ['No server: connection refused']])
  })
})

describe('help and usage', () => {
  it('suggests what was meant', async () => {
    expect(await world.run('operaton')).toBe(2)
    expect(world.err).toEqual(["error: unknown command 'operaton'", '  (Did you mean operation?)', '  ichor --help shows what there is.'])
  })

  it('points to the help of the command that was meant', async () => {
    expect(await world.run('-n', 'edge', 'operation', 'get')).toBe(2)
    expect(world.err.at(-1)).toBe('  ichor operation get --help shows what there is.')
    await world.run('upgrade', 'talos', 'v1.13.9', '--no-such')
    expect(world.err.at(-1)).toBe('  ichor upgrade talos --help shows what there is.')
    await world.run('operation', 'gte', 'a')
    expect(world.err.at(-1)).toBe('  ichor operation --help shows what there is.')
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
