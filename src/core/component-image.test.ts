import { describe, expect, it } from 'vitest'
import { imageVersion, isPinned, withVersion } from './component-image.ts'

const digest = `@sha256:${'0'.repeat(64)}`

describe('the image of a program in another version', () => {
  it.each([
    ['as it is published', 'registry.k8s.io/kube-apiserver:v1.35.1', 'registry.k8s.io/kube-apiserver:v1.36.2'],
    ['[B122] of a mirror, with a suffix', 'mirror.example:5000/k/kubelet:v1.33.4-fat', 'mirror.example:5000/k/kubelet:v1.36.2-fat'],
    ['of an address', '[fd00::1]:5000/kubelet:v1.35.1-slim', '[fd00::1]:5000/kubelet:v1.36.2-slim'],
    ['pinned: the old digest is not taken along', `registry.k8s.io/kube-proxy:v1.35.1${digest}`, 'registry.k8s.io/kube-proxy:v1.36.2'],
    ['pinned, and there already', `registry.k8s.io/kube-proxy:v1.36.2${digest}`, `registry.k8s.io/kube-proxy:v1.36.2${digest}`],
    ['of a pre-release', 'registry.k8s.io/kube-proxy:v1.36.0-rc.1', 'registry.k8s.io/kube-proxy:v1.36.2'],
  ])('%s', (_, image, wanted) => {
    expect(withVersion(image, 'v1.36.2')).toBe(wanted)
  })

  it.each(['registry.k8s.io/kube-apiserver', `registry.k8s.io/kube-apiserver${digest}`, 'registry.k8s.io/kube-apiserver:latest', ''])(
    'is not to be made of %j',
    image => {
      expect([imageVersion(image), withVersion(image, 'v1.36.2')]).toEqual([undefined, undefined])
    },
  )

  it.each([
    ['registry.k8s.io/kubelet:v1.36.0-rc.1', 'v1.36.0-rc.1'],
    ['registry.k8s.io/kubelet:v1.36.0-beta.0-fat', 'v1.36.0-beta.0'],
    ['registry.k8s.io/kubelet:v1.36.0-acme.2', 'v1.36.0'],
    ['registry.k8s.io/kubelet:v1.36.0-eks-1-36-4', 'v1.36.0'],
  ])('[B003] a pre-release is no release, and the tail of a vendor is none of it: %s', (image, version) => {
    expect(imageVersion(image)).toBe(version)
    const isFinal = version === 'v1.36.0'
    expect(withVersion(image, 'v1.36.0')).toBe(isFinal ? image : 'registry.k8s.io/kubelet:v1.36.0')
  })

  it('tells its version, and whether it is pinned', () => {
    expect(imageVersion(`mirror.example/kubelet:v1.33.4-fat${digest}`)).toBe('v1.33.4')
    expect([isPinned(`a/b:v1.33.4${digest}`), isPinned('a/b:v1.33.4')]).toEqual([true, false])
  })
})
