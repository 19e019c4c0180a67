import { describe, expect, test } from 'vitest'
import { createWorld } from '../../world/cluster.ts'
import { readConfiguration } from './config-documents.ts'
import { KIND_SINCE } from './config-shapes.ts'
import { validationError } from './config-validation.ts'

const VERSIONS = ['v1.10.9', 'v1.11.6', 'v1.12.1', 'v1.13.9', 'v1.14.0-rc.1']
const minorOf = (version: string): number => Number(version.split('.')[1])

const said = (text: string, version: string): string => {
  const read = readConfiguration(text, version)
  return read.ok ? 'OK' : `${read.code} ${read.message}`
}

describe.each(VERSIONS)('%s', version => {
  const kinds = [...KIND_SINCE]

  test('knows the documents of its time, and refuses those that came later', () => {
    for (const [kind, since] of kinds) {
      const expected = since <= minorOf(version) ? 'OK' : `InvalidArgument "${kind}" "v1alpha1": not registered`
      expect(said(`apiVersion: v1alpha1\nkind: ${kind}\n`, version)).toBe(expected)
    }
    expect(kinds.filter(([, since]) => since <= minorOf(version))).toHaveLength([13, 17, 36, 44, 89][VERSIONS.indexOf(version)]!)
  })

  test.each([
    ['apiVersion: v1alpha1\nkind: NoSuchConfig\n', 'InvalidArgument "NoSuchConfig" "v1alpha1": not registered'],
    ['apiVersion: v2\nkind: VolumeConfig\nname: STATE\n', 'InvalidArgument "VolumeConfig" "v2": not registered'],
    ['apiVersion: v1alpha1\nfoo: bar\n', 'InvalidArgument unknown keys found during decoding:\napiVersion: v1alpha1\nfoo: bar\n'],
    ['version: v1alpha1\n', 'InvalidArgument missing kind'],
    ['', 'InvalidArgument config not found'],
    ['- a\n', 'InvalidArgument recovered: expected a mapping node'],
    ['machine: {}\n---\ncluster: {}\n', 'InvalidArgument duplicate document /v1alpha1/ is not allowed'],
    [
      'apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n',
      'InvalidArgument duplicate document v1alpha1/VolumeConfig/STATE is not allowed',
    ],
    ['apiVersion: v1alpha1\nkind: VolumeConfig\nname: A\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: B\n', 'OK'],
    ['machine:\n  nosuch: 1\n', 'InvalidArgument unknown keys found during decoding:\nmachine:\n    nosuch: 1\n'],
    [
      'machine:\n  kubelet:\n    image: a\n    nosuch: one\nnosuch: {}\n',
      'InvalidArgument unknown keys found during decoding:\nmachine:\n    kubelet:\n        nosuch: one\nnosuch: {}\n',
    ],
    [
      'machine:\n  network:\n    interfaces:\n      - interface: eth0\n        b: 1\n        a: {c: [x]}\n',
      'InvalidArgument unknown keys found during decoding:\nmachine:\n    network:\n        interfaces:\n            - a:\n                c:\n                    - x\n              b: 1\n',
    ],
    ['machine:\n  sysctls: {any: "1"}\n  kubelet: {extraConfig: {any: {thing: 1}}}\n', 'OK'],
    ['machine:\n  registries:\n    mirrors:\n      docker.io: {endpoints: []}\n', 'OK'],
    [
      'machine:\n  registries:\n    mirrors:\n      docker.io: {nosuch: 1}\n',
      'InvalidArgument unknown keys found during decoding:\nmachine:\n    registries:\n        mirrors:\n            docker.io:\n                nosuch: 1\n',
    ],
  ])('reads %j', (text, expected) => {
    expect(said(text, version)).toBe(expected)
  })

  test('fields that came with 1.13 are strange to those before', () => {
    const text = 'cluster:\n  network:\n    cni:\n      flannel:\n        kubeNetworkPoliciesEnabled: true\n'
    expect(said(text, version)).toBe(
      minorOf(version) >= 13
        ? 'OK'
        : 'InvalidArgument unknown keys found during decoding:\ncluster:\n    network:\n        cni:\n            flannel:\n                kubeNetworkPoliciesEnabled: true\n',
    )
  })

  test('fields of other documents', () => {
    const text = 'apiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\nnosuch: 1\n'
    // What 1.14 added to them is not known here.
    expect(said(text, version)).toBe(minorOf(version) >= 14 ? 'OK' : 'InvalidArgument unknown keys found during decoding:\nnosuch: 1\n')
  })
})

describe('what is wrong with a configuration', () => {
  const main = (machine: string, cluster = 'controlPlane: {endpoint: "https://a:6443"}'): string =>
    `machine: {${machine}}\ncluster: {${cluster}}\n`
  const doc = (kind: string): string => `---\napiVersion: v1alpha1\nkind: ${kind}\n`
  const cases: readonly (readonly [string, string, string | undefined])[] = [
    ['v1.10.9', main('type: worker'), undefined],
    ['v1.13.9', main('type: init'), undefined],
    ['v1.12.1', 'machine: {type: worker}\n', 'cluster instructions are required'],
    ['v1.12.1', 'cluster: {}\n', 'machine instructions are required'],
    ['v1.12.1', main('type: worker', ''), 'cluster controlplane endpoint is required'],
    ['v1.12.1', main('type: server'), 'unknown machine type "server"'],
    [
      'v1.12.1',
      main('type: worker', 'controlPlane: {endpoint: "https://a"}, etcd: {}'),
      'etcd config is only allowed on control plane machines',
    ],
    ['v1.12.1', main('type: worker, ca: {key: eA==}'), 'issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)'],
    ['v1.12.1', main('network: {hostname: a}') + doc('HostnameConfig'), '* static hostname is already set in v1alpha1 config'],
    ['v1.12.1', main('features: {stableHostname: true}') + doc('HostnameConfig'), '* stable hostname is already set in v1alpha1 config'],
    [
      'v1.13.9',
      main('network: {kubespan: {}}') + doc('KubeSpanConfig'),
      '* kubespan is already configured in v1alpha1 machine.network.kubespan',
    ],
    [
      'v1.14.0',
      main('install: {}') + doc('UnattendedInstallConfig'),
      '* UnattendedInstallConfig config is incompatible with v1alpha1 config (.machine.install)',
    ],
    ['v1.14.0', main('kubelet: {}') + doc('KubeletConfig'), '* kubelet config is already set in v1alpha1 config (.machine.kubelet)'],
    ['v1.14.0', main('type: worker') + doc('KubeletConfig'), undefined],
    ['v1.14.0', main('nodeLabels: {a: b}') + doc('KubeNodeConfig'), '* .machine.nodeLabels is already set in v1alpha1 config'],
  ]

  test.each(cases)('on %s: %j', (version, text, expected) => {
    const machine = createWorld({ seed: 1, controlPlanes: 1, workers: 0, talos: version }).machine(0)
    const read = readConfiguration(text, version)
    if (!read.ok) throw new Error(read.message)
    const error = validationError(machine, read.value)
    if (expected === undefined) expect(error).toBeUndefined()
    else expect(error).toContain(expected)
    expect(error?.startsWith('1 error occurred:\n\t* ') ?? true).toBe(true)
  })
})
