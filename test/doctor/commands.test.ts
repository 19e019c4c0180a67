// What ichor cluster add does with what the looks find, and how ichor doctor tells of clusters.
import { describe, expect, it } from 'vitest'
import { createTalosCa, createTalosClient, validFor } from '../../src/adapters/pki/talos-pki.ts'
import { writeTalosconfig } from '../../src/adapters/talos/talosconfig.ts'
import { type Bench, bench, bootTime, putCluster, putOperation } from '../../src/app/cli/test-bench.ts'
import { examineStranger } from '../../src/engine/examine.ts'
import type { ClusterSight } from '../../src/core/looks/cluster-sight.ts'
import type { Lease } from '../../src/ports/home.ts'
import { openPorts } from '../../src/world/ports/open.ts'
import { RESOURCE } from '../../src/world/objects.ts'
import { type Clinic, openClinic } from './clinic.ts'

const day = new Date(bootTime)
const ca = await createTalosCa({ from: day })
const client = await createTalosClient({ ca, roles: ['os:admin'], validity: validFor(day, 24 * 365) })
const TALOSCONFIG = writeTalosconfig({
  ...{ contextName: 'home', endpoints: ['10.5.0.2'] },
  ...{ caPem: ca.crt, crtPem: client.crt, keyPem: client.key },
})

/** The invented cluster as a stranger sees it, by its talosconfig. */
const strangerIn = async (clinic: Clinic): Promise<ClusterSight> => {
  const ports = openPorts(clinic.world, { name: 'stranger' })
  const examiner = {
    ...{ connections: ports.connections, clock: ports.clock, withinMs: 3_000 },
    resolve: (endpoint: string) => Promise.resolve(clinic.resolved[endpoint] ?? []),
  }
  let sight: ClusterSight | undefined
  void examineStranger(examiner, { namespace: 'ichor-system', name: 'talosconfig' }).then(found => (sight = found))
  await clinic.until('it was looked at', () => sight !== undefined)
  return sight!
}

const adding = async (clinic: Clinic): Promise<{ readonly world: Bench; readonly code: number }> => {
  const world = bench()
  world.files.set('talos', TALOSCONFIG)
  world.sights.set('home', await strangerIn(clinic))
  return { world, code: await world.run('cluster', 'add', 'home', '--talosconfig', 'talos') }
}
const CREATED = ['create secrets home-talosconfig', 'create talosclusters home']

