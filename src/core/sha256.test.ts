import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { sha256 } from './sha256.ts'

it.each([
  ['nothing', ''],
  ['FIPS 180-4', 'abc'],
  ['one block but a little', 'a'.repeat(55)],
  ['where the length needs a block of its own', 'a'.repeat(56)],
  ['a block', 'a'.repeat(64)],
  ['letters of two, three and four bytes', 'äöü € 漢字 🙂'],
  ['half of a letter', 'a\ud83d\ud83d'.slice(0, 1)],
  ['a configuration', 'machine:\n    type: worker\n'.repeat(2000)],
])('says what Node says of %s', (_, text) => expect(sha256(text)).toBe(createHash('sha256').update(text).digest('hex')))
