import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { readPlainYaml } from './plain-yaml.ts'

const kubeconfig = `apiVersion: v1
# of the cluster at home
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    server: https://10.0.0.1:6443
    insecure-skip-tls-verify: false
  name: home
contexts:
  - context:
      cluster: home
      namespace: "ichor-system"
      user: admin@home
    name: 'admin@home'
current-context: admin@home
kind: Config
preferences: {}
users:
- name: token
  user:
    token: 34362611ee6323725791e9d01a97c57b
- name: admin@home
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - get-token
      - oidc
      command: kubectl
      env: null-like
      interactiveMode: IfAvailable
`

it('reads a kubeconfig as a real parser does', () => {
  expect(readPlainYaml(kubeconfig)).toEqual(parse(kubeconfig))
  expect(readPlainYaml(JSON.stringify(parse(kubeconfig)))).toEqual(parse(kubeconfig))
})

it.each([
  ['a number', 'a: 1'],
  ['a number with an exponent', 'a: 12e3'],
  ['a word that is no text', 'a: null'],
  ['a block scalar', 'a: |\n  text\n'],
  ['a flow collection', 'a: [b]'],
  ['an anchor', 'a: &x b\nc: *x'],
  ['a comment behind a value', 'a: b # c'],
  ['a mapping in a value', 'a: b: c'],
  ['a tab', 'a:\n\tb: c'],
  ['an escape', 'a: "\\u0041"'],
  ['a value that goes on', 'a: b\n  c'],
  ['two documents', 'a: b\n---\nc: d'],
  ['the same key twice', 'a: b\na: c'],
  ['nothing', ''],
  ['broken JSON', '{"a": '],
])('leaves %s to a real parser', (_, text) => {
  expect(readPlainYaml(text)).toBeUndefined()
})

it('never answers other than a real parser', () => {
  const word = fc.oneof(
    fc.constantFrom(
      'a',
      'b:',
      'c: d',
      '- e',
      '- f: g',
      '  ',
      '    ',
      '{}',
      '"q"',
      "'r'",
      '#',
      'true',
      'No',
      'null',
      '~',
      '1e3',
      '12ee3',
      '1.5',
      '0o7',
      '0x1',
      'h-i',
      ':',
      '- ',
      '&',
      '*',
      'x: y z',
      '|',
      '>-',
      '!!str',
      '---',
      '\t',
      '@',
      '%',
      '2026-01-01',
    ),
    fc.string({ maxLength: 3 }),
  )
  const text = fc
    .array(fc.tuple(fc.constantFrom('', '  ', '    ', '- '), fc.array(word, { maxLength: 3 })), { maxLength: 6 })
    .map(lines => lines.map(([indent, words]) => indent + words.join(' ')).join('\n'))
  let read = 0
  fc.assert(
    fc.property(text, content => {
      const plain = readPlainYaml(content)
      if (plain === undefined) return
      read += 1
      expect(plain).toEqual(parse(content, { logLevel: 'silent' }))
    }),
    { numRuns: 20_000 },
  )
  expect(read).toBeGreaterThan(100)
})
