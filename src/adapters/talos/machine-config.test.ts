import { describe, expect, test } from 'vitest'
import { defaultEtcdQuotaBytes, readConfigFacts, saysTheSame, withComponentImage, withInstallImage } from './machine-config.ts'

const image = 'factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.13.9'
const old = 'ghcr.io/siderolabs/installer:v1.13.5'

const whole = (line: string) => `# written by hand
version: v1alpha1   # trailing spaces stay  \n
machine:
    type: controlplane
    token: abc.def
    install:
        disk: /dev/sda # the small one
        ${line}
        wipe: false
cluster:
    apiServer:
        image: registry.k8s.io/kube-apiserver:v1.36.2
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp1
...
`

describe('only the image changes', () => {
  test.each([
    ['plain', `image: ${old} # why`, `image: ${image} # why`],
    ['double quotes', `image: "${old}"`, `image: "${image}"`],
    ['single quotes', `image:   '${old}'`, `image:   '${image}'`],
    ['empty', 'image:', `image: ${image}`],
    ['empty with a comment', 'image: # later', `image: ${image} # later`],
    ['empty text', 'image: ""', `image: "${image}"`],
  ])('%s', (_, before, after) => {
    expect(withInstallImage(whole(before), image)).toEqual({ ok: true, value: whole(after) })
  })

  test('none yet: it becomes the first of its section', () => {
    const text = 'machine:\n  install:\n    # the disk\n    disk: /dev/sda\n'
    expect(withInstallImage(text, image)).toEqual({
      ok: true,
      value: `machine:\n  install:\n    # the disk\n    image: ${image}\n    disk: /dev/sda\n`,
    })
  })

  test('in one line', () => {
    expect(withInstallImage('machine: {install: {disk: /dev/sda}}\n', image)).toEqual({
      ok: true,
      value: `machine: {install: {image: ${image}, disk: /dev/sda}}\n`,
    })
    expect(withInstallImage('machine:\n  install: {}\n', image)).toEqual({ ok: true, value: `machine:\n  install: {image: ${image}}\n` })
    expect(withInstallImage(`{"machine": {"install": {"image": "${old}"}}}`, image)).toEqual({
      ok: true,
      value: `{"machine": {"install": {"image": "${image}"}}}`,
    })
  })

  test('there already: the same text', () => {
    const text = whole(`image: ${image}`)
    expect(withInstallImage(text, image)).toEqual({ ok: true, value: text })
  })

  test('lines that end as on Windows', () => {
    const text = whole(`image: ${old}`).replaceAll('\n', '\r\n')
    expect(withInstallImage(text, image)).toEqual({ ok: true, value: text.replace(old, image) })
  })

  test.each([
    ['with an image', `installer:\n  image: ${old}\n`, `installer:\n  image: ${image}\n`],
    ['without one', `provisioning:\n  wipe: true\n`, `provisioning:\n  wipe: true\n`],
  ])("Talos 1.14's document %s", (what, before, after) => {
    const document = (body: string, first = '') =>
      `version: v1alpha1\nmachine:\n  type: worker\n---\n${first}apiVersion: v1alpha1\nkind: UnattendedInstallConfig\n${body}`
    const first = what === 'with an image' ? '' : `installer: {image: ${image}}\n`
    expect(withInstallImage(document(before), image)).toEqual({ ok: true, value: document(after, first) })
    expect(readConfigFacts(document(after, first))).toMatchObject({ ok: true, value: { installImage: image } })
  })
})

