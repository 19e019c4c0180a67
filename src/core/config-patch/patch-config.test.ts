import { describe, expect, test } from 'vitest'
import { noteText } from './note.ts'
import { checkPatches, patchConfig } from './patch-config.ts'

const CONFIG = `# Of the first machine.
version: v1alpha1
machine:
    type: worker # a role
    token: abcdef.0123456789abcdef
    certSANs: []
    # Which image runs.
    kubelet:
        image: ghcr.io/siderolabs/kubelet:v1.33.0 # pinned
        extraArgs: {feature: no}
    network:
        interfaces:
            - interface: eth0 # the first
              addresses:
                - 10.0.0.5/24
    files:
        - content: |
            one
              two
          permissions: 0o644
          path: /etc/one
          op: create
cluster:
    controlPlane:
        endpoint: https://10.0.0.1:6443
    network:
        podSubnets:
            - 10.244.0.0/16
`
const HOSTNAME = `apiVersion: v1alpha1
kind: HostnameConfig
auto:   stable   # kept as it is written
`

const named = (...patches: string[]) => patches.map((text, index) => ({ name: `patch ${index + 1}`, text }))
const patched = (config: string, ...patches: string[]): string => {
  const result = patchConfig(config, named(...patches), 'v1.13.9')
  if (!result.ok) throw new Error(result.faults.map(noteText).join('\n'))
  return result.text
}
const faults = (config: string, ...patches: string[]): readonly string[] => {
  const result = patchConfig(config, named(...patches), 'v1.13.9')
  return result.ok ? [] : result.faults.map(noteText)
}
const warnings = (config: string, ...patches: string[]): readonly string[] => {
  const result = patchConfig(config, named(...patches), 'v1.13.9')
  if (!result.ok) throw new Error(result.faults.map(noteText).join('\n'))
  return result.warnings.map(noteText)
}
/** The lines that are in one text alone. */
const difference = (before: string, after: string): readonly string[] => {
  const [was, is] = [before.split('\n'), after.split('\n')]
  return [
    ...was.filter(line => !is.includes(line)).map(line => `-${line}`),
    ...is.filter(line => !was.includes(line)).map(line => `+${line}`),
  ]
}

describe('the text', () => {
  test('but for what is patched, no byte changes: remarks, quotes, numbers stay as they were written', () => {
    const after = patched(CONFIG, 'machine:\n  kubelet:\n    image: other\n  nodeLabels:\n    on: "1"\n')
    expect(difference(CONFIG, after)).toEqual([
      '-        image: ghcr.io/siderolabs/kubelet:v1.33.0 # pinned',
      '+        image: other # pinned',
      '+    nodeLabels:',
      '+        on: "1"',
    ])
  })

  test('a patch that changes nothing leaves the very text', () => {
    const same = 'machine:\n  kubelet:\n    image: "ghcr.io/siderolabs/kubelet:v1.33.0"\n'
    expect(patchConfig(CONFIG, named(same), 'v1.13.9')).toMatchObject({ ok: true, text: CONFIG, changed: false })
  })

  test('documents that are not patched stay byte for byte; a new one comes last', () => {
    const config = `---\n${HOSTNAME}---\n${CONFIG}`
    const after = patched(config, 'machine:\n  certSANs: [a.example]\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\nmtu: 9000\n')
    expect(after.startsWith(`---\n${HOSTNAME}---\n# Of the first machine.\n`)).toBe(true)
    expect(after).toContain('    certSANs:\n        - a.example\n')
    expect(after.endsWith('---\napiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\nmtu: 9000\n')).toBe(true)
  })

  test('the same patch of the same text gives the same text', () => {
    const patch = 'machine:\n  sysctls: {b: "1", a: "2"}\n'
    expect(patched(CONFIG, patch)).toBe(patched(CONFIG, patch))
  })

  test('two spaces, and lists that are not indented, stay so', () => {
    const config = 'machine:\n  certSANs:\n  - a\n  sysctls: { a: "1" }\n'
    expect(patched(config, 'machine:\n  certSANs: [b]\n')).toBe('machine:\n  certSANs:\n  - a\n  - b\n  sysctls: { a: "1" }\n')
  })

  test('aliases are followed where the document changes', () => {
    const config = 'machine:\n    sysctls: &a\n        x: 010\n    sysfs: *a\n'
    expect(patched(config, 'machine:\n  sysfs: {z: "1"}\n')).toBe(
      'machine:\n    sysctls:\n        x: 010\n    sysfs:\n        x: 010\n        z: "1"\n',
    )
  })

  test('values of a JSON patch are written so that nobody reads them otherwise', () => {
    const patch = '[{"op":"add","path":"/machine/sysctls","value":{"a":"0644","b":"no","c":"1","d":"plain","e":""}}]'
    expect(patched(CONFIG, patch)).toContain(
      '    sysctls:\n        a: "0644"\n        b: "no"\n        c: "1"\n        d: plain\n        e: ""\n',
    )
  })
})

