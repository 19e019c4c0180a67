// Each thing that can be wrong with an installation: ichor doctor finds it and says what to do, and finds it no more when it is mended.
import { describe, expect, it } from 'vitest'
import { crds, installed } from '../../src/app/cli/install-objects.ts'
import { type Bench, bench, bootTime } from '../../src/app/cli/test-bench.ts'
import { typeOf } from '../../src/install/installation.ts'

const NAMESPACE = 'ichor-system'
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:ichor-controller`
const DAY = 24 * 3_600_000
const microTime = (at: number): string => new Date(at).toISOString().replace('Z', '000Z')

const healthy = (): Bench => {
  const world = bench()
  world.crds = [...crds()]
  const put = (plural: string, namespace: string, object: object): void =>
    void world.objects.set(`${plural}/${namespace}/${(object as { metadata: { name: string } }).metadata.name}`, object as never)
  for (const crd of crds())
    put('customresourcedefinitions', '', {
      ...crd,
      status: { conditions: [{ type: 'Established', status: 'True' }], storedVersions: ['v1alpha1'] },
    })
  const wanted = { namespace: NAMESPACE, controller: { image: 'registry.example.org/ichor:0.1.0' }, policies: true, allNamespaces: false }
  for (const object of installed(wanted)) put(typeOf(object as never).plural, object.metadata.namespace ?? '', structuredClone(object))
  world.change('deployments', 'ichor-controller', object => (object.status = { availableReplicas: 2 }))
  for (const [index, node] of ['wk-1', 'wk-2'].entries())
    world.put('pods', {
      metadata: { name: `ichor-controller-${index}`, labels: { 'app.kubernetes.io/name': 'ichor' } },
      spec: { nodeName: node },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    } as never)
  const spec = { holderIdentity: 'ichor-controller-0', leaseDurationSeconds: 15, renewTime: microTime(bootTime - 2_000) }
  world.put('leases', { metadata: { name: 'ichor-controller' }, spec })
  world.certificates = [
    { what: 'client certificate of the kubeconfig', begins: bootTime - DAY, expires: bootTime + 200 * DAY, remedy: 'Get another.' },
  ]
  return world
}

/** As they are for a controller that somebody runs. */
const policiesFor = (user: string) =>
  installed({ namespace: NAMESPACE, controller: { user }, policies: true, allNamespaces: false }).filter(({ kind }) =>
    kind?.startsWith('ValidatingAdmissionPolicy'),
  )

/** The controller is one that alice runs. */
const runByAlice = (world: Bench): void => {
  world.remove('deployments', 'ichor-controller')
  for (const object of policiesFor('alice@example.org'))
    world.objects.set(`${typeOf(object as never).plural}//${object.metadata.name}`, object)
}

/** How to put everything back as it is now. */
const keep = (world: Bench): (() => void) => {
  const objects = structuredClone([...world.objects])
  const { certificates, kubernetes, clockAhead } = world
  return () => {
    world.objects.clear()
    for (const [key, object] of objects) world.objects.set(key, object)
    world.faults.clear()
    world.denied.clear()
    Object.assign(world, { certificates, kubernetes, clockAhead })
  }
}

type Told = {
  readonly look: string
  readonly severity: string
  readonly message: string
  readonly remedy?: string
  readonly command?: string
}
const doctor = async (world: Bench): Promise<{ readonly code: number; readonly findings: readonly Told[] }> => {
  world.out.length = 0
  const code = await world.run('doctor', '-o', 'json')
  return { code, findings: (JSON.parse(world.out.join('\n')) as { findings: Told[] }).findings }
}
const troublesOf = ({ findings }: { readonly findings: readonly Told[] }) =>
  findings.filter(({ severity }) => severity !== 'ok').map(({ look, severity, message }) => `${look}: ${severity}: ${message}`)

const crd = (world: Bench, edit: (object: any) => void): void => {
  const key = 'customresourcedefinitions//talosmachines.ichor.maesh.dev'
  const object = structuredClone(world.objects.get(key)) as never
  edit(object)
  world.objects.set(key, object)
}
const policy = (world: Bench, edit: (object: any) => void): void => {
  const key = 'validatingadmissionpolicies//ichor-operations'
  const object = structuredClone(world.objects.get(key)) as never
  edit(object)
  world.objects.set(key, object)
}
const lease = (world: Bench, edit: (spec: any) => void): void => world.change('leases', 'ichor-controller', object => edit(object.spec))
const deployment = (world: Bench, edit: (object: any) => void): void => world.change('deployments', 'ichor-controller', edit)

