import { describe, expect, test } from 'vitest'
import { diffConfigs } from './diff-configs.ts'

const KEY = 'LS0tLS1CRUdJTiBFRDI1NTE5IFBSSVZBVEUgS0VZLS0tLS0KTUM0Q0FRQXdCUVk='
const CERTIFICATE = 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJQakNCOGE='

const CONFIG = `# the token was hunter2-hunter2
version: v1alpha1
machine:
    type: worker
    token: abcdef.0123456789abcdef
    ca:
        crt: ${CERTIFICATE}
        key: ${KEY}
    certSANs:
        - a.example
        - b.example
    kubelet:
        image: one
    sysctls:
        a: "1"
`

test('what is said otherwise, in the form of diff -u, with what it belongs to', () => {
  const after = CONFIG.replace('image: one', 'image: two').replace('- b.example', '- b.example\n        - c.example')
  expect(diffConfigs(CONFIG, after)).toBe(`--- the main document
+++ the main document
@@ -8,7 +8,8 @@ machine.certSANs
     certSANs:
         - a.example
         - b.example
+        - c.example
     kubelet:
-        image: one
+        image: two
     sysctls:
         a: "1"
`)
})

test('nothing where both say the same, however it is written', () => {
  expect(diffConfigs(CONFIG, CONFIG)).toBe('')
  expect(diffConfigs(CONFIG, CONFIG.replace('# the token was hunter2-hunter2\n', '').replaceAll('    ', '  '))).toBe('')
})

test('documents that come and go', () => {
  const link = (name: string): string => `---\napiVersion: v1alpha1\nkind: LinkConfig\nname: ${name}\n`
  expect(diffConfigs(CONFIG + link('a'), CONFIG + link('b'))).toBe(
    ['a', 'b']
      .map(name => [`LinkConfig ${name}`, name === 'a' ? '-' : '+', name] as const)
      .map(([title, sign, name]) =>
        [
          `--- ${sign === '-' ? title : '/dev/null'}`,
          `+++ ${sign === '+' ? title : '/dev/null'}`,
          `@@ ${sign === '-' ? '-1,3 +0,0' : '-0,0 +1,3'} @@`,
          `${sign}apiVersion: v1alpha1`,
          `${sign}kind: LinkConfig`,
          `${sign}name: ${name}`,
          '',
        ].join('\n'),
      )
      .join(''),
  )
})

test('what is no YAML says nothing', () => {
  expect(diffConfigs('machine: [', CONFIG)).toMatch(/^--- \/dev\/null\n\+\+\+ the main document\n/)
  expect(diffConfigs('machine: [', 'machine: ]')).toBe('')
})

describe('secrets', () => {
  const before = `machine:
    token: aaaaaa.0123456789abcdef
    ca: {crt: ${CERTIFICATE}, key: ${KEY}}
    env: {HTTPS_PROXY: "http://me:proxy-password@proxy.example"}
    files: [{path: /etc/one, content: "content-of-one"}]
    registries:
        config:
            a.example: {auth: {username: me, password: registry-password}}
        mirrors:
            b.example: {endpoints: ["https://user:mirror-password@b.example"]}
    network:
        interfaces: [{interface: wg0, wireguard: {privateKey: wireguard-key}}]
    systemDiskEncryption: {state: {keys: [{slot: 0, static: {passphrase: disk-passphrase}}]}}
    pods: [{spec: {containers: [{name: a, env: [{name: A, value: pod-secret}]}]}}]
cluster:
    secret: cluster-secret
    secretboxEncryptionSecret: secretbox-secret
    apiServer: {extraArgs: {oidc-client-secret: oidc-secret}}
    inlineManifests: [{name: a, contents: manifest-secret}]
---
apiVersion: v1alpha1
kind: RegistryAuthConfig
name: c.example
password: document-password
---
apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: tailscale
environment: [TS_AUTHKEY=extension-key]
---
apiVersion: v1alpha1
kind: SideroLinkConfig
apiUrl: https://omni.example/?jointoken=join-token
---
apiVersion: v1alpha1
kind: KubeAggregatorCAConfig
issuingCA: {cert: c, key: document-key}
`
  const SECRET = /[a-z]+-(?:password|of-one|key|passphrase|secret|token)(?![\w-]*:)/g
  const bare = before.match(SECRET)!
  // Each line changes, so that each is shown.
  const shown =
    diffConfigs(before, '')! +
    diffConfigs('', before)! +
    diffConfigs(
      before,
      before.replaceAll(SECRET, found => `${found}2`),
    )!

  test('none of them is shown, neither of the old nor of the new', () => {
    expect(bare).toHaveLength(15)
    for (const secret of [...bare, '0123456789abcdef', KEY]) expect(shown, secret).not.toContain(secret)
  })

  test('what is none is shown: certificates, names, paths, users', () => {
    for (const open of [CERTIFICATE, 'a.example', '/etc/one', 'username: me', '@b.example', 'name: tailscale'])
      expect(shown).toContain(open)
  })

  test('that one changed is seen, and that another is the same', () => {
    const after = before.replace('cluster-secret', 'other-secret').replace('registry-password', 'other-secret')
    expect(diffConfigs(before, after)!.match(/^[-+] .*$/gm)).toEqual([
      '-                    password: (secret 5)',
      '+                    password: (secret 16)',
      '-    secret: (secret 9)',
      '+    secret: (secret 16)',
    ])
  })

  test('one that stands elsewhere, too, is hidden there', () => {
    const label = 'machine:\n    token: abcdef.0123456789abcdef\n    nodeLabels: {a: "x-abcdef.0123456789abcdef"}\n'
    expect(diffConfigs('', label)).toContain('a: "x-(secret 1)"')
  })

  test('remarks are not shown', () => {
    expect(diffConfigs('', CONFIG)).not.toContain('hunter2')
  })
})
