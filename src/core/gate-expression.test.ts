import { describe, expect, it } from 'vitest'
import { askExpression, expressionProblem } from './gate-expression.ts'

const object = {
  apiVersion: 'example.com/v1',
  kind: 'StorageCluster',
  metadata: { name: 'main', labels: { tier: 'fast' } },
  spec: { replicas: 3, quota: 1.5 },
  status: {
    health: 'WARN',
    ready: 2,
    note: '',
    since: '2026-09-01T08:00:00Z',
    lag: '1h30m',
    pools: [{ disks: [{ size: 1, state: 'in' }] }],
    conditions: [{ type: 'Ready', status: 'True' }, { type: 'Progressing' }],
  },
}
const ask = (text: string) => askExpression(text, object)

describe('what an expression says of an object', () => {
  const yes = [
    'object.status.health == "WARN"',
    'self.status.health == "WARN"',
    'status.health == "WARN"',
    'object.status.health in ["OK", "WARN"]',
    'object.status.ready >= 2 && object.status.ready < object.spec.replicas',
    'object.status.ready + 1 == object.spec.replicas',
    'object.spec.replicas == 3.0 && object.spec.quota > 1',
    'object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")',
    'object.status.conditions.exists(c, c.status == "False" || c.type == "Progressing")',
    '!object.status.conditions.all(c, has(c.status) && c.status == "True")',
    'object.status.conditions.filter(c, has(c.status)).size() == 1',
    'object.status.conditions.map(c, c.type) == ["Ready", "Progressing"]',
    'object.status.conditions.exists_one(c, c.type == "Ready")',
    'object.metadata.labels.all(key, key == "tier")',
    '["Ready", "Progressing"].all(name, object.status.conditions.exists(c, c.type == name))',
    'object.status.pools.all(p, p.disks.filter(d, d.size > 0).exists(d, d.state == "in"))',
    '!has(object.status.error)',
    'has(object.status.error) && object.status.error == "x" || true',
    'timestamp(object.status.since) > timestamp("2026-08-31T00:00:00Z")',
    'timestamp(object.status.since) - timestamp("2026-09-01T07:00:00Z") == duration("1h")',
    'duration(object.status.lag) < duration("2h")',
    'object.status.health.matches("^(OK|WARN)$")',
    'object.status.health.lowerAscii() == "warn"',
  ]
  it.each(yes)('yes: %s', text => {
    expect(expressionProblem(text)).toBeUndefined()
    expect(ask(text)).toMatchObject({ is: 'yes' })
  })

  it('says what it looked at', () => {
    expect(ask('object.status.health == "OK"')).toEqual({ is: 'no', seen: 'WARN' })
    expect(ask('object.status.health == "OK" && object.status.ready == object.spec.replicas')).toEqual({
      is: 'no',
      seen: 'health WARN, ready 2, replicas 3',
    })
    expect(ask('object.status.note == "x"')).toEqual({ is: 'no', seen: 'empty' })
    expect(ask('object.status.conditions.all(c, has(c.status))')).toEqual({ is: 'no', seen: '' })
  })

  const errors: [string, string][] = [
    ['object.status.phase == "Ready"', 'it has no field phase'],
    ['object.state.health == "OK"', 'it has no field state'],
    ['object.status.health == "OK" || object.status.phase == "Ready"', 'it has no field phase'],
    ['object.status.conditions.all(c, c.status == "True")', 'it has no field status'],
    ['object.status.health > 5', "found no matching overload for '_>_' applied to '(string, int)'"],
    ['object.status.conditions[7].type == "x"', 'index 7 out of bounds'],
    ['timestamp(object.status.health) > timestamp("2026-08-31T00:00:00Z")', ''],
    ['object.constructor == "x"', 'it has no field constructor'],
    ['object.status.__proto__ == "x"', 'it has no field __proto__'],
  ]
  it.each(errors)('neither yes nor no: %s', (text, why) => {
    expect(ask(text)).toMatchObject({ is: 'error', why: expect.stringContaining(why) as string })
  })

  it.each([
    ['object.status.health', 'a text'],
    ['object.status.ready', 'a whole number'],
    ['object.status', 'an object or a list'],
  ])('something else: %s', (text, type) => {
    expect(ask(text)).toEqual({ is: 'other', type })
  })

  it.each([undefined, null, 'text', 5, [], { status: null }])('an object that is none is never a yes: %j', strange => {
    expect(askExpression('status.health == "OK"', strange)).toMatchObject({ is: 'error' })
    expect(askExpression('has(object.status.health)', strange)).not.toMatchObject({ is: 'yes' })
  })

  it('takes linear time for a pattern that is made to take for ever', () => {
    expect(askExpression('object.text.matches("^(a+)+$")', { text: `${'a'.repeat(50_000)}!` })).toMatchObject({ is: 'no' })
  })
})

describe('what is wrong with an expression, and where', () => {
  const wrong: [string, string][] = [
    ['', 'line 1, column 1: found end of input, which is not what belongs here'],
    ['object.status.health = "OK"', 'line 1, column 22: found = but expecting end of input'],
    ['object.status.health ==', 'line 1, column 22: found = but expecting end of input'],
    [
      'object.status.health == "OK" &&\n  objct.status.ready > 1',
      'line 2, column 3: there is no objct; the object is called object or self',
    ],
    ['oldObject.status.health == "OK"', 'line 1, column 1: there is no oldObject; the object is called object or self'],
    ['object.status.conditions.exists(c, d.type == "X")', 'line 1, column 36: there is no d; the object is called object or self'],
    ['object.status.since > now()', 'line 1, column 23: there is no function now'],
    ['quantity(object.status.size).isGreaterThan(quantity("1Gi"))', 'there is no function isGreaterThan'],
    ['object.status.ready + 1', 'it gives neither true nor false'],
    ['"OK"', 'line 1, column 1: it gives neither true nor false'],
    ['["OK"]', 'it gives neither true nor false'],
    ['object.l.all(a, object.l.exists(b, a == b))', 'a loop within a loop has to go over a part of its item'],
    ['object.l.all(a, a.l.all(b, b.l.all(c, c > 0)))', 'there are loops within loops, more than 2 deep'],
    ['('.repeat(1000), 'it is nested too deep'],
    ['google.protobuf.Timestamp{seconds: 1} == object', 'there is no type google.protobuf.Timestamp'],
  ]
  it.each(wrong)('%j', (text, what) => {
    expect(expressionProblem(text)).toContain(what)
    expect(ask(text)).not.toMatchObject({ is: 'yes' })
  })
})
