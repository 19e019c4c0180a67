// What a patch would bring about that nobody may have meant, and what it does not bring about by itself: told before anything is written.
import { describe, expect, it } from 'vitest'
import { createStory, type Story, type StoryOptions } from '../../storm/story.ts'
import { setConfig } from '../../world/configuration.ts'

const MINUTE = 60_000

type Asked = {
  readonly prepare?: (story: Story) => void | Promise<void>
  readonly mode?: string
  readonly cluster?: StoryOptions
  readonly spec?: object
}
type Told = { readonly refusals: readonly string[]; readonly notes: readonly string[]; readonly phase: string | undefined }

/** The invented cluster runs Talos v1.13.5, whose own Kubernetes is v1.36.2, and that. */
const told = async (patch: string, { prepare, mode = 'try', cluster = {}, spec = {} }: Asked = {}): Promise<Told> => {
  const story = createStory({ seed: 3, ...cluster })
  story.start()
  await story.pass(MINUTE)
  await prepare?.(story)
  story.create({ name: 'op', spec: { kind: 'config', ...spec, config: { mode, patches: [{ inline: patch }] } } })
  await story.until('it has settled', () => ['Completed', 'Paused'].includes(story.operation('op')?.status.phase ?? ''))
  const { preflight, phase } = story.operation('op')?.status ?? {}
  const refusals = (preflight?.refusals ?? []).map(r => `${r.rule}: ${r.message}`)
  if (refusals.length > 0) expect(story.world.journal.of('config-applied')).toEqual([])
  return { refusals, notes: preflight?.notes ?? [], phase }
}
const kubelet = (version: string): string => `machine:\n  kubelet:\n    image: ghcr.io/siderolabs/kubelet:${version}\n`
const component = (section: string, name: string, version: string): string =>
  `cluster:\n  ${section}:\n    image: registry.k8s.io/${name}:${version}\n`

describe('a version of Kubernetes that a patch changes', () => {
  it.each<[string, string, RegExp]>([
    [
      'a kubelet newer than the API servers',
      kubelet('v1.36.3'),
      /^VersionSkew: cp-1 would run kubelet v1\.36\.3: nothing may be newer than any API server, and one is v1\.36\.2\. .*The same holds for cp-2, cp-3, wk-1, wk-2\.$/,
    ],
    ['a kubelet of four minors before', kubelet('v1.32.1'), /VersionSkew: .* it may be 3 minors behind at most/],
    [
      'a scheduler newer than the API servers',
      component('scheduler', 'kube-scheduler', 'v1.36.3'),
      /^VersionSkew: cp-1 would run kube-scheduler v1\.36\.3/,
    ],
    [
      'a controller manager of two minors before',
      component('controllerManager', 'kube-controller-manager', 'v1.34.9'),
      /VersionSkew: .* it may be one minor behind at most/,
    ],
    ['an API server of the minor before', component('apiServer', 'kube-apiserver', 'v1.35.4'), /VersionSkew: .* cannot go back a minor/],
  ])('%s is refused', async (_, patch, expected) => {
    expect((await told(patch)).refusals).toEqual([expect.stringMatching(expected)])
  })

  describe('of API servers', () => {
    const MINOR = '1.37.0'
    /** The invented cluster runs v1.36.2. */
    const raise = component('apiServer', 'kube-apiserver', `v${MINOR}`)
    const setImages =
      (section: string, image: string, role?: string) =>
      (story: Story): void => {
        for (const machine of story.world.machines)
          if (role === undefined || machine.role === role)
            setConfig(
              story.world.site,
              machine,
              machine.config.replace(new RegExp(`^( {4}${section}:\\n {8}image: ).*$`, 'm'), (_, before: string) => before + image),
            )
      }

    it.each<[string, string, string, RegExp]>([
      [
        'a kubelet that stays behind',
        'kubelet',
        'ghcr.io/siderolabs/kubelet:v1.33.4',
        /^VersionSkew: cp-1 would run kube-apiserver v1\.37\.0: kubelet of cp-1, .*wk-2 is v1\.33\.4, and it may be 3 minors behind at most\./,
      ],
      [
        'a scheduler that stays behind',
        'scheduler',
        'registry.k8s.io/kube-scheduler:v1.35.4',
        /^VersionSkew: cp-1 would run kube-apiserver v1\.37\.0: kube-scheduler of cp-1, cp-2, cp-3 is v1\.35\.4, and it may be one minor behind at most\./,
      ],
    ])('%s is judged', async (_, section, image, expected) => {
      const prepare = async (story: Story): Promise<void> => {
        setImages(section, image)(story)
        await story.pass(10 * MINUTE)
      }
      expect((await told(raise, { prepare })).refusals).toEqual([expect.stringMatching(expected)])
    })

    it('what the same patch takes along is judged as it will be', async () => {
      const prepare = async (story: Story): Promise<void> => {
        setImages('scheduler', 'registry.k8s.io/kube-scheduler:v1.35.4')(story)
        await story.pass(10 * MINUTE)
      }
      const both = `${raise}  scheduler:\n    image: registry.k8s.io/kube-scheduler:v1.36.2\n`
      expect(await told(both, { prepare, mode: 'staged' })).toMatchObject({ refusals: [], phase: 'Completed' })
    })

    it('what is not too far behind is none of its business', async () => {
      expect(await told(raise, { mode: 'staged' })).toMatchObject({ refusals: [], phase: 'Completed' })
    })
  })

  it('API servers two minors apart are refused, and what they leave behind is told', async () => {
    expect((await told(component('apiServer', 'kube-apiserver', 'v1.38.0'))).refusals).toEqual([
      expect.stringMatching(/VersionSkew: .* would be v1\.36\.2 and v1\.38\.0 at once/),
      expect.stringMatching(
        /^VersionSkew: cp-1 would run kube-apiserver v1\.38\.0: kube-controller-manager of .*; kube-scheduler of cp-1, cp-2, cp-3 is v1\.36\.2, /,
      ),
    ])
  })

  it('is noted where Kubernetes supports it', async () => {
    const { refusals, notes, phase } = await told(component('scheduler', 'kube-scheduler', 'v1.36.1'))
    expect(refusals).toEqual([])
    expect(phase).toBe('Completed')
    expect(notes).toContainEqual(
      expect.stringMatching(
        /\(kube-scheduler v1\.36\.2 -> v1\.36\.1 on cp-1, cp-2, cp-3\)\. That is what `ichor upgrade kubernetes` is for/,
      ),
    )
  })

  it('is the one of Talos where its image is no longer named, and judged as that', async () => {
    const unpinned = 'machine:\n  kubelet:\n    $patch: delete\n'
    const newer = await told(unpinned, { cluster: { kubernetes: 'v1.35.4' } })
    expect(newer.refusals).toEqual([
      expect.stringMatching(
        /^VersionSkew: cp-1 would run kubelet v1\.36\.\d+, which is what its Talos brings where no image is named: nothing may be newer/,
      ),
    ])
    const older = await told('machine:\n  kubelet:\n    $patch: delete\n', { cluster: { kubernetes: 'v1.36.9' }, mode: 'staged' })
    expect(older.refusals).toEqual([])
    expect(older.notes).toContainEqual(
      expect.stringMatching(/^The image of kubelet is no longer named on cp-1, .*: Talos then takes its own/),
    )
  })
})