type Trouble = {
  readonly what: string
  readonly wrong: (world: Bench) => void
  readonly finds: readonly (string | RegExp)[]
  readonly says: RegExp
  /** How the command ends: 0 for warnings, 3 for errors, 1 where something could not be seen. */
  readonly code: number
}

const TROUBLES: readonly Trouble[] = [
  {
    what: 'an API server that does not answer',
    wrong: world => world.faults.set('get version', { kind: 'unreachable', message: 'connection refused' }),
    finds: [
      'API server: error: https://10.0.0.1:6443 does not answer: connection refused',
      ...[
        'clocks: unknown: Other clocks',
        'CRDs: unknown: CRDs',
        'policies: unknown: The admission policies',
        'your rights: unknown: Your own rights',
      ],
      ...["controller's rights: unknown: The controller's rights", 'controller: unknown: The Deployment of the controller'],
      ...['leader: unknown: The Lease of the leader', 'cluster: unknown: Clusters'],
    ].map((text, index) => (index === 0 ? text : `${text} cannot be seen: the API server does not answer`)),
    says: /ichor doctor --talosconfig FILE/,
    code: 3,
  },
  {
    what: 'a credential that is not accepted',
    wrong: world => world.faults.set('get version', { kind: 'unauthenticated', message: 'the server does not accept our credential' }),
    finds: [
      'API server: error: https://10.0.0.1:6443 answers, but not to you: the server does not accept our credential',
      ...Array.from({ length: 8 }, () => /: unknown: .* cannot be seen: the API server does not let us ask$/),
    ],
    says: /Log in anew, or choose another credential/,
    code: 3,
  },
  {
    what: 'a Kubernetes without admission policies',
    wrong: world => (world.kubernetes = 'v1.29.7'),
    finds: [/^API server: error: .* runs Kubernetes v1\.29\.7: admission policies need 1\.30\.$/],
    says: /refuses what can take a cluster down/,
    code: 3,
  },
  {
    what: 'a clock that differs from that of the API server',
    wrong: world => (world.clockAhead = 25_000),
    finds: ['clocks: warning: The clocks of this computer and of the API server differ by 25s.'],
    says: /See which of them is right/,
    code: 0,
  },
  {
    what: 'a kubeconfig that ends soon',
    wrong: world => (world.certificates = [{ ...world.certificates[0]!, expires: bootTime + 3 * DAY, begins: bootTime - 300 * DAY }]),
    finds: ['certificates: warning: The client certificate of the kubeconfig expires in 3d, on 2026-03-04.'],
    says: /Get another/,
    code: 0,
  },
  {
    what: 'a kubeconfig that has ended',
    wrong: world => (world.certificates = [{ ...world.certificates[0]!, expires: bootTime - DAY }]),
    finds: ['certificates: error: The client certificate of the kubeconfig expired on 2026-02-28.'],
    says: /Get another/,
    code: 3,
  },
  {
    what: 'a CA that ends within half a year',
    wrong: world =>
      (world.certificates = [
        { what: 'CA of the kubeconfig', isAuthority: true, begins: 0, expires: bootTime + 150 * DAY, remedy: 'Plan.' },
      ]),
    finds: ['certificates: warning: The CA of the kubeconfig expires in 150d, on 2026-07-29.'],
    says: /Plan/,
    code: 0,
  },
  {
    what: 'a type that is not there',
    wrong: world => world.objects.delete('customresourcedefinitions//talosmachines.ichor.maesh.dev'),
    finds: ['CRDs: error: Not there: talosmachines.ichor.maesh.dev.'],
    says: /ichor install --crds-only/,
    code: 3,
  },
  {
    what: 'a type that is not served',
    wrong: world =>
      crd(world, object => (object.status.conditions = [{ type: 'NamesAccepted', status: 'False', message: '"tm" is already in use' }])),
    finds: ['CRDs: error: talosmachines.ichor.maesh.dev is written down, but not served: "tm" is already in use.'],
    says: /kubectl describe crd talosmachines/,
    code: 3,
  },
  {
    what: 'a type of another version of Ichor',
    wrong: world =>
      crd(world, object => {
        const fields = object.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties
        delete fields.address
        fields.newer = { type: 'string' }
      }),
    finds: [
      /^CRDs: warning: talosmachines\.ichor\.maesh\.dev is of another version of Ichor: it differs in spec\.address and spec\.newer\.$/,
    ],
    says: /Bring the older of the two up to date.*ichor install --crds-only/,
    code: 0,
  },
  {
    what: 'a type that serves our version no more',
    wrong: world => crd(world, object => (object.spec.versions[0].name = 'v1')),
    finds: [/^CRDs: error: talosmachines\.ichor\.maesh\.dev does not serve v1alpha1\.$/, /stored as v1alpha1/],
    says: /ichor install/,
    code: 3,
  },
  {
    what: 'objects that may be stored as an old version',
    wrong: world => crd(world, object => object.status.storedVersions.unshift('v1alpha0')),
    finds: [/^CRDs: warning: Objects of talosmachines\.ichor\.maesh\.dev may still be stored as v1alpha0/],
    says: /ichor install --crds-only/,
    code: 0,
  },
  {
    what: 'types that we may not see',
    wrong: world => world.faults.set('get customresourcedefinitions', { kind: 'forbidden', message: 'alice may not' }),
    finds: ['CRDs: unknown: CRDs cannot be seen: alice may not'],
    says: /Ask somebody who may see it/,
    code: 1,
  },
  {
    what: 'a policy that is not there',
    wrong: world => world.objects.delete('validatingadmissionpolicies//ichor-operations'),
    finds: ['policies: error: ValidatingAdmissionPolicy ichor-operations is not there.'],
    says: /ichor install --image registry\.example\.org\/ichor:0\.1\.0 -n ichor-system/,
    code: 3,
  },
  {
    what: 'pods of the controller that one may not list',
    wrong: world => world.faults.set('list pods', { kind: 'forbidden', message: 'alice may not' }),
    finds: ['controller: unknown: Where its replicas run cannot be seen: alice may not'],
    says: /Ask somebody who may see it/,
    code: 1,
  },
  {
    what: 'a policy that is not bound',
    wrong: world => world.objects.delete('validatingadmissionpolicybindings//ichor-operations'),
    finds: ['policies: error: ValidatingAdmissionPolicyBinding ichor-operations is not there.'],
    says: /refuses what can take a cluster down/,
    code: 3,
  },
  {
    what: 'a policy that somebody narrowed',
    wrong: world => policy(world, object => (object.spec.matchConstraints.namespaceSelector = { matchLabels: { strict: 'yes' } })),
    finds: [`policies: error: ValidatingAdmissionPolicy ichor-operations is not the one of this version for the controller ${ACCOUNT}.`],
    says: /ichor install/,
    code: 3,
  },
  {
    what: 'policies for another controller than the one that is installed',
    wrong: world => {
      for (const object of policiesFor('alice@example.org'))
        world.objects.set(`${typeOf(object as never).plural}//${object.metadata.name}`, object)
    },
    finds: [
      `policies: error: ValidatingAdmissionPolicy ichor-operations is not the one of this version for the controller ${ACCOUNT}.`,
      `policies: error: ValidatingAdmissionPolicy ichor-status is not the one of this version for the controller ${ACCOUNT}.`,
      `policies: error: ValidatingAdmissionPolicy ichor-leases is not the one of this version for the controller ${ACCOUNT}.`,
    ],
    says: /ichor install/,
    code: 3,
  },
  {
    what: 'somebody who may do nothing',
    wrong: world => {
      for (const verb of ['list', 'create', 'patch', 'override']) world.denied.add(`self ${verb} talosoperations`)
      for (const type of ['talosclusters', 'secrets'])
        for (const verb of ['list', 'create', 'get']) world.denied.add(`self ${verb} ${type}`)
      world.denied.add('self start talosoperations/node-reset')
    },
    finds: ['your rights: warning: You may do nothing with Ichor in namespace ichor-system.'],
    says: /kubectl create rolebinding NAME --clusterrole=ichor-viewer/,
    code: 0,
  },
  {
    what: 'a controller that lacks a right',
    wrong: world => world.denied.add(`${ACCOUNT} create pods/eviction`).add(`${ACCOUNT} patch nodes`),
    finds: ["controller's rights: error: It may not patch nodes and create pods/eviction."],
    says: /roles were changed.*ichor install --image registry\.example\.org\/ichor:0\.1\.0 -n ichor-system/,
    code: 3,
  },
  {
    what: 'a person who may not ask for others',
    wrong: world => world.faults.set('create subjectaccessreviews', { kind: 'forbidden', message: 'alice may not' }),
    finds: ["controller's rights: unknown: The controller's rights cannot be seen: alice may not"],
    says: /Ask somebody/,
    code: 1,
  },
  {
    what: 'no controller at all',
    wrong: world => {
      world.remove('deployments', 'ichor-controller')
      world.remove('leases', 'ichor-controller')
    },
    finds: [
      'controller: error: There is no Deployment ichor-controller in namespace ichor-system.',
      'leader: error: Nobody has ever led in namespace ichor-system.',
    ],
    says: /ichor install --no-controller --controller-user \S+ -n ichor-system/,
    code: 3,
  },
  {
    what: 'a Deployment that is scaled to nothing',
    wrong: world => deployment(world, object => (object.spec.replicas = 0)),
    finds: ['controller: error: Its Deployment is scaled to nothing: no operation goes on.'],
    says: /scale deployment ichor-controller --replicas 2/,
    code: 3,
  },
  {
    what: 'pods that do not start',
    wrong: world => {
      deployment(world, object => (object.status.availableReplicas = 0))
      for (const name of ['ichor-controller-0', 'ichor-controller-1'])
        world.change('pods', name, pod => {
          pod.status = { containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff', message: 'not found' } } }] }
        })
    },
    finds: ['controller: error: None of its 2 replicas is available: ImagePullBackOff: not found.'],
    says: /kubectl -n ichor-system describe pods/,
    code: 3,
  },
  {
    what: 'a pod that finds no place',
    wrong: world => {
      deployment(world, object => (object.status.availableReplicas = 1))
      world.change('pods', 'ichor-controller-1', pod => {
        pod.spec = {}
        pod.status = { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/5 nodes are available' }] }
      })
    },
    finds: ['controller: warning: 1 of its 2 replicas are available: 0/5 nodes are available.'],
    says: /describe pods/,
    code: 0,
  },
  {
    what: 'a single replica',
    wrong: world => {
      deployment(world, object => {
        object.spec.replicas = 1
        object.status.availableReplicas = 1
      })
      world.remove('pods', 'ichor-controller-1')
    },
    finds: ['controller: warning: It has one replica: while its machine is drained or away, nothing goes on.'],
    says: /--replicas 2/,
    code: 0,
  },
  {
    what: 'replicas that are all on one machine',
    wrong: world => world.change('pods', 'ichor-controller-1', pod => (pod.spec.nodeName = 'wk-1')),
    finds: ['controller: warning: All of its replicas run on wk-1: they go away together.'],
    says: /rollout restart/,
    code: 0,
  },
  {
    what: 'a controller of another version',
    wrong: world =>
      deployment(world, object => (object.spec.template.spec.containers[0].image = 'registry.example.org/ichor:v0.0.9@sha256:ab')),
    finds: ['controller: warning: It is Ichor 0.0.9, this program is 0.1.0.'],
    says: /Bring the older/,
    code: 0,
  },
  {
    what: 'a controller that somebody runs and that hangs',
    wrong: world => {
      runByAlice(world)
      lease(world, spec => {
        spec.holderIdentity = 'demo'
        spec.renewTime = microTime(bootTime - 300_000)
      })
    },
    finds: ['leader: error: The controller demo has not renewed its Lease since 2026-03-01T13:55:00Z (5m ago), and nobody took over.'],
    says: /See whether its process still runs.* ichor controller --namespace ichor-system --lease-namespace ichor-system/,
    code: 3,
  },
  {
    what: 'types that are there alone',
    wrong: world => {
      for (const key of [...world.objects.keys()]) if (!key.startsWith('customresourcedefinitions/')) world.objects.delete(key)
    },
    finds: [
      'policies: error: ichor-operations, ichor-status and ichor-leases are not there.',
      'controller: error: There is no Deployment ichor-controller in namespace ichor-system.',
      'leader: error: Nobody has ever led in namespace ichor-system.',
    ],
    says: /ichor install --no-controller -n ichor-system/,
    code: 3,
  },
  {
    what: 'a leader that has not been heard of',
    wrong: world => lease(world, spec => (spec.renewTime = microTime(bootTime - 300_000))),
    finds: [
      'leader: error: The controller ichor-controller-0 has not renewed its Lease since 2026-03-01T13:55:00Z (5m ago), and nobody took over.',
    ],
    says: /kubectl -n ichor-system logs deployment\/ichor-controller/,
    code: 3,
  },
  {
    what: 'a Lease that nobody holds',
    wrong: world =>
      lease(world, spec => {
        spec.holderIdentity = ''
        spec.renewTime = microTime(bootTime - 60_000)
      }),
    finds: ['leader: error: Nobody leads since 1m: no operation goes on.'],
    says: /log/,
    code: 3,
  },
]

describe('ichor doctor on an installation', () => {
  it('finds nothing where nothing is wrong', async () => {
    const world = healthy()
    const found = await doctor(world)
    expect([found.code, troublesOf(found)]).toEqual([0, []])
    expect(world.writes).toEqual([])
    world.out.length = 0
    expect(await world.run('doctor')).toBe(0)
    expect(world.out.join('\n')).toMatchInlineSnapshot(`
      "Installation in namespace ichor-system, https://10.0.0.1:6443
        ✓ API server           https://10.0.0.1:6443, Kubernetes v1.36.2.
        ✓ clocks               2 agree to 1 s.
        ✓ certificates         The client certificate of the kubeconfig ends on 2026-09-17 (200d).
        ✓ CRDs                 4 types, as this program has them.
        ✓ policies             They hold, for the controller system:serviceaccount:ichor-system:ichor-controller.
        ✓ your rights          You may see operations, clusters and machines, start and steer operations, start what can take a cluster down, override refusals, add clusters and read talosconfigs.
        ✓ controller's rights  It may do all that it does.
        ✓ controller           2 of 2 replicas, on wk-1 and wk-2; registry.example.org/ichor:0.1.0.
        ✓ leader               ichor-controller-0 leads.

      Clusters
        ✓ cluster  There is none in namespace ichor-system.
                   Add one, or choose another namespace with -n.
                   $ ichor cluster add NAME --talosconfig FILE -n ichor-system

      Nothing is wrong."
    `)
  })

  it.each(TROUBLES)('finds $what, and nothing once it is mended', async ({ wrong, finds, says, code }) => {
    const world = healthy()
    const mend = keep(world)
    wrong(world)
    const found = await doctor(world)
    const troubles = troublesOf(found)
    expect(troubles).toHaveLength(finds.length)
    for (const [index, one] of finds.entries()) expect(troubles[index]).toEqual(typeof one === 'string' ? one : expect.stringMatching(one))
    expect(found.findings.map(({ remedy, command }) => [remedy, command].filter(Boolean).join(' ')).join('\n')).toMatch(says)
    expect(found.code).toBe(code)
    mend()
    expect(troublesOf(await doctor(world))).toEqual([])
  })

  it('says in one line that nothing is installed, and looks at what there is all the same', async () => {
    const world = healthy()
    world.objects.clear()
    for (const type of ['talosclusters', 'talosmachines', 'talosoperations'])
      world.faults.set(`list ${type}`, { kind: 'notFound', message: 'the server could not find the requested resource' })
    const { code, findings } = await doctor(world)
    expect(code).toBe(3)
    expect(findings.filter(({ severity }) => severity !== 'ok')).toEqual([
      {
        about: 'Installation in namespace ichor-system, https://10.0.0.1:6443',
        look: 'installation',
        severity: 'error',
        message: 'Ichor is not installed here.',
        remedy: 'docs/install.md tells how it is installed; for a controller that you run yourself:',
        command: 'ichor install --no-controller -n ichor-system',
      },
    ])
    expect(findings.map(({ look }) => look)).toEqual(['API server', 'clocks', 'certificates', 'installation', 'your rights'])
  })

  it('tells in one line what one has no right to see, and which rights that takes', async () => {
    const world = healthy()
    const refuse = (verb: string, resource: string, group: string, rest: string) =>
      world.faults.set(`${verb} ${resource}`, {
        kind: 'forbidden',
        message: `${resource} is forbidden: User "eve" cannot ${verb} resource "${resource}" in API group "${group}" ${rest}`,
      })
    refuse('get', 'customresourcedefinitions', 'apiextensions.k8s.io', 'at the cluster scope')
    refuse('get', 'deployments', 'apps', 'in the namespace "ichor-system"')
    expect(await world.run('doctor')).toBe(1)
    const hidden = world.out.filter(line => line.includes('?'))
    expect(hidden).toEqual([
      expect.stringMatching(
        /^ {2}\? not for you +CRDs and controller: that takes the rights to get customresourcedefinitions\.apiextensions\.k8s\.io and get deployments\.apps in ichor-system\.$/,
      ),
    ])
    const { findings } = await doctor(world)
    expect(findings.filter(one => 'lacks' in one).map(({ look }) => look)).toEqual(['CRDs', 'controller'])
  })

  describe('asked about a namespace in which it is not installed', () => {
    const elsewhere = async (world: Bench) => {
      world.out.length = 0
      const code = await world.run('doctor', '-n', 'nons', '-o', 'json')
      return { code, findings: (JSON.parse(world.out.join('\n')) as { findings: Told[] }).findings }
    }

    it('says where it is, and looks at it there', async () => {
      const found = await elsewhere(healthy())
      expect([found.code, troublesOf(found)]).toEqual([
        3,
        ['installation: error: Ichor is installed in namespace ichor-system, not in nons.'],
      ])
      expect(found.findings.find(({ look }) => look === 'installation')?.command).toBe('ichor doctor -n ichor-system')
      expect(found.findings.find(({ look }) => look === 'leader')?.message).toBe('ichor-controller-0 leads.')
    })

    it('finds nothing wrong where it looks after all namespaces', async () => {
      const world = healthy()
      deployment(world, object => object.spec.template.spec.containers[0].args.push('--namespace='))
      const found = await elsewhere(world)
      expect([found.code, troublesOf(found)]).toEqual([0, []])
      expect(found.findings.find(({ look }) => look === 'installation')?.message).toBe('In namespace ichor-system, for all namespaces.')
    })
  })

  it('judges the age of the lease by the clock of the API server', async () => {
    const world = healthy()
    world.clockAhead = -300_000
    lease(world, spec => (spec.renewTime = microTime(bootTime - 302_000)))
    expect(troublesOf(await doctor(world)).map(one => one.split(':')[0])).toEqual(['clocks'])
  })

  it('takes a controller that somebody runs himself for one, and asks for its rights only as that user', async () => {
    const world = healthy()
    runByAlice(world)
    const found = await doctor(world)
    expect([found.code, troublesOf(found)]).toEqual([0, []])
    expect(found.findings.find(({ look }) => look === 'policies')?.message).toBe(
      'They hold, for the controller alice@example.org: that is you, so they do not hold for you.',
    )
    world.user = 'bob'
    expect(troublesOf(await doctor(world))).toEqual([expect.stringMatching(/^controller's rights: unknown: .*runs as alice@example\.org/)])
  })

  describe.each<[string, (world: Bench) => void, string]>([
    ['with its image', () => {}, 'ichor install --image registry.example.org/ichor:0.1.0 -n ichor-system'],
    [
      'with its other flags',
      world =>
        deployment(world, object => {
          object.spec.replicas = 3
          object.spec.template.spec.containers[0].args.push('--namespace=')
        }),
      'ichor install --image registry.example.org/ichor:0.1.0 --replicas 3 --all-namespaces -n ichor-system',
    ],
    [
      'by Helm where Helm has done it',
      world =>
        deployment(world, object => {
          object.metadata.labels['app.kubernetes.io/managed-by'] = 'Helm'
          object.metadata.annotations = { 'meta.helm.sh/release-name': 'mine' }
        }),
      'helm upgrade mine charts/ichor -n ichor-system --reuse-values',
    ],
    ['without a controller where there is none', runByAlice, 'ichor install --no-controller -n ichor-system'],
    [
      'for the same controller where that is somebody else',
      world => {
        runByAlice(world)
        world.user = 'bob'
      },
      'ichor install --no-controller --controller-user alice@example.org -n ichor-system',
    ],
  ])('mends what is installed %s', (_, arrange, command) => {
    it.each<[string, (world: Bench) => void]>([
      ['policies', world => world.objects.delete('validatingadmissionpolicies//ichor-operations')],
      [
        "controller's rights",
        world => {
          for (const user of [ACCOUNT, 'self']) world.denied.add(`${user} patch nodes`)
        },
      ],
    ])('%s', async (look, wrong) => {
      const world = healthy()
      arrange(world)
      wrong(world)
      const found = (await doctor(world)).findings.filter(one => one.look === look && one.severity === 'error')
      // Whose groups nobody is told cannot be asked for.
      const isUnseen = look === "controller's rights" && world.user === 'bob'
      expect(found.map(one => one.command)).toEqual(isUnseen ? [] : [command])
      // And it is taken as it stands.
      const [program, ...argv] = command.split(' ')
      if (program === 'ichor') expect([await world.run(...argv, '--dry-run'), world.err]).toEqual([0, []])
    })
  })
})
