import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseTarget } from './target-version.ts'

describe('the target as a person writes it', () => {
  it.each(['v1.13.9', 'v1.14.0', 'v1.9.0', 'v1.37.10'])('takes the final version %s', text => {
    expect(parseTarget(text, 'v1.13.9')).toEqual({ ok: true, version: text })
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
    expect(parseTarget(text, 'v1.13.9')).toEqual({ ok: false, problem })
  })

  it('answers any text with its own spelling or one sentence', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        const answer = parseTarget(text, 'v1.13.9')
        if (answer.ok) expect(answer.version).toBe(text)
        else expect(answer.problem).toMatch(/[.?]$/)
      }),
    )
  })
})
