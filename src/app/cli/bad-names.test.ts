import { beforeEach, describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../api/names.ts'
import { talos } from '../../kinds/talos/talos.ts'
import { node } from '../../kinds/node/node.ts'
import type { Bench } from './test-bench.ts'
import { bench, failure, minutes, putCluster, putOperation } from './test-bench.ts'

/** Every verb on a name that is not there, could be several, is that of something else, or is in that state already: an exit code, words, and no write. */

const NAMESPACE = 'ichor-system'
const machine = (name: string, hostname: string, cluster = 'home', namespace = NAMESPACE) =>
  world.put('talosmachines', {
    metadata: { name, namespace },
    spec: { clusterRef: { name: cluster }, address: '10.0.0.5', role: 'worker' },
    status: { hostname, nodeName: hostname },
  })
const deleting = (name: string) => {
  putOperation(world, name, { status: { phase: 'Running' } })
  world.change('talosoperations', name, object => (object.metadata.deletionTimestamp = minutes(-1)))
}

let world: Bench
beforeEach(() => {
  world = bench([talos, node])
  putCluster(world, 'home')
  putCluster(world, 'homer')
  machine('wk-1-5c0a1', 'wk-1')
  machine('wk-2-5c0a2', 'wk-2')
  machine('wk-3-5c0a3', 'wk-3', 'homer')
  machine('twin-1', 'twin')
  machine('twin-2', 'twin', 'homer')
  machine('db-a', 'db')
  machine('db-b', 'db')
  for (const name of ['zeta', 'talos-1-13-9', 'talos-1-13-8']) putOperation(world, name, { status: { phase: 'Running' } })
})

const run = async (line: string): Promise<{ readonly exit: number; readonly text: string }> => {
  const exit = await world.run(
    ...line
      .split(' ')
      .filter(Boolean)
      .map(word => (word === '""' ? '' : word)),
  )
  return { exit, text: [...world.err, ...world.out].join('\n') }
}
/** It ends so, says so, and has written nothing. */
const ends = async (line: string, exit: number, ...words: readonly (string | RegExp)[]): Promise<void> => {
  const ended = await run(line)
  expect(`${ended.exit} ${ended.text}`).toMatch(new RegExp(`^${exit} `))
  for (const word of words) expect(ended.text).toMatch(word)
  expect(world.writes).toEqual([])
}

const OPERATION_VERBS = ['get', 'watch', 'logs', 'logs -f', 'pause', 'resume', 'cancel --yes', 'delete --yes'].map(
  verb => `operation ${verb}`,
)
const MACHINE_VERBS = ['get', 'hold', 'release'].map(verb => `machine ${verb}`)
const NODE_VERBS = [
  ...['reboot', 'shutdown', 'restart-service --service kubelet', 'etcd-defrag', 'forfeit-leadership'].map(verb => `node ${verb} --yes`),
  'node reset --confirm home',
].map(verb => `${verb} --cluster home`)
const CLUSTER_VERBS = ['cluster get', 'lock', 'lock release --force --confirm home', 'upgrade talos v1.13.9 --yes --cluster']

describe('a name that is not there', () => {
  it.each(OPERATION_VERBS)('%s: says which there are, the nearest first', async verb => {
    await ends(
      `${verb} talos-1-13-7`,
      1,
      'error: there is no operation "talos-1-13-7" in namespace ichor-system',
      /There are: talos-1-13-[89], talos-1-13-[89], zeta/,
    )
  })

  it.each(MACHINE_VERBS)('%s: and its host name', async verb => {
    await ends(
      `${verb} wk-4`,
      1,
      'error: there is no machine "wk-4" in namespace ichor-system',
      /There are: wk-1-5c0a1 \(wk-1\), wk-2-5c0a2 \(wk-2\)/,
    )
  })

  it.each(NODE_VERBS)('%s', async verb => {
    await ends(`${verb} wk-4`, 1, 'error: there is no machine "wk-4"', /There are: wk-1-5c0a1 \(wk-1\)/)
    await ends(`${verb} wk-4 --plan`, 1, 'error: there is no machine "wk-4"')
    await ends(`${verb} wk-4 --no-plan`, 1, 'error: there is no machine "wk-4"')
  })

  it.each(CLUSTER_VERBS)('%s', async verb => {
    await ends(`${verb} hom`, 1, 'error: there is no cluster "hom" in namespace ichor-system', 'There are: home, homer')
  })

  it.each([...OPERATION_VERBS, ...MACHINE_VERBS, 'cluster get'])('%s, with nothing at all there', async verb => {
    world.objects.clear()
    await ends(`${verb} a`, 1, / at all in this namespace; -n chooses another\./)
  })

  it.each([...OPERATION_VERBS, ...MACHINE_VERBS, ...CLUSTER_VERBS.slice(0, 3)])('%s, empty', async verb => {
    await ends(`${verb} ""`, 2, 'names no')
  })
})

describe('a name that is elsewhere, or that of something else', () => {
  it.each(OPERATION_VERBS)('%s: in which namespaces it is', async verb => {
    putOperation(world, 'up', { namespace: 'edge' })
    putOperation(world, 'up', { namespace: 'lab' })
    await ends(`${verb} up`, 1, 'There is one in namespace edge, lab: add -n edge')
  })

  it.each(OPERATION_VERBS)('%s: of what', async verb => {
    await ends(`${verb} home`, 1, 'there is no operation "home"', 'There is a cluster of that name: ichor cluster get home')
    await ends(`${verb} talosmachine/db-a`, 1, 'There is a machine of that name: ichor machine get db-a')
  })

  it.each([...MACHINE_VERBS, 'cluster get', 'lock'])('%s: of what', async verb => {
    await ends(`${verb} zeta`, 1, 'There is an operation of that name: ichor operation get zeta')
  })
})

describe('a name that could be several', () => {
  it.each(MACHINE_VERBS)('%s', async verb => {
    await ends(`${verb} db`, 1, 'error: 2 machines are called db: say which', 'There are: db-a, db-b')
    await ends(`${verb} twin`, 1, 'There are: twin-1 (cluster home), twin-2 (cluster homer)')
  })

  it.each(NODE_VERBS)('%s', async verb => {
    await ends(`${verb} db`, 1, 'error: 2 machines are called db: say which', 'There are: db-a, db-b')
    await ends(`${verb} wk-3`, 1, 'error: machine wk-3 is not of cluster home, but of homer', '--cluster homer')
  })

  it.each(['node reboot wk-1 --yes', 'upgrade talos v1.13.9 --yes'])('%s: of which cluster', async verb => {
    await ends(verb, 2, 'there are 2 clusters in namespace ichor-system: say which with --cluster', 'There are: home, homer')
  })

  it('the same host name in two clusters is one machine in each', async () => {
    expect((await run('node reboot twin --yes --cluster homer')).exit).toBe(0)
    expect(world.writes).toEqual(['create talosoperations node-reboot-twin'])
  })
})

describe('what is so already', () => {
  it.each<[string, string, () => void, number, string]>([
    [
      'pause a paused one',
      'operation pause a',
      () => putOperation(world, 'a', { spec: { paused: true }, status: { phase: 'Paused' } }),
      0,
      'is paused already',
    ],
    [
      'resume a running one',
      'operation resume a',
      () => putOperation(world, 'a', { status: { phase: 'Running' } }),
      0,
      'nothing to resume: operation a is running',
    ],
    [
      'resume one that waits for the lock',
      'operation resume a',
      () => putOperation(world, 'a', { status: { phase: 'Paused', failureReason: 'ClusterLockHeld' } }),
      0,
      'nothing to resume: operation a is queued',
    ],
    [
      'resume one that was resumed',
      'operation resume a',
      () => putOperation(world, 'a', { status: failure, annotations: { [ANNOTATION.retry]: 'true' } }),
      0,
      'about to run the failed step again',
    ],
    [
      'cancel a cancelled one',
      'operation cancel a --yes',
      () => putOperation(world, 'a', { spec: { cancelled: true }, status: { phase: 'Cancelled' } }),
      0,
      'is cancelled already',
    ],
    [
      'cancel one that is being cancelled',
      'operation cancel a --yes',
      () => putOperation(world, 'a', { spec: { cancelled: true }, status: { phase: 'Running' } }),
      0,
      'is being cancelled already',
    ],
    ['delete one that is being deleted', 'operation delete a --yes', () => deleting('a'), 0, 'is being deleted already'],
    ['release a machine that is not held', 'machine release wk-1', () => {}, 0, 'is not held'],
    ['release a free lock', 'lock release home --force --confirm home', () => {}, 0, 'is free already'],
    ...['pause', 'resume', 'cancel --yes'].map((verb): [string, string, () => void, number, string] => [
      `${verb} a finished one`,
      `operation ${verb} a`,
      () => putOperation(world, 'a', { status: { phase: 'Completed' } }),
      1,
      'operation a is Completed and cannot be',
    ]),
    ...['pause', 'resume', 'cancel --yes'].map((verb): [string, string, () => void, number, string] => [
      `${verb} one that is being deleted`,
      `operation ${verb} a`,
      () => deleting('a'),
      1,
      'operation a is being deleted and cannot be',
    ]),
    ...['pause', 'resume'].map((verb): [string, string, () => void, number, string] => [
      `${verb} one that is being cancelled`,
      `operation ${verb} a`,
      () => putOperation(world, 'a', { spec: { cancelled: true, paused: true }, status: { phase: 'Running' } }),
      1,
      'operation a is cancelling and cannot be',
    ]),
    ['delete a running one without a yes', 'operation delete zeta', () => {}, 2, '--yes'],
    ['cancel a running one without a yes', 'operation cancel zeta', () => {}, 2, '--yes'],
    [
      'start one of a name that is taken',
      'upgrade talos v1.13.9 --cluster home --yes --name zeta',
      () => {},
      1,
      'operation zeta exists already',
    ],
    [
      'start what runs already',
      'upgrade talos v1.13.9 --cluster home --yes',
      () => {},
      1,
      'operation talos-1-13-9 is there already, Running',
    ],
    [
      'restart what runs already',
      'node reboot wk-1 --cluster home --yes',
      () => putOperation(world, 'node-reboot-wk-1', { status: { phase: 'Running' } }),
      1,
      'is there already, Running',
    ],
    ['upgrade to no version', 'upgrade talos newest --cluster home --yes', () => {}, 2, 'newest'],
  ])('%s', async (_, line, arrange, exit, words) => {
    arrange()
    await ends(line, exit, words)
  })

  it.each([
    ['machine hold wk-1', 'disk is being replaced'],
    ['machine hold wk-1 --reason broken', 'broken'],
  ])('%s, of a held one: the reason stays', async (line, reason) => {
    world.change('talosmachines', 'wk-1-5c0a1', o => (o.metadata.annotations = { [ANNOTATION.upgradeHold]: reason }))
    await ends(line, 0, `is held already: ${reason}`)
  })

  it('cluster add looks at the name first', async () => {
    await ends('cluster add Home --talosconfig nowhere', 2, 'must be at most 63 lower-case letters')
    await ends('cluster add home --talosconfig nowhere', 1, 'there is no file nowhere')
  })

  it.each(['operation resume zeta', 'operation cancel zeta --yes'])('%s, with a time for a wait that was not asked for', async line => {
    await ends(`${line} --timeout 5m`, 2, 'add --wait. Nothing was done.')
  })

  it.each(['completion nosh', 'completion'])('%s: no such shell', async line => {
    await ends(line, 2, 'shell')
  })

  it('a finished one is watched to its end at once, and one that failed is told by the exit code', async () => {
    putOperation(world, 'done', { status: { phase: 'Completed' } })
    putOperation(world, 'bad', { status: failure })
    await ends('operation watch done', 0, 'Completed')
    await ends('operation watch bad', 4, 'InstallFailed')
  })
})
