import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MachineFacts } from '../ports/talos.ts'
import { carriesSchematic, chooseInstallImage, type InstallImageRequest } from './install-image.ts'
import { EMPTY_SCHEMATIC, parseImage, readInstaller } from './talos-image.ts'

const S1 = '1'.repeat(64)
const S2 = '2'.repeat(64)

const bare: MachineFacts = {
  address: '10.5.0.2',
  hostname: 'wk-1',
  nodename: 'wk-1',
  role: 'worker',
  uuid: 'u',
  nodeID: 'n',
  clusterID: 'c',
  clusterName: 'home',
  version: 'v1.12.5',
  platform: 'metal',
  arch: 'amd64',
  secureBoot: false,
  bootID: 'b',
  stage: 'running',
  ready: true,
  unmet: [],
  schematic: '',
  factory: '',
  extensions: [],
  installImage: 'ghcr.io/siderolabs/installer:v1.12.5',
  fallbackArmed: false,
  etcdQuotaBytes: 0,
}
const extended: MachineFacts = { ...bare, schematic: S1, factory: 'factory.talos.dev', extensions: ['iscsi-tools'] }

const answer = (request: Partial<InstallImageRequest> & { readonly machine: MachineFacts }): string => {
  const choice = chooseInstallImage({ version: 'v1.13.9', ...request })
  return choice.ok ? choice.image : `${choice.rule}: ${choice.message}`
}

describe('the image built from what runs', () => {
  it.each<[string, Partial<InstallImageRequest> & { machine: MachineFacts }, string]>([
    [
      'the running schematic, not the configuration (siderolabs/talos#8467)',
      { machine: extended },
      `factory.talos.dev/metal-installer/${S1}:v1.13.9`,
    ],
    ['Secure Boot stays', { machine: { ...extended, secureBoot: true } }, `factory.talos.dev/metal-installer-secureboot/${S1}:v1.13.9`],
    [
      'the platform stays (home-operations/tuppr#228)',
      { machine: { ...extended, platform: 'nocloud' } },
      `factory.talos.dev/nocloud-installer/${S1}:v1.13.9`,
    ],
    [
      'the factory with its port',
      { machine: { ...extended, factory: 'factory.local:8443' } },
      `factory.local:8443/metal-installer/${S1}:v1.13.9`,
    ],
    [
      'the factory of the cluster wins',
      { machine: extended, clusterFactory: 'mirror.local' },
      `mirror.local/metal-installer/${S1}:v1.13.9`,
    ],
    ['another schematic, asked for', { machine: extended, schematic: S2 }, `factory.talos.dev/metal-installer/${S2}:v1.13.9`],
    ['no extensions and no factory, up to 1.13', { machine: bare }, 'ghcr.io/siderolabs/installer:v1.13.9'],
    [
      'no extensions and no factory, from 1.14',
      { machine: bare, version: 'v1.14.0' },
      `factory.talos.dev/metal-installer/${EMPTY_SCHEMATIC}:v1.14.0`,
    ],
    [
      'the empty schematic counts as none (home-operations/tuppr#576)',
      { machine: { ...bare, schematic: EMPTY_SCHEMATIC } },
      'ghcr.io/siderolabs/installer:v1.13.9',
    ],
    [
      'no extensions and a known factory',
      { machine: bare, clusterFactory: 'mirror.local' },
      `mirror.local/metal-installer/${EMPTY_SCHEMATIC}:v1.13.9`,
    ],
  ])('%s', (_, request, expected) => expect(answer(request)).toBe(expected))

  it.each<[string, Partial<InstallImageRequest> & { machine: MachineFacts }, RegExp]>([
    [
      'extensions without schematic (devantler-tech/ksail#5079)',
      { machine: { ...bare, extensions: ['iscsi-tools'] } },
      /^SchematicMismatch: wk-1 runs the extensions iscsi-tools but names no .* Set spec\.talos\.schematic/,
    ],
    [
      'a schematic without factory (home-operations/tuppr#478)',
      { machine: { ...extended, factory: '' } },
      /^SchematicMismatch: wk-1 shall run .* Set spec\.imageFactory/,
    ],
    [
      'Secure Boot without factory',
      { machine: { ...bare, secureBoot: true } },
      /^SchematicMismatch: wk-1 boots with Secure Boot .* Set spec\.imageFactory/,
    ],
    ['a factory that is a URL', { machine: extended, clusterFactory: 'https://factory.talos.dev' }, /^ImageInvalid: .*has to be a host/],
    ['a container', { machine: { ...extended, platform: 'container' } }, /^PlatformMismatch: /],
    ['no platform', { machine: { ...extended, platform: '' } }, /^PlatformMismatch: /],
  ])('refused: %s', (_, request, expected) => expect(answer(request)).toMatch(expected))
})

