import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareVersions, finalOf, minorOf, minorSteps, parseTarget, parseVersion, versionSpan, type Version } from './versions.ts'

const v = (text: string): Version => {
  const version = parseVersion(text)
  if (version === undefined) throw new Error(`no version: ${text}`)
  return version
}

describe('the target as a person writes it', () => {
  it.each(['v1.13.9', 'v1.14.0', 'v1.9.0', 'v1.37.10'])('takes the final version %s', text => {
    expect(parseTarget(text)).toEqual({ ok: true, version: text })
  })

  it.each([
    ['without its leading v (siderolabs/talos#7697)', '1.13.9', '"1.13.9" lacks the leading v; did you mean v1.13.9?'],
    ['with a capital V', 'V1.13.9', '"V1.13.9" is not written as a version; did you mean v1.13.9?'],
    ['with two v', 'vv1.13.9', '"vv1.13.9" is not written as a version; did you mean v1.13.9?'],
    ['with a blank', ' v1.13.9', '" v1.13.9" is not written as a version; did you mean v1.13.9?'],
    [
      'with a comma',
      'v1,13.9',
      '"v1,13.9" is not a version (did you mean v1.13.9?); write it with a leading v and three numbers, like v1.13.9.',
    ],
    ['with a letter for a digit', 'v1.l3.9', '"v1.l3.9" is not a version; write it with a leading v and three numbers, like v1.13.9.'],
    [
      'without patch',
      'v1.13',
      '"v1.13" is not a version (the patch number is missing: v1.13.0?); write it with a leading v and three numbers, like v1.13.9.',
    ],
    [
      'with a leading zero',
      'v1.013.9',
      '"v1.013.9" is not a version (did you mean v1.13.9?); write it with a leading v and three numbers, like v1.13.9.',
    ],
    ['a word', 'latest', '"latest" is not a version; write it with a leading v and three numbers, like v1.13.9.'],
    ['empty', '', 'The target version is empty; write it like v1.13.9.'],
    ['a pre-release', 'v1.14.0-rc.1', '"v1.14.0-rc.1" is a pre-release; only final releases can be a target, like v1.14.0.'],
    ['a pre-release without v', '1.14.0-beta.0', '"1.14.0-beta.0" is a pre-release; only final releases can be a target, like v1.14.0.'],
    [
      'a development build',
      'v1.14.0-beta.1-84-gad8823176',
      '"v1.14.0-beta.1-84-gad8823176" is a development build; only final releases can be a target, like v1.14.0.',
    ],
    ['a dirty build', 'v1.13.9-dirty', '"v1.13.9-dirty" is a development build; only final releases can be a target, like v1.13.9.'],
    ['with build metadata', 'v1.33.4+k3s1', '"v1.33.4+k3s1" carries a suffix that no release has; did you mean v1.33.4?'],
  ])('refuses one %s', (_, text, problem) => {
    expect(parseTarget(text)).toEqual({ ok: false, problem })
  })

  it('answers any text with its own spelling or one sentence', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        const answer = parseTarget(text)
        if (answer.ok) expect(answer.version).toBe(text)
        else expect(answer.problem).toMatch(/[.?]$/)
      }),
    )
  })
})

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
