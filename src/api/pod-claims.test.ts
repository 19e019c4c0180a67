import { expect, it } from 'vitest'
import { claimsOf } from './pod-claims.ts'

it.each([
  ['named', [{ name: 'data', persistentVolumeClaim: { claimName: 'db' } }], ['db']],
  ['made for the pod', [{ name: 'scratch', ephemeral: { volumeClaimTemplate: {} } }], ['web-0-scratch']],
  [
    'of other sorts',
    [
      { name: 'a', emptyDir: {} },
      { name: 'b', configMap: { name: 'c' } },
    ],
    [],
  ],
  ['none', undefined, []],
  ['no volumes at all', [null, 'data', { persistentVolumeClaim: {} }], []],
])('claims of a pod: %s', (_, volumes, expected) => expect(claimsOf('web-0', volumes)).toEqual(expected))