describe('an argument that Talos keeps for itself', () => {
  const args = (section: string, name: string): string => `cluster: {${section}: {extraArgs: {${name}: x}}}\n`

  it.each<[string, string, string, RegExp]>([
    [
      'of an API server',
      'try',
      args('apiServer', 'etcd-servers'),
      /^ArgumentKept: cp-1 would have kube-apiserver with --etcd-servers, .*renders no static pod/,
    ],
    [
      'of a controller manager',
      'no-reboot',
      args('controllerManager', 'root-ca-file'),
      /^ArgumentKept: .* --root-ca-file, .*cp-2, cp-3\.$/,
    ],
    ['of a scheduler, for later', 'staged', args('scheduler', 'config'), /^ArgumentKept: cp-1 would have kube-scheduler with --config/],
    [
      'of a kubelet',
      'try',
      'machine: {kubelet: {extraArgs: {cert-dir: /x}}}\n',
      /^ArgumentKept: .* --cert-dir, .*has no kubelet to start\. .*wk-2\.$/,
    ],
  ])('is refused, %s', async (_, mode, patch, expected) => {
    expect((await told(patch, { mode })).refusals).toEqual([expect.stringMatching(expected)])
  })

  const denied = (story: Story): void => {
    for (const machine of story.world.machines)
      if (machine.role === 'controlplane')
        setConfig(story.world.site, machine, machine.config.replace(/^ {4}apiServer:$/m, '$&\n        extraArgs: {etcd-servers: x}'))
  }
  it('that is there already is in the way of what is about the same programs, and of nothing else', async () => {
    const scheduler = await told(args('scheduler', 'v'), { prepare: denied })
    expect(scheduler.refusals).toEqual([expect.stringMatching(/^ArgumentKept: cp-1 would have kube-apiserver with --etcd-servers/)])
    expect(await told('machine: {sysctls: {a: "1"}}\n', { prepare: denied, mode: 'staged' })).toMatchObject({ refusals: [] })
  })

  it('any other is taken', async () => {
    expect(await told(args('apiServer', 'v'))).toMatchObject({ refusals: [], phase: 'Completed' })
  })
})

