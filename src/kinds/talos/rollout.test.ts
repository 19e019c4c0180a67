import { describe, expect, it } from 'vitest'
import { ANNOTATION, LABEL } from '../../api/names.ts'
import type { Target } from '../../api/talos-operation.ts'
import type { TalosMachine } from '../../api/talos-machine.ts'
import { EMPTY_SCHEMATIC } from '../../core/talos-image.ts'
import { rollout } from './rollout.ts'
import { at, away, facts, given, node, ok, renewed, type Given, type Name } from './test-view.ts'

const S1 = 'a'.repeat(64)
const S2 = 'b'.repeat(64)

const target = (name: Name, phase: Target['phase']): Target => ({
  name: `${name}-aaaaa`,
  hostname: name,
  node: name,
  role: name.startsWith('cp') ? 'controlplane' : 'worker',
  phase,
})

const marked =
  (name: Name, marks: Partial<TalosMachine['metadata']>) =>
  (m: TalosMachine): TalosMachine =>
    m.metadata.name === `${name}-aaaaa` ? { ...m, metadata: { ...m.metadata, ...marks } } : m

describe('order', () => {
  const order = (over: Given): readonly string[] => {
    const { operation, world } = given(over)
    return rollout.order(operation, world).map(c => `${c.hostname}${c.skip ? ' skipped' : ''}`)
  }
  it.each([
    ['control planes first, the leader last of them', {}, ['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2']],
    ['another leader', { leader: 'cp-1' }, ['cp-2', 'cp-3', 'cp-1', 'wk-1', 'wk-2']],
    [
      'a label, and even so the leader last',
      {
        leader: 'cp-3',
        machines: m =>
          marked('cp-3', { labels: { [LABEL.upgradeOrder]: '1' } })(marked('cp-2', { labels: { [LABEL.upgradeOrder]: '1' } })(m)),
      },
      ['cp-2', 'cp-1', 'cp-3', 'wk-1', 'wk-2'],
    ],
    [
      'a label on the Node',
      { nodes: { 'wk-2': node('wk-2', { labels: { [LABEL.upgradeOrder]: '1' } }) } },
      ['cp-1', 'cp-2', 'cp-3', 'wk-2', 'wk-1'],
    ],
    [
      'a hold',
      { machines: marked('wk-1', { annotations: { [ANNOTATION.upgradeHold]: 'true' } }) },
      ['cp-1', 'cp-2', 'cp-3', 'wk-1 skipped', 'wk-2'],
    ],
    [
      'a hold on the Node',
      { nodes: { 'wk-1': node('wk-1', { annotations: { [ANNOTATION.upgradeHold]: '' } }) } },
      ['cp-1', 'cp-2', 'cp-3', 'wk-1 skipped', 'wk-2'],
    ],
    [
      'a hold that was taken back',
      { machines: marked('wk-1', { annotations: { [ANNOTATION.upgradeHold]: 'false' } }) },
      ['cp-1', 'cp-2', 'cp-3', 'wk-1', 'wk-2'],
    ],
    ['a selection', { spec: { machineSelector: { matchLabels: { a: 'b' } } }, machines: marked('wk-2', { labels: { a: 'b' } }) }, ['wk-2']],
  ] as readonly (readonly [string, Given, readonly string[]])[])('%s', (_, over, expected) => {
    expect(order(over)).toEqual(expected)
  })
})

