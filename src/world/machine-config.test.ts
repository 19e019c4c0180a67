import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ETCD_QUOTA, INSTALL_IMAGE, etcdQuotaOf, readScalar, renderConfig, writeScalar } from './machine-config.ts'

const facts = {
  role: 'controlplane',
  clusterID: 'abc=',
  clusterName: 'home',
  endpoint: 'https://10.5.0.2:6443',
  installImage: 'ghcr.io/siderolabs/installer:v1.13.5',
  kubernetes: 'v1.36.2',
  flannel: true,
  kubeProxy: true,
  etcdQuotaBytes: 8_589_934_592,
} as const

describe('the machine configuration', () => {
  const text = renderConfig(facts)
  it('is YAML that says what was asked', () => {
    const read = parse(text) as { machine: { install: { image: string } }; cluster: { etcd: { extraArgs: Record<string, string> } } }
    expect(read.machine.install.image).toBe(facts.installImage)
    expect(read.cluster.etcd.extraArgs['quota-backend-bytes']).toBe('8589934592')
  })

  it('finds the image of the installer, not that of the kubelet before it', () => {
    expect(readScalar(text, INSTALL_IMAGE)).toBe(facts.installImage)
    expect(readScalar(text, ['machine', 'kubelet', 'image'])).toBe('ghcr.io/siderolabs/kubelet:v1.36.2')
    expect(readScalar(text, ['cluster', 'install', 'image'])).toBeUndefined()
    expect(readScalar(text, ETCD_QUOTA)).toBe('8589934592')
  })

  it('changes one line and nothing else', () => {
    const changed = writeScalar(text, INSTALL_IMAGE, 'factory.talos.dev/metal-installer/x:v1.13.9')
    expect(readScalar(changed, INSTALL_IMAGE)).toBe('factory.talos.dev/metal-installer/x:v1.13.9')
    const differing = changed.split('\n').filter((line, at) => line !== text.split('\n')[at])
    expect(differing).toEqual(['        image: factory.talos.dev/metal-installer/x:v1.13.9'])
    expect(writeScalar(text, ['machine', 'nothing', 'there'], 'x')).toBe(text)
  })

  it('reads comments and quotes as YAML does', () => {
    const commented = 'machine:\n  # about\n  install: # where\n    image: "a:b" # why\ncluster: {}\n'
    expect(readScalar(commented, INSTALL_IMAGE)).toBe('a:b')
  })

  it("knows etcd's default quota", () => {
    expect(etcdQuotaOf(text)).toBe(8_589_934_592)
    expect(etcdQuotaOf(renderConfig({ ...facts, etcdQuotaBytes: undefined }))).toBe(2_147_483_648)
  })
})
