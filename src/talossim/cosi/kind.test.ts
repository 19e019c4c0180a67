import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { LabelQuerySchema, LabelTerm_Operation as Operation, ResourceSchema } from '../../../proto/gen/cosi/resource/state_pb.ts'
import { yamlOf } from './go-yaml.ts'
import { ipBytes } from './kind.ts'
import { selection } from './queries.ts'

test.each([
  ['10.5.0.2', [10, 5, 0, 2]],
  ['::1', [...Array<number>(15).fill(0), 1]],
  ['fd00:7a6b::ffff:1', [0xfd, 0, 0x7a, 0x6b, ...Array<number>(8).fill(0), 0xff, 0xff, 0, 1]],
  ['::ffff:10.5.0.2', [...Array<number>(10).fill(0), 0xff, 0xff, 10, 5, 0, 2]],
  ['1:2:3:4:5:6:7:8', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
])('the bytes of %s', (address, bytes) => {
  expect([...ipBytes(address)]).toEqual(bytes)
})

test.each([
  ['a: below', { a: { b: ['x'], empty: [], none: '' } }, 'a:\n    b:\n        - x\n    empty: []\n    none: ""\n'],
  ['a list', [{ a: 1, b: { c: ['d', { e: null }] } }, 'f'], '- a: 1\n  b:\n    c:\n        - d\n        - e: null\n- f\n'],
  ['a text of lines', { a: [{ b: 'c\nd\n' }] }, 'a:\n    - b: |\n        c\n        d\n'],
  ['a word that is no text to YAML', { a: 'true', b: '1', c: 'd: e' }, 'a: "true"\nb: "1"\nc: "d: e"\n'],
  ['a scalar', 'worker', 'worker\n'],
])('YAML has its columns where Go has them: %s', (_, spec, text) => {
  expect(yamlOf(spec)).toBe(text)
})

test.each([
  [Operation.EXISTS, [], true],
  [Operation.EQUAL, ['10'], true],
  [Operation.EQUAL, ['9'], false],
  [Operation.IN, ['9', '10'], true],
  [Operation.LT, ['9'], true],
  [Operation.LT_NUMERIC, ['9'], false],
  [Operation.LTE, ['10'], true],
  [Operation.LTE_NUMERIC, ['10'], true],
  [Operation.NOT_EXISTS, [], false],
])('label operator %i of %j', (op, value, expected) => {
  const resource = create(ResourceSchema, { metadata: { labels: { size: '10' } } })
  for (const invert of [false, true]) {
    const selects = selection([create(LabelQuerySchema, { terms: [{ key: 'size', op, value, invert }] })], undefined)
    expect(selects.ok && selects.value(resource)).toBe(expected !== invert)
  }
})