describe('a patch that is wrong says where and what would be right', () => {
  test.each([
    [
      'an unknown field, with the nearest',
      'machine:\n  kubelet:\n    extraArg: {}\n',
      'patch 1, line 3, the main document, machine.kubelet.extraArg: there is no such field; the nearest is extraArgs',
    ],
    [
      'a field in an item of a list',
      'machine:\n  network:\n    interfaces:\n      - interface: eth0\n        adresses: []\n',
      'patch 1, line 5, the main document, machine.network.interfaces[0].adresses: there is no such field; the nearest is addresses',
    ],
    [
      'a field to delete',
      'machine:\n  kubelet:\n    imag:\n      $patch: delete\n',
      'patch 1, line 3, the main document, machine.kubelet.imag: there is no field imag; the nearest is image',
    ],
    [
      'an unknown kind, with the nearest',
      'apiVersion: v1alpha1\nkind: HostnamConfig\n',
      'patch 1, line 2, HostnamConfig: Talos knows no documents of kind HostnamConfig; the nearest is HostnameConfig',
    ],
    [
      'a kind that the Talos of the machine does not know',
      'apiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: false\n',
      'patch 1, line 2, KubeProxyConfig: documents of kind KubeProxyConfig are known from Talos 1.14 on, and the machine runs v1.13.9; upgrade Talos first',
    ],
    ['no YAML', 'machine:\n  kubelet:\n\t\timage: x\n', 'patch 1, line 3: a tab stands where spaces have to'],
    ['a bracket', 'machine: {', 'patch 1, line 1: a { or a [ is not closed, or what is in it is not indented'],
    [
      'a colon',
      'machine:\n  token: a: b\n',
      'patch 1, line 2: a value has a colon that needs quotes around it, or lines below it that are indented further',
    ],
    [
      'no colon',
      'machine:\n  sysctls:\n    a:b\n    c: d\n',
      'patch 1, line 3: a key has no colon and space behind it, or a line is not indented as those around it',
    ],
    ['a sign', 'machine:\n  token: @a\n', 'patch 1, line 2: a value begins with a character that needs quotes around it'],
    [
      'a manifest',
      'apiVersion: v1\nkind: Secret\n',
      'patch 1, line 2, Secret: Talos knows no documents of kind Secret; those of Talos have the apiVersion v1alpha1; an object of Kubernetes is for kubectl apply',
    ],
    ['a key twice', 'machine:\n  token: secret-one\n  token: secret-two\n', 'patch 1, line 3: a key stands twice in one mapping'],
    [
      'a mapping where a list belongs',
      'machine:\n  certSANs:\n    a: b\n',
      'patch 1, line 2, the main document, machine.certSANs: Talos wants a list here',
    ],
    [
      'a text where a number belongs',
      'machine:\n  network:\n    interfaces: [{interface: eth0, mtu: big}]\n',
      'patch 1, line 3, the main document, machine.network.interfaces[0].mtu: Talos wants a number here',
    ],
    [
      'a $patch that there is not',
      'machine:\n  kubelet:\n    $patch: replace\n',
      'patch 1, line 3, the main document, machine.kubelet: Talos knows no such $patch; only `$patch: delete`',
    ],
    [
      'a document without the name it needs',
      'apiVersion: v1alpha1\nkind: LinkConfig\nmtu: 1\n',
      'patch 1, line 1, LinkConfig, name: documents of this kind are told apart by a name, and it has none',
    ],
    [
      'an operation that there is not',
      '[{"op": "ad", "path": "/machine/certSANs"}]',
      'patch 1, line 1, [0]: this is no operation of a JSON patch; its op is one of add, remove, replace, move, copy, test',
    ],
    [
      'a path that is none',
      '- op: remove\n  path: machine.certSANs\n',
      'patch 1, line 1, [0]: its path is no JSON pointer; write it as /machine/kubelet/image',
    ],
    [
      'a field that an operation makes',
      '- op: add\n  path: /machine/kubelet/imag\n  value: x\n',
      'patch 1, line 1, machine.kubelet.imag: there is no such field; the nearest is image',
    ],
    ['nothing at all', '# nothing\n', 'patch 1: it says nothing; give a strategic merge patch, or a JSON patch'],
  ])('%s', (_, patch, wanted) => {
    expect(faults(CONFIG, patch)).toEqual([wanted])
  })

  test('every fault at once, of all patches', () => {
    expect(faults(CONFIG, 'machine:\n  a: 1\ncluster:\n  b: 2\n', 'machine:\n  c: 3\n')).toHaveLength(3)
  })

  test.each([
    [
      'a document',
      'apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n$patch: delete\n',
      'patch 1, line 1, LinkConfig eth0: the machine does not have LinkConfig eth0 to delete from; leave the deletion out for this machine',
    ],
    [
      'an item of a list',
      'machine:\n  network:\n    interfaces:\n      - interface: eth7\n        $patch: delete\n',
      'patch 1, line 4, the main document, machine.network.interfaces[0]: there is nothing to delete; leave the deletion out for this machine',
    ],
    [
      'below what is not there',
      'machine:\n  time:\n    servers:\n      $patch: delete\n',
      'patch 1, line 3, the main document, machine.time.servers: there is nothing to delete; leave the deletion out for this machine',
    ],
    [
      'by an operation',
      '- op: remove\n  path: /machine/sysctls\n',
      'patch 1, line 1, [0]: there is nothing at /machine/sysctls; a JSON patch makes no way to its place: add what is around it first, or use a strategic merge patch',
    ],
    [
      'by a test',
      '- op: test\n  path: /machine/kubelet/image\n  value: x\n',
      'patch 1, line 1, [0]: the test of /machine/kubelet/image fails; the machine has another value there',
    ],
  ])('what matches nothing: %s', (_, patch, wanted) => {
    expect(faults(CONFIG, patch)).toEqual([wanted])
  })

  test('a field that is there for Talos, but says nothing, is deleted with a warning', () => {
    expect(warnings(CONFIG, 'machine:\n  sysctls:\n    $patch: delete\n')).toEqual([
      'patch 1, line 2, the main document, machine.sysctls: there is nothing to delete',
    ])
  })

  test('JSON patches are for configurations of one document', () => {
    expect(faults(`${CONFIG}---\n${HOSTNAME}`, '[{"op":"remove","path":"/machine/certSANs"}]')).toEqual([
      'patch 1: Talos applies a JSON patch only where the configuration is one document, and this one has several; write it as a strategic merge patch',
    ])
  })

  test('what Talos cannot merge', () => {
    const rule = (inner: string): string => `apiVersion: v1alpha1\nkind: RoutingRuleConfig\nname: "1000"\n${inner}`
    expect(faults(CONFIG, rule('src: 10.0.0.0/8\n'), rule('src: 10.1.0.0/16\n'))[0]).toContain(
      'patch 2, RoutingRuleConfig 1000, dst: Talos cannot merge',
    )
  })

  test('a configuration that cannot be read is named as such, and not quoted', () => {
    expect(faults('machine:\n  token: "very-secret\n', 'debug: true\n')).toEqual([
      expect.stringMatching(/^line \d+, the configuration of the machine: a quote is not closed/),
    ])
  })

  test('what a newer Talos may know is only a warning there', () => {
    const result = patchConfig(CONFIG, named('machine:\n  kubelet:\n    newField: 1\n'), 'v1.14.0')
    expect(result).toMatchObject({ ok: true, warnings: [{ code: 'unknownField', path: 'machine.kubelet.newField', line: 3 }] })
    expect(patchConfig(CONFIG, named('apiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: false\n'), 'v1.14.0')).toMatchObject({
      ok: true,
      changed: true,
    })
  })
})

