// Whatever comes, patching answers: with a result that can be read, or with faults.
import fc from 'fast-check'
import { stringify } from 'yaml'
import { expect, test } from 'vitest'
import { diffConfigs } from './diff-configs.ts'
import { readText } from './documents.ts'
import { patchConfig } from './patch-config.ts'

const KEYS = [
  'machine',
  'cluster',
  'network',
  'interfaces',
  'interface',
  'vlans',
  'kubelet',
  'extraArgs',
  'apiServer',
  'auditPolicy',
  'admissionControl',
]
  .concat(
    'kind',
    'apiVersion',
    'name',
    '$patch',
    'certSANs',
    'registries',
    'mirrors',
    'endpoint',
    'controlPlane',
    'files',
    'provisioning',
    'maxSize',
    'rules',
  )
  .concat('op', 'path', 'from', 'value')
const WORDS = [
  '',
  'no',
  '0644',
  '0',
  'delete',
  'v1alpha1',
  'LinkConfig',
  'VolumeConfig',
  'NoSuchConfig',
  'a',
  'add',
  'move',
  '/machine/certSANs/-',
  '/',
  '//',
  '50%',
]
const SIGNS = ['a', '0', ' ', '\n', '\t', ':', '-', '[', ']', '{', '}', '&', '*', '?', '|', '>', "'", '"', '#', '%', '!']
const value = fc.letrec(tie => ({
  any: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.constantFrom(...WORDS, 0, 1.5, true, null),
    fc.dictionary(fc.constantFrom(...KEYS), tie('any'), { maxKeys: 6 }),
    fc.array(tie('any'), { maxLength: 3 }),
  ),
})).any
const yaml = fc.array(value, { minLength: 1, maxLength: 3 }).map(documents => documents.map(document => stringify(document)).join('---\n'))
const anything = fc.oneof(yaml, fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...SIGNS) }))

const answers = (config: string, patches: readonly string[]): void => {
  const result = patchConfig(
    config,
    patches.map(text => ({ name: 'p', text })),
    'v1.13.9',
  )
  if (!result.ok) expect(result.faults.length).toBeGreaterThan(0)
  else {
    expect(readText(result.text).ok).toBe(true)
    if (!result.changed) expect(result.text).toBe(config)
    expect(diffConfigs(config, result.text)).toBeTypeOf('string')
  }
}

test('any configuration, any patches', { timeout: 120_000 }, () => {
  fc.assert(
    fc.property(anything, fc.array(anything, { minLength: 1, maxLength: 2 }), (config, patches) => answers(config, patches)),
    { numRuns: 2000 },
  )
})

test.each([
  ['an alias of itself', 'machine: &a\n  sysctls: *a\n'],
  ['an alias of nothing', 'machine: *a\n'],
  [
    'aliases that grow',
    `a: &a [x, x, x, x, x, x, x, x, x]\n${'bcdefg'.replaceAll(/./g, (key, at: number) => `${key}: &${key} [${`*${'abcdef'[at]}, `.repeat(9)}]\n`)}`,
  ],
  ['deep nesting', '['.repeat(100_000)],
  ['a directive', '%YAML 1.1\n---\nmachine: {sysctls: {a: no}}\n'],
  ['a merge of a scalar', 'machine:\n  <<: no\n'],
  ['keys that are mappings', '? {a: b}\n: c\n'],
  ['tags', 'machine: !!set {a, b}\ncluster: !x y\n'],
])('%s', (_, text) => {
  answers(text, ['machine: {sysctls: {a: "1"}}'])
  answers('machine: {}', [text])
})
