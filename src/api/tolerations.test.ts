import { describe, expect, it } from 'vitest'
import { tolerates, toleratesCordon } from './tolerations.ts'

const CORDON = 'node.kubernetes.io/unschedulable'

describe('a cordon is tolerated', () => {
  it.each([
    ['by who tolerates everything', [{ operator: 'Exists' }], true],
    ['by name', [{ key: CORDON, operator: 'Exists', effect: 'NoSchedule' }], true],
    ['by name, whatever the effect', [{ key: CORDON, operator: 'Exists' }], true],
    ['by name, in the other way of writing', [{ key: CORDON, effect: 'NoSchedule' }], true],
    ['not by a value that it has not', [{ key: CORDON, operator: 'Equal', value: 'true' }], false],
    ['not by who only stays where it is', [{ operator: 'Exists', effect: 'NoExecute' }], false],
    ['not by the key of another', [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }], false],
    [
      'by one of several',
      [
        { key: 'a', value: 'b' },
        { operator: 'Exists', effect: 'NoSchedule' },
      ],
      true,
    ],
    ['not by who compares numbers', [{ key: CORDON, operator: 'Gt', value: '1' }], false],
    ['not without any', undefined, false],
    ['not by what is none', [null, 'Exists'], false],
  ])('%s', (_, tolerations, expected) => expect(toleratesCordon(tolerations)).toBe(expected))
})

it('a value has to be that of the taint', () => {
  const taint = { key: 'room', value: 'blue', effect: 'NoSchedule' }
  expect([tolerates([{ key: 'room', value: 'blue' }], taint), tolerates([{ key: 'room', value: 'red' }], taint)]).toEqual([true, false])
})