describe('turn', () => {
  const turn = (of: Name, targets: readonly Target[], over: Given = {}): string => {
    const verdict = rollout.turn(given({ of, ...over, target: { phase: 'Pending' }, status: { machines: [...targets] } }))
    return verdict.may === 'wait' ? verdict.why : verdict.may
  }
  const done = (['cp-1', 'cp-2', 'cp-3'] as const).map(name => target(name, 'Completed'))
  it.each([
    ['the first control plane', 'cp-1', [target('cp-1', 'Pending')], {}, 'yes'],
    ['beside an open one', 'cp-2', [target('cp-1', 'Running'), target('cp-2', 'Pending')], {}, 'control plane cp-1 is not done'],
    ['beside a failed one', 'cp-2', [target('cp-1', 'Failed'), target('cp-2', 'Pending')], {}, 'control plane cp-1 is not done'],
    ['beside an open worker', 'cp-2', [target('cp-2', 'Pending'), target('wk-1', 'Running')], {}, 'another machine is open'],
    ['a worker before its time', 'wk-1', [target('cp-3', 'Pending'), target('wk-1', 'Pending')], {}, 'control planes go first'],
    ['a worker', 'wk-1', [...done, target('wk-1', 'Pending')], {}, 'yes'],
    ['a worker beside another', 'wk-2', [...done, target('wk-1', 'Running'), target('wk-2', 'Pending')], {}, 'maxUnavailable allows 1'],
    ['two at once', 'wk-2', [...done, target('wk-1', 'Running'), target('wk-2', 'Pending')], { spec: { maxUnavailable: 2 } }, 'yes'],
    [
      'half of two',
      'wk-2',
      [...done, target('wk-1', 'Running'), target('wk-2', 'Pending')],
      { spec: { maxUnavailable: '50%' } },
      'maxUnavailable allows 1',
    ],
    [
      'another one is away',
      'wk-2',
      [...done, target('wk-2', 'Pending')],
      { nodes: { 'wk-1': node('wk-1', { ready: false }) } },
      'wk-1 not ready, and maxUnavailable allows 1',
    ],
    ['it is away itself', 'wk-1', [...done, target('wk-1', 'Pending')], { nodes: { 'wk-1': node('wk-1', { ready: false }) } }, 'yes'],
    [
      'beside an open one whose TalosMachine was deleted',
      'wk-2',
      [...done, target('wk-1', 'Running'), target('wk-2', 'Pending')],
      { without: ['wk-1'] },
      'maxUnavailable allows 1',
    ],
    ['its own TalosMachine was deleted', 'wk-1', [...done, target('wk-1', 'Pending')], { without: ['wk-1'] }, 'yes'],
    ['without the API', 'wk-1', [...done, target('wk-1', 'Pending')], { nodes: 'away' }, 'the Kubernetes API does not answer: 503'],
  ] as readonly (readonly [string, Name, readonly Target[], Given, string])[])('%s', (_, of, targets, over, expected) => {
    expect(turn(of, targets, over)).toBe(expected)
  })
})