describe('fields of a newer Talos, of which the types are not known here', () => {
  const on14 = (config: string, ...patches: string[]) => patchConfig(config, named(...patches), 'v1.14.0')
  const kubelet = (inner: string) => `machine:\n  kubelet:\n    ${inner}\n`
  const HAS = CONFIG.replace('        extraArgs:', '        newField: [one] # kept\n        extraArgs:')

  test.each<[string, string, RegExp]>([
    ['one value', kubelet('newField: 1'), /^ {8}newField: 1$/m],
    ['more in one', kubelet('newField: {a: [b]}'), /^ {8}newField: \{a: \[b\]\}$/m],
    ['at the top', 'newPart:\n  some: thing\n', /^newPart:\n {4}some: thing$/m],
    ['in an entry of a list', 'machine: {network: {interfaces: [{interface: eth0, newField: x}]}}\n', /^ {14}newField: x$/m],
  ])('are added where there are none: %s', (_, patch, expected) => {
    const result = on14(CONFIG, patch)
    expect(result).toMatchObject({ ok: true, changed: true, warnings: [{ code: 'unknownField' }] })
    expect(result.ok ? result.text : '').toMatch(expected)
    expect(result.ok && on14(result.text, patch)).toMatchObject({ ok: true, changed: false })
  })

  test('are not merged', () => {
    expect(on14(HAS, kubelet('newField: [two]'))).toMatchObject({
      ok: false,
      faults: [{ code: 'cannotMerge', line: 3, path: 'machine.kubelet.newField' }],
    })
    expect(on14(HAS, kubelet('newField: [one]'))).toMatchObject({ ok: true, changed: false })
    expect(on14(HAS, kubelet('newField: ~'))).toMatchObject({ ok: true, changed: false })
  })

  test('are replaced, and stay as they are beside what is patched', () => {
    const replaced = on14(HAS, kubelet('newField: {$patch: delete}'), kubelet('newField: [two]'))
    expect(replaced.ok ? replaced.text : replaced.faults).toMatch(/^ {8}newField: \[two\]$/m)
    const beside = on14(HAS, kubelet('image: other'))
    expect(beside.ok ? beside.text : '').toContain('        newField: [one] # kept\n')
  })
})