describe('what has to be another on each machine', () => {
  it.each<[string, string]>([
    ['of old', 'machine:\n  network:\n    hostname: Foo\n'],
    ['in a document of its own', 'apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: foo\n'],
  ])('a hostname, %s, is refused for two', async (_, patch) => {
    const { refusals } = await told(patch, { spec: { machineSelector: { matchLabels: { 'ichor.maesh.dev/cluster': 'home' } } } })
    expect(refusals[0]).toMatch(/^HostnameTwice: cp-1 would get the hostname foo, which cp-2 would get, too/i)
  })

  it('a hostname that another machine has is refused for one', async () => {
    const { refusals } = await told('machine:\n  network:\n    hostname: cp-2\n', { cluster: { controlPlanes: 3, workers: 1 } })
    expect(refusals.join()).toMatch(/HostnameTwice/)
  })

  it.each<[string, string]>([
    ['of an interface', 'machine:\n  network:\n    interfaces:\n      - interface: eth1\n        addresses: [192.0.2.7/24]\n'],
    [
      'of a VLAN',
      'machine:\n  network:\n    interfaces:\n      - interface: eth1\n        vlans:\n          - vlanId: 5\n            addresses: [192.0.2.7/24]\n',
    ],
    ['in a document of its own', 'apiVersion: v1alpha1\nkind: LinkConfig\nname: eth1\naddresses:\n  - address: 192.0.2.7/24\n'],
  ])('a static address, %s, is noted', async (_, patch) => {
    const { notes } = await told(patch, { mode: 'staged' })
    expect(notes).toContainEqual(expect.stringMatching(/^cp-1, cp-2, cp-3, wk-1, wk-2 would all have the static address 192\.0\.2\.7\/24/))
  })

  it.each<[string, string]>([
    ['an address that moves', 'machine:\n  network:\n    interfaces:\n      - interface: eth1\n        vip: {ip: 192.0.2.7}\n'],
    ['one of a loopback', 'machine:\n  network:\n    interfaces:\n      - interface: lo\n        addresses: [192.0.2.7/32]\n'],
  ])('but not %s', async (_, patch) => {
    expect((await told(patch, { mode: 'staged' })).notes.join()).not.toContain('static address')
  })
})

describe('what does not follow by itself', () => {
  it.each<[string, string, string, RegExp]>([
    [
      'kube-proxy',
      'try',
      'cluster:\n  proxy:\n    extraArgs: {v: "2"}\n',
      /^cluster\.proxy changes only the manifests .*`ichor upgrade kubernetes`/,
    ],
    ['the network', 'try', 'cluster:\n  network:\n    cni: {name: none}\n', /^cluster\.network\.cni changes only the manifests/],
    ['CoreDNS', 'try', 'cluster:\n  coreDNS:\n    disabled: true\n', /^cluster\.coreDNS changes only/],
    ['a manifest', 'reboot', 'cluster:\n  inlineManifests:\n    - {name: a, contents: "a: b"}\n', /^cluster\.inlineManifests changes only/],
    ['the installation', 'try', 'machine:\n  install:\n    wipe: true\n', /^machine\.install has no effect before the next installation/],
    [
      'etcd',
      'no-reboot',
      'cluster:\n  etcd:\n    extraArgs: {quota-backend-bytes: "4294967296"}\n',
      /^cluster\.etcd .*Use the mode reboot\.$/,
    ],
    [
      'the environment',
      'try',
      'apiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables: {A: b}\n',
      /^EnvironmentConfig takes effect with the next boot/,
    ],
  ])('is noted of %s', async (_, mode, patch, expected) => {
    expect((await told(patch, { mode })).notes).toContainEqual(expect.stringMatching(expected))
  })

  it.each<[string, string, string]>([
    ['etcd is told anew by a boot', 'reboot', 'cluster:\n  etcd:\n    extraArgs: {quota-backend-bytes: "4294967296"}\n'],
    ['a sysctl is there at once', 'try', 'machine:\n  sysctls: {a: "1"}\n'],
  ])('%s, and nothing is noted', async (_, mode, patch) => {
    expect((await told(patch, { mode })).notes.filter(note => /^(cluster|machine)\./.test(note))).toEqual([])
  })
})

describe('the only API server', () => {
  const AUDIT = 'cluster:\n  apiServer:\n    extraArgs: {audit-log-maxage: "7"}\n'
  const alone = { controlPlanes: 1, workers: 1 }

  it.each<[string, string]>([
    ['its arguments', AUDIT],
    ['what it reads beside them', 'cluster:\n  scheduler:\n    extraArgs: {v: "2"}\n'],
  ])('goes away for %s only where that was accepted', async (_, patch) => {
    expect((await told(patch, { cluster: alone })).refusals).toEqual([expect.stringMatching(/^ApiOutage: .*`--acknowledge api-outage`/)])
    expect((await told(patch, { cluster: alone, spec: { acknowledge: ['api-outage'] } })).phase).toBe('Completed')
  })

  it.each<[string, string, Asked]>([
    ['one of three', AUDIT, {}],
    ['of which nothing changes', 'machine:\n  sysctls: {a: "1"}\n', { cluster: alone }],
    ['that is told later', AUDIT, { cluster: alone, mode: 'staged' }],
  ])('%s needs no word', async (_, patch, asked) => {
    expect(await told(patch, asked)).toMatchObject({ refusals: [], phase: 'Completed' })
  })
})