describe('ichor cluster add', () => {
  it('adds a cluster that is well, and has nothing to say of it', async () => {
    const { world, code } = await adding(await openClinic())
    expect([code, world.writes]).toEqual([0, CREATED])
    expect(world.err).toEqual([
      'Talos API: 10.5.0.2; the client certificate expires 2027-03-01.',
      'See what Ichor finds with: ichor cluster get home -n ichor-system',
    ])
  })

  it('warns of a virtual address as an endpoint, and adds the cluster all the same', async () => {
    const clinic = await openClinic({ vip: '10.5.0.99' })
    clinic.resolved = { '10.5.0.2': ['10.5.0.99'] }
    const { world, code } = await adding(clinic)
    expect([code, world.writes]).toEqual([0, CREATED])
    expect(world.err.slice(0, 3)).toEqual([
      "endpoints: Endpoint 10.5.0.2 (10.5.0.99) is a virtual address: it goes from one control plane to another, and is nobody's while etcd has no quorum.",
      "  Name the control planes' own addresses in the talosconfig.",
      '  $ talosctl config endpoint 10.5.0.2 10.5.0.3 10.5.0.4 --talosconfig talos',
    ])
  })

  it.each<[string, (clinic: Clinic) => void, string]>([
    [
      'whose clocks are far from ours',
      ({ world }) => world.machines.forEach(({ index }) => world.setClock(index, -200_000)),
      '  clocks: The clock of this computer is 3m 20s ahead. Certificates and leases are judged by it.',
    ],
    [
      'of another Kubernetes than that of its machines',
      clinic => {
        for (const { name } of clinic.world.machines)
          clinic.rewrite(RESOURCE.nodes, name, node => {
            node.status.nodeInfo.bootID = `another-${name}`
            node.status.nodeInfo.systemUUID = `another-${name}`
          })
      },
      '  nodes: The Nodes of this Kubernetes (cp-1, cp-2, cp-3) are none of the machines of the talosconfig: it is another cluster.',
    ],
  ])('refuses a cluster %s, and writes nothing', async (_, wrong, said) => {
    const clinic = await openClinic()
    wrong(clinic)
    const { world, code } = await adding(clinic)
    expect([code, world.writes, world.out]).toEqual([3, [], []])
    expect(world.err[0]).toBe('error: the checks refuse to add cluster home; nothing was created')
    expect(world.err[1]).toBe(said)
  })

  it.each([['nodes only', ['10.5.0.2']] as const, ['neither endpoints nor nodes', []] as const])(
    'refuses a talosconfig with %s, which no controller could ask, and says what to add',
    async (_, nodes) => {
      const world = bench()
      const { crt, key } = client
      world.files.set('talos', writeTalosconfig({ contextName: 'home', endpoints: [], nodes, caPem: ca.crt, crtPem: crt, keyPem: key }))
      expect([await world.run('cluster', 'add', 'home', '--talosconfig', 'talos'), world.writes, world.out]).toEqual([3, [], []])
      expect(world.err[0]).toBe('error: talos: context "home" names no endpoints; nothing was created')
      expect(world.err.at(-1)).toMatch(/each by its own address: talosctl config endpoint CONTROL-PLANE --talosconfig talos$/)
    },
  )

  it('refuses a cluster that is there already, under whatever name and in whatever namespace', async () => {
    const clinic = await openClinic()
    const world = bench()
    const { clusterID } = clinic.world.site
    world.files.set('talos', TALOSCONFIG)
    world.sights.set('two', await strangerIn(clinic))
    const put = (namespace: string, status: object) =>
      world.put('talosclusters', { metadata: { name: 'home', namespace }, spec: { talosconfigSecretRef: { name: 'home' } }, status })
    const add = () => world.run('cluster', 'add', 'two', '--talosconfig', 'talos')
    put('other', { clusterID })
    expect([await add(), world.writes, world.err]).toEqual([
      3,
      [],
      [
        'error: cluster two is there already, as TalosCluster other/home; nothing was created',
        '  These machines have the same Talos cluster id. Look at it with: ichor cluster get home -n other',
      ],
    ])
    put('other', { clusterID: 'another' })
    put('third', {})
    expect(await add()).toBe(0)
  })

  it('adds a cluster that cannot be reached from here, and says so', async () => {
    const clinic = await openClinic({ homeOutside: true })
    for (const { name } of clinic.world.machines) clinic.world.blackHole(name, true)
    const { world, code } = await adding(clinic)
    expect([code, world.writes]).toEqual([0, CREATED])
    expect(world.err).toContain('It could not be asked from here: no answer within 3 s. The controller asks it from where it runs.')
  })
})

