import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareVersions, finalOf, minorOf, minorSteps, parseVersion, versionSpan, type Version } from './versions.ts'

const v = (text: string): Version => {
  const version = parseVersion(text)
  if (version === undefined) throw new Error(`no version: ${text}`)
  return version
}

describe('what runs', () => {
  it('ignores a vendor tail when comparing (helm/helm#12053)', () => {
    expect(compareVersions(v('v1.33.4-acme-5f2c'), v('v1.33.4+acme.2'))).toBe(0)
    expect(compareVersions(v('v1.33.4-acme-5f2c'), v('1.33.4'))).toBe(0)
  })
  it('knows a true pre-release to be older than its release', () => {
    expect(compareVersions(v('v1.14.0-rc.1'), v('v1.14.0'))).toBeLessThan(0)
    expect(compareVersions(v('v1.14.0-rc.1'), v('v1.14.0-rc.10'))).toBeLessThan(0)
    expect(compareVersions(v('v1.14.0-rc.1'), v('v1.13.9'))).toBeGreaterThan(0)
  })
  it('sees a development build', () => {
    expect(v('v1.14.0-beta.1-84-gad8823176')).toMatchObject({ development: true, prerelease: 'beta.1' })
    expect(v('v1.13.9-3-gad8823176-dirty')).toMatchObject({ development: true, prerelease: '' })
  })
  it('compares numbers, not letters', () => expect(compareVersions(v('v1.9.6'), v('v1.10.0'))).toBeLessThan(0))
  it('counts minors', () => {
    expect(minorSteps(v('v1.12.5'), v('v1.13.9'))).toBe(1)
    expect(minorSteps(v('v1.13.9'), v('v1.12.5'))).toBe(-1)
    expect(minorSteps(v('v1.13.9'), v('v2.0.0'))).toBeUndefined()
    expect(minorOf(v('v1.13.9'))).toBe('1.13')
  })
  it('finds the lowest and the highest', () => {
    expect(versionSpan(['v1.13.10', 'v1.9.6', 'v1.13.9'])).toEqual({ lowest: 'v1.9.6', highest: 'v1.13.10' })
    expect(versionSpan(['unknown'])).toBeUndefined()
  })
  it('orders as its numbers do', () => {
    const number = fc.nat(40)
    fc.assert(
      fc.property(fc.tuple(number, number), fc.tuple(number, number), ([a, b], [c, d]) => {
        const sign = Math.sign(a - c || b - d)
        expect(compareVersions(v(`v1.${a}.${b}`), v(`v1.${c}.${d}`))).toBe(sign)
        expect(finalOf(v(`v1.${a}.${b}-x`))).toBe(`1.${a}.${b}`)
      }),
    )
  })
})
