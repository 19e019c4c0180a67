import { describe, expect, it } from 'vitest'
import { talos } from './talos.ts'
import { away, facts, given, node, ok, type Given } from './test-view.ts'

describe('what a plan says of one machine', () => {
  it.each([
    ['a worker', {}, 'v1.13.5', 'ghcr.io/siderolabs/installer:v1.13.9', ['its pods, which are evicted first']],
    [
      'a control plane',
      { of: 'cp-1' },
      'v1.13.5',
      'ghcr.io/siderolabs/installer:v1.13.9',
      ['one of 3 API servers and etcd members, until it is back', 'its pods, which are evicted first'],
    ],
    [
      'one of two control planes',
      { of: 'cp-1', without: ['cp-3'] },
      'v1.13.5',
      'ghcr.io/siderolabs/installer:v1.13.9',
      ['the Kubernetes API and etcd, until it is back', 'its pods, which are evicted first'],
    ],
    [
      'a single node',
      {
        of: 'cp-1',
        without: ['cp-2', 'cp-3', 'wk-1', 'wk-2'],
        nodes: { 'cp-2': undefined, 'cp-3': undefined, 'wk-1': undefined, 'wk-2': undefined },
      },
      'v1.13.5',
      'ghcr.io/siderolabs/installer:v1.13.9',
      ['the Kubernetes API and etcd, until it is back', 'its pods, which are not drained: no other node could take them'],
    ],
    [
      'no drain',
      { spec: { drain: { policy: 'skip' } } },
      'v1.13.5',
      'ghcr.io/siderolabs/installer:v1.13.9',
      ['its pods, which are not drained'],
    ],
    ['no Node', { nodes: { 'wk-1': undefined } }, 'v1.13.5', 'ghcr.io/siderolabs/installer:v1.13.9', []],
    [
      'an image that cannot be built',
      { machine: ok(facts('wk-1', { extensions: ['x'] })), nodes: { 'wk-1': node('wk-1') } },
      'v1.13.5',
      'v1.13.9',
      ['its pods, which are evicted first'],
    ],
    ['silence', { machine: away() }, 'unknown', 'v1.13.9', []],
  ] as readonly (readonly [string, Given, string, string, readonly string[]])[])('%s', (_, over, from, to, loses) => {
    expect(talos.stages[0]?.preview(given(over))).toEqual({ from, to, loses })
  })
})