describe('an image that a person names', () => {
  const factory = (schematic: string, version = 'v1.13.9', what = 'metal-installer') => `factory.talos.dev/${what}/${schematic}:${version}`
  it.each<[string, Partial<InstallImageRequest> & { machine: MachineFacts }]>([
    ['with the running schematic', { machine: extended, image: factory(S1) }],
    ['with another schematic that is asked for as well', { machine: extended, image: factory(S2), schematic: S2 }],
    ['the empty one in place of none', { machine: bare, image: factory(EMPTY_SCHEMATIC) }],
    ['the bare installer where nothing else runs', { machine: bare, image: 'ghcr.io/siderolabs/installer:v1.13.9' }],
    [
      'the bare installer from a mirror for 1.14',
      { machine: bare, version: 'v1.14.0', image: 'mirror.local/siderolabs/installer:v1.14.0' },
    ],
    ['by digest', { machine: bare, image: `ghcr.io/siderolabs/installer@sha256:${'b'.repeat(64)}` }],
    [
      'one of no known form, where no factory made what runs',
      { machine: { ...bare, extensions: ['mine'] }, image: 'mirror.local/mine/talos:v1.13.9' },
    ],
    ['one of no known form, with its schematic named', { machine: extended, image: 'mirror.local/mine/talos:v1.13.9-mine', schematic: S2 }],
  ])('is taken: %s', (_, request) => expect(answer(request)).toBe(request.image))

  it.each<[string, Partial<InstallImageRequest> & { machine: MachineFacts }, RegExp]>([
    [
      'the bare installer drops extensions (siderolabs/talos#8467)',
      { machine: extended, image: 'ghcr.io/siderolabs/installer:v1.13.9' },
      /^SchematicMismatch: .*without any extension, but wk-1 runs 1{12}… with the extensions iscsi-tools/,
    ],
    ['the empty schematic drops extensions', { machine: extended, image: factory(EMPTY_SCHEMATIC) }, /^SchematicMismatch/],
    [
      'the bare installer where extensions run without schematic',
      { machine: { ...bare, extensions: ['mine'] }, image: 'ghcr.io/siderolabs/installer:v1.13.9' },
      /^SchematicMismatch/,
    ],
    [
      'another schematic without consent',
      { machine: extended, image: factory(S2) },
      /^SchematicMismatch: .*set spec\.talos\.schematic to 2{64}/,
    ],
    [
      'image and schematic that contradict',
      { machine: extended, image: factory(S1), schematic: S2 },
      /^SchematicMismatch: .*make them the same/,
    ],
    [
      'one of no known form over a factory image',
      { machine: extended, image: 'mirror.local/mine/talos:v1.13.9' },
      /^SchematicMismatch: .*does not tell/,
    ],
    ['tag and digest', { machine: extended, image: `${factory(S1)}@sha256:${'b'.repeat(64)}` }, /^ImageInvalid: .*both a tag and a digest/],
    [
      'an older tag (cozystack/talm#219)',
      { machine: extended, image: factory(S1, 'v1.10.5') },
      /^ImageVersionMismatch: .*v1\.10\.5.*v1\.13\.9/,
    ],
    ['a pre-release of the target', { machine: extended, image: factory(S1, 'v1.13.9-rc.0') }, /^ImageVersionMismatch/],
    ['latest', { machine: extended, image: factory(S1, 'latest') }, /^ImageVersionMismatch/],
    [
      'the bare installer for 1.14',
      { machine: bare, version: 'v1.14.0', image: 'ghcr.io/siderolabs/installer:v1.14.0' },
      /^ImageInvalid: .*not published/,
    ],
    [
      'without Secure Boot on a machine with it (siderolabs/talos#9245)',
      { machine: { ...extended, secureBoot: true }, image: factory(S1) },
      /^SecureBootMismatch/,
    ],
    [
      'with Secure Boot on a machine without it',
      { machine: extended, image: factory(S1, 'v1.13.9', 'metal-installer-secureboot') },
      /^SecureBootMismatch/,
    ],
    [
      'of another platform (home-operations/tuppr#228)',
      { machine: extended, image: factory(S1, 'v1.13.9', 'aws-installer') },
      /^PlatformMismatch/,
    ],
  ])('is refused: %s', (_, request, expected) => expect(answer(request)).toMatch(expected))
})