describe('open', () => {
  const open = (over: Given): string => {
    const view = given(over)
    const opening = rollout.open({ ...view, target: { ...view.target, goal: undefined } })
    if ('skip' in opening) return `skip: ${opening.skip}`
    if ('wait' in opening) return `wait ${opening.reason}: ${opening.wait}`
    if ('fail' in opening) return `fail ${opening.fail.reason}: ${opening.fail.message}`
    const { image, schematic, way, drain, node: name } = opening.open.goal
    return [image, schematic?.slice(0, 3), way, drain, name].filter(Boolean).join(' ')
  }
  const imaged = (m: TalosMachine): TalosMachine => ({ ...m, spec: { ...m.spec, installImage: 'harbor.local/talos/installer-s1' } })
  const version = (v: string, more: object = {}): Given => ({ spec: { talos: { version: v, ...more } } })
  it.each([
    ['as usual', {}, 'ghcr.io/siderolabs/installer:v1.13.9 lifecycle wait wk-1'],
    ['from below 1.13', { machine: ok(facts('wk-1', { version: 'v1.12.5' })) }, 'ghcr.io/siderolabs/installer:v1.13.9 legacy wait wk-1'],
    [
      'to below 1.13',
      {
        ...version('v1.12.6'),
        machine: ok(facts('wk-1', { version: 'v1.12.5' })),
        nodes: { 'wk-1': node('wk-1', { kubeletVersion: 'v1.35.1' }) },
      },
      'ghcr.io/siderolabs/installer:v1.12.6 legacy wait wk-1',
    ],
    [
      'with extensions',
      { machine: ok(facts('wk-1', { schematic: S1, factory: 'factory.talos.dev', extensions: ['x'] })) },
      `factory.talos.dev/metal-installer/${S1}:v1.13.9 aaa lifecycle wait wk-1`,
    ],
    [
      'another schematic',
      { ...version('v1.13.5', { schematic: S2 }), machine: ok(facts('wk-1', { schematic: S1, factory: 'factory.talos.dev' })) },
      `factory.talos.dev/metal-installer/${S2}:v1.13.5 bbb lifecycle wait wk-1`,
    ],
    [
      'by an image that is written on the machine and tells no schematic',
      { machines: imaged, machine: ok(facts('wk-1', { schematic: S1, extensions: ['x'] })) },
      'harbor.local/talos/installer-s1:v1.13.9 any lifecycle wait wk-1',
    ],
    [
      'already there, as far as such an image tells',
      { ...version('v1.13.5'), machines: imaged, machine: ok(facts('wk-1', { schematic: S1, extensions: ['x'] })) },
      'skip: already runs v1.13.5',
    ],
    [
      'already there without the schematic that such an image carries',
      { ...version('v1.13.5', { schematic: S2 }), machines: imaged, machine: ok(facts('wk-1', { schematic: S1, extensions: ['x'] })) },
      'harbor.local/talos/installer-s1:v1.13.5 bbb lifecycle wait wk-1',
    ],
    [
      'the bare installer by name, over something else that is asked for',
      {
        ...version('v1.13.5', { image: 'ghcr.io/siderolabs/installer:v1.13.5', schematic: EMPTY_SCHEMATIC }),
        machine: ok(facts('wk-1', { schematic: S1, extensions: ['x'] })),
      },
      'ghcr.io/siderolabs/installer:v1.13.5 lifecycle wait wk-1',
    ],
    ['already there', version('v1.13.5'), 'skip: already runs v1.13.5'],
    [
      'already there with the schematic',
      { ...version('v1.13.5', { schematic: S1 }), machine: ok(facts('wk-1', { schematic: S1, factory: 'factory.talos.dev' })) },
      'skip: already runs v1.13.5',
    ],
    [
      'held since',
      { machines: marked('wk-1', { annotations: { [ANNOTATION.upgradeHold]: 'true' } }) },
      'skip: held by the annotation ichor.maesh.dev/upgrade-hold',
    ],
    ['gone since', { without: ['wk-1'] }, 'skip: its TalosMachine was deleted'],
    ['silent', { machine: away('no route') }, 'wait MachineUnreachable: it does not answer: no route'],
    ['rebooting', { machine: ok(facts('wk-1', { stage: 'rebooting' })) }, 'wait MachineNotReady: it is rebooting'],
    [
      'newer by now',
      { machine: ok(renewed('wk-1', { version: 'v1.13.10' })) },
      'fail VersionMismatch: wk-1 runs v1.13.10 by now, which is newer than v1.13.9.',
    ],
    [
      'past a minor',
      { machine: ok(facts('wk-1', { version: 'v1.11.6' })) },
      /^fail VersionMismatch: wk-1 runs v1\.11\.6 by now\. From Talos v1\.11\.6 to v1\.13\.9 a minor is skipped; .* Bring it there by itself, or override\.$/,
    ],
    [
      'from too far',
      { machine: ok(facts('wk-1', { version: 'v1.9.6' })) },
      /^fail VersionMismatch: wk-1 runs v1\.9\.6 by now\. Talos v1\.9\.6 is too old to be upgraded to v1\.13\.9/,
    ],
    [
      'past a minor, and somebody overrides it',
      { spec: { override: true }, machine: ok(facts('wk-1', { version: 'v1.11.6' })) },
      'ghcr.io/siderolabs/installer:v1.13.9 legacy wait wk-1',
    ],
    [
      'with a kubelet that the version does not take',
      { nodes: { 'wk-1': node('wk-1', { kubeletVersion: 'v1.29.4' }) } },
      /^fail VersionMismatch: wk-1 runs v1\.13\.5 by now\. Kubernetes v1\.29\.4 on Talos v1\.13\.9/,
    ],
    [
      'of no version',
      { machine: ok(facts('wk-1', { version: 'main' })) },
      'fail VersionMismatch: wk-1 runs main by now, which is no version that can be compared.',
    ],
    [
      'in a container',
      { machine: ok(facts('wk-1', { platform: 'container' })) },
      'fail InstallFailed: wk-1 runs in container mode, where Talos upgrades nothing. Hold it, or start another image.',
    ],
    [
      'one of two, on which Talos itself refuses that',
      { of: 'cp-1', without: ['cp-3'], machine: ok(facts('cp-1', { version: 'v1.12.5' })) },
      /^fail QuorumWouldBeLost: cp-1 runs v1\.12\.5, on which Talos itself refuses to upgrade one of two etcd members/,
    ],
    [
      'a control plane that joined, and is not whole',
      { of: 'cp-1', machine: ok(facts('cp-1', { ready: false, unmet: ['staticPods: none'] })), status: { startedAt: at(2e6) } },
      'wait MachineNotReady: Talos does not report it ready: staticPods: none',
    ],
    [
      'a control plane that was there, and is ill',
      { of: 'cp-1', machine: ok(facts('cp-1', { ready: false, unmet: ['staticPods: none'] })), status: { startedAt: at(1e5) } },
      'ghcr.io/siderolabs/installer:v1.13.9 lifecycle wait cp-1',
    ],
    [
      'a worker that joined, and is not whole',
      { machine: ok(facts('wk-1', { ready: false, unmet: ['staticPods: none'] })), status: { startedAt: at(2e6) } },
      'ghcr.io/siderolabs/installer:v1.13.9 lifecycle wait wk-1',
    ],
    [
      'another machine at its address',
      { machine: ok(facts('wk-1', { nodeID: 'id-of-another', hostname: 'wk-9' })) },
      'fail MachineAmbiguous: 10.5.0.5 is answered by wk-9 (Talos node id id-of-another), not by the machine that was recorded (id-wk-1).',
    ],
    [
      'a second TalosMachine for one that is known, written after the checks',
      { machines: m => (m.metadata.name === 'wk-1-aaaaa' ? { ...m, status: {} } : m), machine: ok(facts('wk-1', { nodeID: 'id-wk-2' })) },
      'fail MachineAmbiguous: TalosMachines wk-2-aaaaa and wk-1-aaaaa are the same machine (Talos node id id-wk-2). Delete the one that is wrong.',
    ],
    ['no drain wanted', { spec: { drain: { policy: 'skip' } } }, 'ghcr.io/siderolabs/installer:v1.13.9 lifecycle none wk-1'],
    ['force', { spec: { drain: { policy: 'force' } } }, 'ghcr.io/siderolabs/installer:v1.13.9 lifecycle force wk-1'],
    [
      'the only Node that takes pods',
      { nodes: { 'cp-1': undefined, 'cp-2': undefined, 'cp-3': undefined, 'wk-2': undefined } },
      'ghcr.io/siderolabs/installer:v1.13.9 lifecycle none wk-1',
    ],
    [
      'discovered only just now: no Node name yet',
      { target: { node: undefined } },
      'ghcr.io/siderolabs/installer:v1.13.9 lifecycle wait wk-1',
    ],
    [
      'registers no Node',
      { target: { node: undefined }, machine: ok(facts('wk-1', { nodename: '' })) },
      'ghcr.io/siderolabs/installer:v1.13.9 lifecycle none',
    ],
  ] as readonly (readonly [string, Given, string | RegExp])[])('%s', (_, over, expected) => {
    if (typeof expected === 'string') expect(open(over)).toBe(expected)
    else expect(open(over)).toMatch(expected)
  })
})

describe('outdated', () => {
  it.each([
    ['the same boot', {}, undefined],
    ['away', { machine: away() }, undefined],
    [
      'another boot',
      { machine: ok(facts('wk-1', { bootID: 'x' })) },
      'it was rebooted by somebody else before its install; opening it anew',
    ],
  ] as readonly (readonly [string, Given, string | undefined])[])('%s', (_, over, expected) => {
    expect(rollout.outdated?.(given(over))).toBe(expected)
  })
})
