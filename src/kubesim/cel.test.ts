import { describe, expect, test } from 'vitest'
import { compile } from './cel.ts'

const scope = { self: { kind: 'talos', talos: { n: 3 }, list: ['a', 'b'], flag: false, empty: '' }, oldSelf: { flag: true } }

describe('what rules say', () => {
  test.each([
    [`self.kind == 'talos'`, true],
    [`(self.kind == 'talos') == has(self.talos)`, true],
    [`has(self.reboot)`, false],
    [`!oldSelf.flag || self.flag`, false],
    [`has(self.x) == has(oldSelf.x) && (!has(self.x) || self.x == oldSelf.x)`, true],
    [`self.talos.n >= 3 && self.talos.n < 4`, true],
    [`'spec.' + self.kind`, 'spec.talos'],
    [`'a' in self.list ? 1 : 2`, 1],
    [`self.list.all(x, x.size() == 1)`, true],
    [`self.list.exists(x, x == 'c')`, false],
    [`size(self.list) == 2`, true],
    [`self.list == ['a', 'b']`, true],
    [`self.kind.matches(r'^t\\w+s$')`, true],
    [`type(self.talos.n) == int || self.matches('x')`, true],
    // What one side cannot say does not matter where the other side decides.
    [`self.nothing == 1 || self.kind == 'talos'`, true],
    [`self.kind == 'x' && self.nothing == 1`, false],
  ])('%s', (source, wanted) => {
    expect(compile(source).evaluate(scope)).toEqual(wanted)
  })
  test('an absent field is an error where it decides', () => {
    expect(() => compile('self.nothing == 1').evaluate(scope)).toThrow('no such key: nothing')
  })
  test('only rules that name oldSelf are transitions', () => {
    expect([compile('self == oldSelf').usesOld, compile(`self.kind == 'oldSelf'`).usesOld]).toEqual([true, false])
  })
  test.each(['self.kind.lowerAscii()', 'self.a ==', 'a b', 'self.x # 1'])('refuses what it cannot read: %s', source => {
    expect(() => compile(source)).toThrow('not a rule that can be read here')
  })
})