describe('the image that a TalosMachine names', () => {
  it('gets the version', () =>
    expect(answer({ machine: extended, machineImage: `mirror.local/metal-installer/${S1}` })).toBe(
      `mirror.local/metal-installer/${S1}:v1.13.9`,
    ))
  it('is the consent to its schematic', () =>
    expect(answer({ machine: extended, machineImage: `mirror.local/metal-installer/${S2}` })).toBe(
      `mirror.local/metal-installer/${S2}:v1.13.9`,
    ))
  it('never brings the bare installer to a machine with extensions', () =>
    expect(answer({ machine: extended, machineImage: 'ghcr.io/siderolabs/installer' })).toMatch(/^SchematicMismatch/))
  it('has no tag, also behind a port', () => {
    expect(answer({ machine: extended, machineImage: `mirror.local:5000/metal-installer/${S1}` })).toBe(
      `mirror.local:5000/metal-installer/${S1}:v1.13.9`,
    )
    expect(answer({ machine: extended, machineImage: `mirror.local/metal-installer/${S1}:v1.12.0` })).toMatch(
      /^ImageInvalid: .*without tag/,
    )
  })
  it('yields to the image of the operation', () =>
    expect(answer({ machine: extended, machineImage: 'x.local/y', image: `factory.talos.dev/metal-installer/${S1}:v1.13.9` })).toMatch(
      /^factory/,
    ))
})

describe('the schematic that the image brings', () => {
  const own = 'harbor.local/talos/installer-s1'
  it.each<[string, Partial<InstallImageRequest> & { machine: MachineFacts }, string | undefined]>([
    ['is the one that runs', { machine: extended }, S1],
    ['is the one of its name', { machine: extended, machineImage: `mirror.local/metal-installer/${S2}` }, S2],
    ['is none in the bare installer', { machine: bare, image: 'mirror.local/siderolabs/installer:v1.13.9' }, ''],
    ['is told by nobody', { machine: bare, image: `${own}:v1.13.9` }, undefined],
    ['is told by nobody, where it is written on the machine', { machine: extended, machineImage: own }, undefined],
    ['is told by who asks for it', { machine: extended, machineImage: own, schematic: S2 }, S2],
  ])('%s', (_, request, expected) => expect(chooseInstallImage({ version: 'v1.13.9', ...request })).toMatchObject({ schematic: expected }))

  it('is looked at where it is told, and nowhere else', () => {
    const choice = { ok: true, image: own } as const
    expect(carriesSchematic({ ...choice, schematic: undefined }, S1)).toBe(true)
    expect(carriesSchematic({ ...choice, schematic: '' }, EMPTY_SCHEMATIC)).toBe(true)
    expect(carriesSchematic({ ...choice, schematic: S2 }, S1)).toBe(false)
  })
})

describe('whatever is asked', () => {
  it('a machine with extensions keeps its schematic unless another was named', () => {
    const image = fc.option(
      fc.constantFrom(
        'ghcr.io/siderolabs/installer:v1.13.9',
        `f.local/metal-installer/${S1}:v1.13.9`,
        `f.local/metal-installer/${S2}:v1.13.9`,
        `f.local/metal-installer/${EMPTY_SCHEMATIC}:v1.13.9`,
        'rubbish',
      ),
      { nil: undefined },
    )
    const machine = fc.record({ schematic: fc.constantFrom('', S1), factory: fc.constantFrom('', 'f.local'), secureBoot: fc.boolean() })
    fc.assert(
      fc.property(machine, image, fc.option(fc.constant('f.local'), { nil: undefined }), (facts, named, clusterFactory) => {
        const choice = chooseInstallImage({ machine: { ...extended, ...facts }, version: 'v1.13.9', image: named, clusterFactory })
        if (!choice.ok) return
        const parsed = parseImage(choice.image)
        expect(parsed.ok && readInstaller(parsed.image)).toMatchObject({ form: 'factory', schematic: S1, secureBoot: facts.secureBoot })
        expect(carriesSchematic(choice, facts.schematic)).toBe(true)
      }),
    )
  })
})
