import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EMPTY_SCHEMATIC, factoryImage, isSchematicId, parseImage, readInstaller, sameSchematic } from './talos-image.ts'

const S1 = 'a'.repeat(64)
const digest = `sha256:${'b'.repeat(64)}`

describe('image references', () => {
  it.each([
    [
      'a factory image',
      `factory.talos.dev/metal-installer/${S1}:v1.13.9`,
      'factory.talos.dev',
      `metal-installer/${S1}`,
      'v1.13.9',
      undefined,
    ],
    [
      'a registry with a port',
      `registry.local:5000/siderolabs/installer:v1.13.9`,
      'registry.local:5000',
      'siderolabs/installer',
      'v1.13.9',
      undefined,
    ],
    ['a registry by IPv6', '[fd00::1]:5000/installer:v1', '[fd00::1]:5000', 'installer', 'v1', undefined],
    ['localhost', 'localhost/installer:v1', 'localhost', 'installer', 'v1', undefined],
    ['a digest', `ghcr.io/siderolabs/installer@${digest}`, 'ghcr.io', 'siderolabs/installer', undefined, digest],
    ['no registry', 'siderolabs/installer:v1.13.9', '', 'siderolabs/installer', 'v1.13.9', undefined],
    [
      'the platform with a capital letter',
      `factory.talos.dev/equinixMetal-installer/${S1}:v1.13.9`,
      'factory.talos.dev',
      `equinixMetal-installer/${S1}`,
      'v1.13.9',
      undefined,
    ],
  ])('reads %s', (_, text, registry, path, tag, at) => {
    const parsed = parseImage(text)
    expect(parsed).toEqual({ ok: true, image: { registry, path, tag, digest: at } })
  })

  it.each([
    [
      'tag and digest together (siderolabs/talos#10373)',
      `ghcr.io/siderolabs/installer:v1.13.9@${digest}`,
      /both a tag and a digest; name one of them/,
    ],
    ['neither', 'registry.local:5000/siderolabs/installer', /neither a tag nor a digest/],
    ['a short digest', 'ghcr.io/siderolabs/installer@sha256:abc', /malformed digest/],
    ['capital letters', 'ghcr.io/SideroLabs/installer:v1.13.9', /"SideroLabs" is no part of an image's name/],
    ['a URL', 'https://factory.talos.dev/metal-installer/x:v1', /is a URL/],
    ['a blank', 'ghcr.io/siderolabs/installer: v1.13.9', /blanks/],
    ['nothing', '', /empty/],
    ['an empty part', 'ghcr.io//installer:v1.13.9', /"" is no part/],
    ['an empty tag', 'ghcr.io/siderolabs/installer:', /tag that no image can have/],
    ['two digests', `ghcr.io/a@${digest}@${digest}`, /more than one @/],
    ['a registry that is none', '-x.io/installer:v1', /no host/],
  ])('refuses %s', (_, text, expected) => {
    const parsed = parseImage(text)
    expect(parsed.ok ? 'accepted' : parsed.problem).toMatch(expected)
  })

  it('reads what it writes', () => {
    const platform = fc.constantFrom('metal', 'aws', 'digital-ocean', 'equinixMetal', 'hcloud')
    const factory = fc.constantFrom('factory.talos.dev', 'factory.local:8443', '10.0.0.5:80', 'mirror.example.com/talos')
    const schematic = fc.stringMatching(/^[0-9a-f]{64}$/)
    fc.assert(
      fc.property(platform, factory, schematic, fc.boolean(), (p, f, s, secureBoot) => {
        const parsed = parseImage(factoryImage({ factory: f, platform: p, secureBoot, schematic: s, version: 'v1.13.9' }))
        expect(parsed.ok && readInstaller(parsed.image)).toEqual({ form: 'factory', factory: f, platform: p, secureBoot, schematic: s })
      }),
    )
  })
})

describe('what an installer image names', () => {
  const read = (text: string) => {
    const parsed = parseImage(text)
    return parsed.ok ? readInstaller(parsed.image) : parsed
  }
  it('the older form of the factory, for bare metal', () => {
    expect(read(`factory.talos.dev/installer/${S1}:v1.9.0`)).toEqual({
      form: 'factory',
      factory: 'factory.talos.dev',
      platform: 'metal',
      secureBoot: false,
      schematic: S1,
    })
    expect(read(`factory.talos.dev/installer-secureboot/${S1}:v1.9.0`)).toMatchObject({ secureBoot: true, platform: 'metal' })
  })
  it('the bare installer, also from a mirror', () => {
    expect(read('ghcr.io/siderolabs/installer:v1.12.0')).toEqual({ form: 'classic' })
    expect(read('registry.local:5000/ghcr/siderolabs/installer:v1.12.0')).toEqual({ form: 'classic' })
  })
  it('nothing, where it is made otherwise', () => expect(read('registry.local/mine/talos:v1.12.0')).toEqual({ form: 'custom' }))
})

describe('schematic ids', () => {
  it.each([
    ['too short', 'abc'],
    ['with capital letters', 'A'.repeat(64)],
    ['no hexadecimal digits', 'z'.repeat(64)],
  ])('are not %s', (_, id) => expect(isSchematicId(id)).toBe(false))
  it('are 64 lower-case hexadecimal digits', () => expect(isSchematicId(EMPTY_SCHEMATIC)).toBe(true))
  it('holds the empty one for none (home-operations/tuppr#576)', () => {
    expect(sameSchematic('', EMPTY_SCHEMATIC)).toBe(true)
    expect(sameSchematic(S1, EMPTY_SCHEMATIC)).toBe(false)
    expect(sameSchematic(S1, S1)).toBe(true)
  })
})