describe('documents of which the types are not known here', () => {
  const PROXY = 'apiVersion: v1alpha1\nkind: KubeProxyConfig\nimage:   one # kept\nextraArgs:\n    a: b\n'
  const on14 = (patch: string) => patchConfig(`${CONFIG}---\n${PROXY}`, named(patch), 'v1.14.0')

  test('stay as they are beside what is patched', () => {
    const result = on14('machine:\n  sysctls: {a: "1"}\n')
    expect(result.ok && result.text.endsWith(`---\n${PROXY}`)).toBe(true)
  })

  test('are deleted, and things in them', () => {
    expect(on14('apiVersion: v1alpha1\nkind: KubeProxyConfig\n$patch: delete\n')).toMatchObject({
      ok: true,
      text: expect.not.stringContaining('KubeProxyConfig') as string,
    })
  })

  test('are not merged', () => {
    expect(on14('apiVersion: v1alpha1\nkind: KubeProxyConfig\nimage: two\n')).toMatchObject({
      ok: false,
      faults: [{ code: 'cannotMerge', line: 1, document: 'KubeProxyConfig' }],
    })
  })

  test('are replaced', () => {
    const kind = 'apiVersion: v1alpha1\nkind: KubeProxyConfig\n'
    expect(on14(`${kind}$patch: delete\n---\n${kind}image: two\n`)).toMatchObject({
      ok: true,
      text: expect.stringContaining(`---\n${kind}image: two\n`) as string,
    })
  })
})

describe('what may surprise is a warning', () => {
  test.each([
    ['no, for a text', 'machine:\n  sysctls: {a: no}\n', 'machine.sysctls.a: no without quotes is a text to Talos'],
    ['no, for a boolean', 'debug: no\n', 'debug: no without quotes is false to Talos; write false'],
    [
      '0644, for a number',
      'machine:\n  files: [{path: /a, permissions: 0644}]\n',
      'machine.files[0].permissions: a number with a leading zero is octal to Talos; write 0o instead of the zero where that is meant, or quotes around a text',
    ],
    [
      '0644, for a text',
      'machine:\n  sysctls: {a: 0644}\n',
      'machine.sysctls.a: a number with a leading zero is a text to Talos; write quotes around it',
    ],
    [
      '0644, in an embedded object',
      'machine:\n  pods: [{spec: {mode: 0644}}]\n',
      'machine.pods[0].spec.mode: a number with a leading zero is octal to Talos; write 0o instead of the zero where that is meant, or quotes around a text',
    ],
    [
      '0644, in an operation',
      '- op: add\n  path: /machine/sysctls\n  value: {a: 0644}\n',
      '/machine/sysctls: a number with a leading zero is octal to Talos; write 0o instead of the zero where that is meant, or quotes around a text',
    ],
    [
      'an entry once more',
      'machine:\n  network:\n    interfaces: [{interface: eth0, addresses: [10.0.0.6/24, 10.0.0.5/24]}]\n',
      'line 3, the main document, machine.network.interfaces[0].addresses[1]: the list has this entry already, and gets it once more; leave it out',
    ],
    [
      'an entry once more, by an operation',
      '- op: add\n  path: /machine/network/interfaces/0/addresses/-\n  value: 10.0.0.5/24\n',
      'patch 1, line 1, [0]: the list has this entry already, and gets it once more',
    ],
    [
      'a zero',
      'machine:\n  kubelet: {image: ""}\n',
      'machine.kubelet.image: Talos does not merge this value, which is its zero, over one that is there',
    ],
    [
      'an operation that replaces nothing',
      '- op: replace\n  path: /machine/sysctls\n  value: {}\n',
      'there is nothing at /machine/sysctls; Talos adds it',
    ],
  ])('%s', (_, patch, wanted) => {
    expect(warnings(CONFIG, patch)).toEqual([expect.stringContaining(wanted)])
  })

  test('a volume loses what a patch of it does not name', () => {
    const volume = (inner: string): string => `apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n${inner}`
    const config = patched(CONFIG, volume('  diskSelector:\n    match: disk.size > 1u\n  minSize: 1GiB\n  maxSize: 2GiB\n'))
    expect(warnings(config, volume('  maxSize: 3GiB\n'))).toEqual([
      expect.stringContaining('provisioning.diskSelector.match: it is there and the patch does not name it, but Talos drops it'),
      expect.stringContaining('provisioning.minSize: it is there and the patch does not name it'),
    ])
  })
})