describe('the image of a component', () => {
  const wanted = 'registry.k8s.io/kube-apiserver:v1.36.3'
  const main = (section: string): string => `version: v1alpha1\nmachine:\n  type: controlplane\ncluster:\n${section}  clusterName: home\n`
  test.each([
    ['named', '  apiServer:\n    image: old\n    certSANs: []\n', `  apiServer:\n    image: ${wanted}\n    certSANs: []\n`],
    ['not named', '  apiServer:\n    certSANs: []\n', `  apiServer:\n    image: ${wanted}\n    certSANs: []\n`],
    ['in an empty section', '  apiServer: {}\n', `  apiServer: {image: ${wanted}}\n`],
    ['in a section that says nothing', '  apiServer: # later\n', `  apiServer: {image: ${wanted}} # later\n`],
    ['without a section', '', `  apiServer: {image: ${wanted}}\n`],
  ])('%s', (_, before, after) => {
    expect(withComponentImage(main(before), 'kube-apiserver', wanted)).toEqual({ ok: true, value: main(after) })
  })

  test("a document of its own, as Talos 1.14 has, goes before the other's section", () => {
    const text = (image: string) => `${main('')}---\napiVersion: v1alpha1\nkind: KubeletConfig\nimage: ${image}\n`
    expect(withComponentImage(text('old'), 'kubelet', 'ghcr.io/siderolabs/kubelet:v1.36.3')).toEqual({
      ok: true,
      value: text('ghcr.io/siderolabs/kubelet:v1.36.3'),
    })
  })

  test('a section that others use by its anchor stays', () => {
    const text = main('  apiServer: &a {image: old}\n  other: *a\n')
    expect(withComponentImage(text, 'kube-apiserver', wanted)).toMatchObject({ ok: false })
  })
})

describe('what is left alone', () => {
  test.each([
    ['no install section', 'version: v1alpha1\nmachine:\n  type: worker\n', /no machine\.install/],
    ['an anchor that others use', `machine:\n  install:\n    image: &i ${old}\n  other: *i\n`, /cannot be changed alone/],
    ['an alias', `a: &i ${old}\nmachine:\n  install:\n    image: *i\n`, /cannot be changed alone/],
    ['a text of several lines', `machine:\n  install:\n    image: >-\n      ${old}\n`, /cannot be changed alone/],
    ['no YAML', 'machine:\n  token: abc\n {', /cannot be read/],
  ])('%s', (_, text, problem) => {
    const result = withInstallImage(text, image)
    expect(result).toMatchObject({ ok: false, problem: expect.stringMatching(problem) })
    expect(JSON.stringify(result)).not.toContain('abc')
  })

  test.each(['', 'a b', 'x\ny: z', '{a}', '# no', '"x"'])('an image that is none: %j', bad => {
    expect(withInstallImage(whole(`image: ${old}`), bad)).toMatchObject({ ok: false })
  })
})

describe('quota', () => {
  const quota = (value: string) => {
    const facts = readConfigFacts(`cluster:\n  etcd:\n    extraArgs:\n      quota-backend-bytes: ${value}\n`)
    return facts.ok ? facts.value.etcdQuotaBytes : facts.problem
  }
  test.each([
    ['a number', '4294967296', 4_294_967_296],
    ['a text', '"4294967296"', 4_294_967_296],
    ['a list, as Talos 1.13 takes', '["1", "8589934592"]', 8_589_934_592],
    ['zero is the default', '"0"', defaultEtcdQuotaBytes],
    ['below zero is none', '"-1"', Number.MAX_SAFE_INTEGER],
    ['nonsense, which etcd would not start with', 'many', defaultEtcdQuotaBytes],
  ])('%s', (_, value, bytes) => {
    expect(quota(value)).toBe(bytes)
  })

  test('by an alias and a merge', () => {
    const text = 'args: &args\n  quota-backend-bytes: "4294967296"\ncluster:\n  etcd:\n    extraArgs:\n      <<: *args\n'
    expect(readConfigFacts(text)).toMatchObject({ ok: true, value: { etcdQuotaBytes: 4_294_967_296 } })
    expect(readConfigFacts('a: *nothing\n')).toMatchObject({ ok: false })
  })

  test('absent', () => {
    expect(readConfigFacts('version: v1alpha1\n')).toEqual({ ok: true, value: { installImage: '', etcdQuotaBytes: defaultEtcdQuotaBytes } })
    expect(readConfigFacts('')).toMatchObject({ ok: true, value: { installImage: '' } })
  })
})

test('the same configuration in other words', () => {
  expect(saysTheSame('a: 1\n---\nb: [x]\n', 'a: 1 # one\n---\nb:\n  - x\n')).toBe(true)
  expect(saysTheSame('a: 1\n', 'a: 2\n')).toBe(false)
  expect(saysTheSame('a: 1\n', 'a: 1\n---\nb: 2\n')).toBe(false)
})