describe('ichor doctor on clusters', () => {
  const with2 = async (): Promise<{ readonly world: Bench; readonly clinic: Clinic }> => {
    const [world, clinic] = [bench(), await openClinic()]
    for (const name of ['home', 'edge']) putCluster(world, name)
    world.sights.set('home', await clinic.sight())
    return { world, clinic }
  }
  const clustersIn = (world: Bench): readonly string[] =>
    (JSON.parse(world.out.join('\n')) as { findings: { cluster?: string }[] }).findings.flatMap(({ cluster }) => cluster ?? [])

  it('looks at every one of the namespace, and says of one that it could not', async () => {
    const { world } = await with2()
    await world.run('doctor', '-o', 'json')
    expect(new Set(clustersIn(world))).toEqual(new Set(['home', 'edge']))
    world.out.length = 0
    await world.run('doctor')
    expect(world.out).toContain('Cluster home')
    expect(world.out[world.out.indexOf('Cluster edge') + 1]).toBe(
      '  ? cluster  Cluster edge cannot be seen: talosmachines is forbidden: edge',
    )
  })

  it('or only at the one that is named, as kubectl may name it', async () => {
    const { world } = await with2()
    for (const name of ['home', 'taloscluster.ichor.maesh.dev/home']) {
      world.out.length = 0
      await world.run('doctor', '--cluster', name, '-o', 'json')
      expect(new Set(clustersIn(world))).toEqual(new Set(['home']))
    }
  })

  it('says what a command is called where it was called otherwise, and gives the same as YAML', async () => {
    const { world, clinic } = await with2()
    clinic.world.member('cp-1').dbSize = 1_900 * 1024 ** 2
    world.sights.set('home', await clinic.sight())
    await world.run('doctor', '--cluster', 'home', '-o', 'yaml')
    expect(world.out.join('\n')).toContain('command: ichor node etcd-defrag cp-1 --cluster home -n ichor-system')
  })

  it('looks at the machines of a talosconfig beside it, without what only a TalosCluster has', async () => {
    const { world, clinic } = await with2()
    world.files.set('talos', TALOSCONFIG)
    world.sights.set('CLUSTER', await strangerIn(clinic))
    await world.run('doctor', '--talosconfig', 'talos')
    const part = world.out.slice(world.out.indexOf('Machines of talos'))
    expect(part.map(line => line.slice(4, 17).trim()).filter(Boolean)).toEqual(
      expect.arrayContaining(['talosconfig', 'endpoints', 'clocks', 'certificates', 'versions', 'machines', 'nodes', 'etcd']),
    )
    expect(part.join('\n')).not.toMatch(/\b(lock|operations|controller)\b/)
  })

  it.each([
    [['--cluster', 'hom'], 1, 'error: there is no cluster "hom" in namespace ichor-system'],
    [['--cluster', ''], 2, "error: option '--cluster <name>' has an empty value"],
    [['--talosconfig', 'nowhere'], 1, 'error: there is no file nowhere'],
    [['--talos-context', 'x'], 2, 'error: --talos-context chooses a context of --talosconfig: add that, too'],
    [['-o', 'wide'], 2, "error: option '-o, --output <format>' argument 'wide' is invalid. Allowed choices are table, json, yaml."],
    [['home'], 2, 'error: too many arguments for '],
  ])('does not take %j', async (argv, code, said) => {
    const { world } = await with2()
    expect(await world.run('doctor', ...argv)).toBe(code)
    expect(world.err[0]).toContain(said)
    expect(world.out).toEqual([])
  })
})

describe('what a controller said that is at work no more', () => {
  it.each([
    ['tells how old it is', 600_000, 'warning', /^It has not looked for 10m\. Then it said: All \d machines are/],
    ['is taken as it is while it works', 2_000, 'ok', /^It says: All \d machines are/],
  ] as const)('%s', async (_, ago, severity, message) => {
    const [world, clinic] = [bench(), await openClinic()]
    putCluster(world, 'home')
    world.sights.set('home', await clinic.sight())
    const renewTime = new Date(bootTime - ago).toISOString().replace('Z', '000Z')
    world.put('leases', {
      metadata: { name: 'ichor-controller' },
      spec: { holderIdentity: 'demo', leaseDurationSeconds: 15, renewTime },
    })
    await world.run('doctor', '-o', 'json')
    const { findings } = JSON.parse(world.out.join('\n')) as {
      findings: { cluster?: string; look: string; severity: string; message: string }[]
    }
    const said = findings.find(({ cluster, look }) => cluster === 'home' && look === 'controller')
    expect(said).toEqual(expect.objectContaining({ severity, message: expect.stringMatching(message) }))
  })
})