describe('no patch reaches what binds a machine to its cluster', () => {
  const CA = 'certificate authorities are changed by rotating them'
  const KEY = 'keys of the cluster are changed by rotating them'
  test.each([
    ['a strategic merge', 'cluster:\n  ca:\n    crt: QQ==\n    key: QQ==\n', 'cluster.ca', CA],
    ['one deeper', 'machine:\n  ca:\n    key: QQ==\n', 'machine.ca', CA],
    ['a token', 'machine:\n  token: other\n', 'machine.token', 'it binds the machine to its cluster'],
    ['a deletion', 'cluster:\n  serviceAccount:\n    $patch: delete\n', 'cluster.serviceAccount', KEY],
    ['a deletion of what is around it', 'cluster:\n  etcd:\n    $patch: delete\n', 'cluster.etcd.ca', CA],
    ['a deletion of an item', 'cluster:\n  acceptedCAs:\n    - crt: QQ==\n      $patch: delete\n', 'cluster.acceptedCAs', CA],
    [
      'a JSON patch',
      '[{"op":"replace","path":"/cluster/secretboxEncryptionSecret","value":"x"}]',
      'cluster.secretboxEncryptionSecret',
      KEY,
    ],
    ['a JSON patch of what is within', '[{"op":"add","path":"/cluster/ca/key","value":"x"}]', 'cluster.ca', CA],
    [
      'a copy out of it',
      '[{"op":"copy","from":"/machine/token","path":"/machine/install/disk"}]',
      'machine.token',
      'it binds the machine to its cluster',
    ],
    ['a guess at it', '[{"op":"test","path":"/cluster/token","value":"x"}]', 'cluster.token', 'it binds the machine to its cluster'],
    ['the type of a machine', 'machine:\n  type: controlplane\n', 'machine.type', 'a machine becomes another type by a reset'],
  ])('%s', (_, patch, path, advice) => {
    expect(faults(CONFIG, patch)).toEqual([expect.stringContaining(`${path}: a patch may not touch this; ${advice}`)])
  })

  test('all of the cluster at once is each of its secrets', () => {
    expect(faults(CONFIG, '[{"op":"replace","path":"/cluster","value":{}}]').length).toBeGreaterThan(8)
    expect(faults(CONFIG, 'cluster:\n  $patch: delete\n').length).toBeGreaterThan(8)
  })

  test('the documents of Talos 1.14', () => {
    for (const kind of ['KubeAPIServerCAConfig', 'KubeServiceAccountConfig', 'KubeEtcdEncryptionConfig']) {
      const document = `apiVersion: v1alpha1\nkind: ${kind}\n`
      for (const patch of [`${document}acceptedCAs: []\n`, `${document}$patch: delete\n`])
        expect(patchConfig(CONFIG, named(patch), 'v1.14.0')).toMatchObject({ ok: false, faults: [{ code: 'forbidden' }] })
    }
  })

  test('without a machine, too', () => {
    expect(checkPatches(named('cluster:\n  token: x\n'), 'v1.13.9').faults).toMatchObject([{ code: 'forbidden', line: 2 }])
    expect(checkPatches(named('cluster:\n  clusterName: x\n'), 'v1.13.9')).toEqual({ faults: [], warnings: [] })
  })
})