describe('what is told to be typed next', () => {
  const GIVEN = ['--kubeconfig', 'vw.kc', '--context', 'my home', '-n', 'ichor-system']
  const ADDED = "--kubeconfig vw.kc --context 'my home'"
  const time = new Date(bootTime).toISOString()
  const FOREIGN_LOCK: Lease = {
    ...{ namespace: 'ichor-system', name: 'ichor-home', uid: '', resourceVersion: '', holder: 'somebody', durationSeconds: 0 },
    ...{ acquireTime: time, renewTime: time, transitions: 0, annotations: {} },
  }
  const lines = (world: Bench): string => [...world.out, ...world.err].join('\n')

  it('is about the cluster that was chosen here, in the report and in its document', async () => {
    const [world, clinic] = [bench(), await openClinic()]
    putCluster(world, 'home')
    world.sights.set('home', { ...(await clinic.sight()), lock: { ok: true, value: FOREIGN_LOCK } })
    await world.run('doctor', ...GIVEN)
    expect(world.out.map(line => line.trim())).toContain(`$ ichor lock release home --force -n ichor-system ${ADDED}`)
    world.out.length = 0
    await world.run('doctor', ...GIVEN, '-o', 'json')
    const commands = (JSON.parse(world.out.join('\n')) as { findings: { command?: string }[] }).findings.flatMap(
      ({ command }) => command ?? [],
    )
    expect(commands.length).toBeGreaterThan(1)
    for (const command of commands.filter(one => /^(ichor|kubectl|helm) /.test(one))) expect(command.endsWith(ADDED), command).toBe(true)
  })

  it('of talosctl is about the talosconfig that was given', async () => {
    const clinic = await openClinic()
    const world = bench()
    world.files.set('talos', TALOSCONFIG)
    clinic.endpoints = ['10.5.0.2']
    const sight = await clinic.sight()
    world.sights.set('CLUSTER', { ...sight, isRegistered: false })
    await world.run('doctor', '--talosconfig', 'talos', '--talos-context', 'home')
    expect(world.out.map(line => line.trim())).toContain(
      '$ talosctl config endpoint 10.5.0.2 10.5.0.3 10.5.0.4 --talosconfig talos --context home',
    )
  })

  it.each<[string, (world: Bench) => void, readonly string[], string]>([
    [
      'a glance at an operation',
      world => putOperation(world, 'up'),
      ['operation', 'get', 'up'],
      'ichor operation cancel up -n ichor-system',
    ],
    [
      'a glance at an operation, for kubectl',
      world => putOperation(world, 'up'),
      ['operation', 'get', 'up'],
      'kubectl get talosoperation up -n ichor-system --watch',
    ],
    ['a pause', world => putOperation(world, 'up'), ['operation', 'pause', 'up'], 'ichor operation resume up -n ichor-system'],
    ['a cancel', world => putOperation(world, 'up'), ['operation', 'cancel', 'up', '--yes'], 'ichor operation watch up -n ichor-system'],
    ['an upgrade of no cluster', () => {}, ['upgrade', 'talos', 'v1.13.9'], 'ichor cluster add NAME --talosconfig FILE -n ichor-system'],
    ['a name of something else', world => putCluster(world, 'up'), ['operation', 'get', 'up'], 'ichor cluster get up -n ichor-system'],
    [
      'types that are missing',
      world => world.faults.set('* talosoperations', { kind: 'notFound', message: 'not found' }),
      ['operation', 'get', 'up'],
      'ichor install --no-controller -n ichor-system',
    ],
    ['the version', () => {}, ['version'], 'ichor install --no-controller -n ichor-system'],
  ])('after %s carries on what was given', async (_, arrange, argv, command) => {
    const world = bench()
    arrange(world)
    await world.run(...argv, ...GIVEN)
    expect(lines(world)).toContain(`${command} ${ADDED}`)
  })
})
