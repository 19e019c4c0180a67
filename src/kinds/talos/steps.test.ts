import { describe, expect, it } from 'vitest'
import { ANNOTATION } from '../../api/names.ts'
import type { Step } from '../../core/kind.ts'
import type { Target } from '../../api/talos-operation.ts'
import { steps, abandon } from './steps.ts'
import { at, away, etcd, facts, given, node, ok, pod, renewed, UID, type Given } from './test-view.ts'

const step = (name: string): Step => {
  const found = [...steps, ...abandon].find(s => s.name === name)
  if (!found) throw new Error(`no step ${name}`)
  return found
}
const receipt = (name: string, bootID = 'old-wk-1') => ({ step: name, bootID, value: 'x', at: at(120_000) })
const installed: Partial<Target> = { receipts: [receipt('pull'), receipt('install')], step: 'reboot' }
const installedOn = (name: string): Partial<Target> => ({
  receipts: [receipt('pull', `old-${name}`), receipt('install', `old-${name}`)],
  step: 'reboot',
})

/** What a step answers; `no: why`, `failed Reason: message`. */
const done = (name: string, over: Given): string => {
  const answer = step(name).done(given(over))
  if (answer.is === 'failed') return `failed ${answer.reason}: ${answer.message}`
  return answer.is === 'yes' ? 'yes' : `${answer.is}: ${answer.why}`
}
const guard = (name: string, over: Given): string => {
  const verdict = step(name).guard?.(given(over)) ?? { may: 'yes' as const }
  if (verdict.may === 'no') return `no ${verdict.reason}: ${verdict.message}`
  return verdict.may === 'yes' ? 'yes' : `wait ${verdict.reason ?? ''}: ${verdict.why}`
}

type Table = readonly (readonly [what: string, step: string, given: Given, answer: RegExp])[]

const doneTable: Table = [
  ['nothing was pulled yet', 'pull', {}, /^no: the image .*installer:v1\.13\.9 is not pulled yet$/],
  ['pulled in this boot', 'pull', { target: { receipts: [receipt('pull')] } }, /^yes$/],
  ['pulled in the boot before', 'pull', { target: { receipts: [receipt('pull', 'older')] } }, /^no/],
  ['installed, so what was pulled is of no interest', 'pull', { target: installed, machine: ok(renewed('wk-1')) }, /^yes$/],
  [
    'the installer runs',
    'pull',
    { target: { step: 'install', firstActedAt: at(1000) }, machine: ok(renewed('wk-1', { version: 'v1.13.5' })) },
    /^yes$/,
  ],

  ['not installed', 'install', { target: { receipts: [receipt('pull')] } }, /^no: the installer has not ended yet$/],
  ['installed', 'install', { target: installed }, /^yes$/],
  ['installed, and away since', 'install', { target: installed, machine: away() }, /^yes$/],

  ['it leads', 'transfer-leadership', { of: 'cp-1', leader: 'cp-1' }, /^no: it leads etcd$/],
  ['another one leads', 'transfer-leadership', { of: 'cp-1', leader: 'cp-2' }, /^yes$/],
  [
    'they do not agree',
    'transfer-leadership',
    { of: 'cp-1', etcd: { 'cp-1': ok(etcd('cp-1', { leader: 'cp-1' })), 'cp-2': ok(etcd('cp-2', { leader: 'cp-2' })) } },
    /^no: the members do not agree/,
  ],
  ['its etcd is silent', 'transfer-leadership', { of: 'cp-1', etcd: { 'cp-1': away() } }, /^unknown/],

  ['schedulable', 'cordon', {}, /^no: its Node is schedulable$/],
  ['cordoned, by whomever', 'cordon', { nodes: { 'wk-1': node('wk-1', { unschedulable: true }) } }, /^yes$/],
  ['no Node', 'cordon', { nodes: { 'wk-1': undefined } }, /^yes$/],
  ['no API', 'cordon', { nodes: 'away' }, /^unknown: the Kubernetes API does not answer: 503$/],

  ['the same boot', 'reboot', { target: installed }, /^no: its boot id has not changed; it is in stage running$/],
  ['away', 'reboot', { target: installed, machine: away() }, /^unknown: it is away/],
  ['a new boot, the new version', 'reboot', { target: installed, machine: ok(renewed('wk-1', { stage: 'booting' })) }, /^yes$/],
  ['a new boot, the new version, without a receipt', 'reboot', { machine: ok(renewed('wk-1')) }, /^yes$/],
  [
    'fell back, and is not up yet',
    'reboot',
    { target: installed, machine: ok(renewed('wk-1', { version: 'v1.13.5', stage: 'booting' })) },
    /^no: it came back with v1\.13\.5, and is not ready yet$/,
  ],
  [
    'fell back, and its Node still tells of the old boot',
    'reboot',
    { target: installed, machine: ok(renewed('wk-1', { version: 'v1.13.5' })) },
    /^no: it came back/,
  ],
  [
    'fell back, and is up',
    'reboot',
    { target: installed, machine: ok(renewed('wk-1', { version: 'v1.13.5' })), nodes: { 'wk-1': node('wk-1', { bootID: 'new-wk-1' }) } },
    /^yes$/,
  ],

  ['away', 'verify', { target: installed, machine: away() }, /^unknown/],
  ['well', 'verify', { target: installed, machine: ok(renewed('wk-1')) }, /^yes$/],
  [
    'ready is said without looking while it boots',
    'verify',
    { target: installed, machine: ok(renewed('wk-1', { stage: 'booting' })) },
    /^no: it is booting$/,
  ],
  [
    'not ready',
    'verify',
    { target: installed, machine: ok(renewed('wk-1', { ready: false, unmet: ['nodeReady: node "wk-1" is not ready'] })) },
    /^no: Talos does not report it ready: nodeReady/,
  ],
  [
    'fell back',
    'verify',
    { target: installed, machine: ok(renewed('wk-1', { version: 'v1.13.5' })) },
    /^failed BootedOldVersion: wk-1 still runs v1\.13\.5, wanted v1\.13\.9: .*Talos fell back/,
  ],
  [
    'never installed',
    'verify',
    { machine: ok(renewed('wk-1', { version: 'v1.13.5' })) },
    /^failed InstallFailed: wk-1 was rebooted by somebody else while the installer ran.*still runs v1\.13\.5, wanted v1\.13\.9.*Resume/,
  ],
  [
    'the old way fell back',
    'verify',
    { target: { goal: { way: 'legacy', schematic: '' } }, machine: ok(renewed('wk-1', { version: 'v1.13.5' })) },
    /^failed BootedOldVersion: .*either the installer failed or/,
  ],
  [
    'the slot before the last one',
    'verify',
    { target: installed, machine: ok(renewed('wk-1', { version: 'v1.12.9' })) },
    /^failed VersionMismatch: wk-1 runs v1\.12\.9 after the reboot, wanted v1\.13\.9 \(it ran v1\.13\.5 before\)/,
  ],
  [
    'another schematic',
    'verify',
    { target: installed, machine: ok(renewed('wk-1', { schematic: 'e'.repeat(64) })) },
    /^failed SchematicMismatch: wk-1 runs v1\.13\.9 with the schematic e{64}, wanted no schematic/,
  ],
  [
    'the empty schematic is no schematic',
    'verify',
    { target: installed, machine: ok(renewed('wk-1', { schematic: '376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba' })) },
    /^yes$/,
  ],
  [
    'an image that does not tell its schematic',
    'verify',
    { target: { ...installed, goal: { schematic: 'any' } }, machine: ok(renewed('wk-1', { schematic: 'e'.repeat(64) })) },
    /^yes$/,
  ],
  [
    'only the schematic was to change, and did not',
    'verify',
    {
      target: { ...installed, before: { version: 'v1.13.9', schematic: '', bootID: 'old-wk-1' }, goal: { schematic: 'e'.repeat(64) } },
      machine: ok(renewed('wk-1')),
    },
    /^failed BootedOldVersion: wk-1 still runs v1\.13\.9 with no schematic, wanted v1\.13\.9 with the schematic e{64}/,
  ],

  ['Ready, from the boot before', 'node-ready', { machine: ok(renewed('wk-1')) }, /^no: its Node still tells of the boot before$/],
  [
    'not Ready',
    'node-ready',
    { machine: ok(renewed('wk-1')), nodes: { 'wk-1': node('wk-1', { bootID: 'new-wk-1', ready: false }) } },
    /^no: its Node is not Ready$/,
  ],
  ['Ready in this boot', 'node-ready', { machine: ok(renewed('wk-1')), nodes: { 'wk-1': node('wk-1', { bootID: 'new-wk-1' }) } }, /^yes$/],
  ['no Node', 'node-ready', { machine: ok(renewed('wk-1')), nodes: { 'wk-1': undefined } }, /^no: there is no Node wk-1$/],
  ['registers none', 'node-ready', { machine: ok(renewed('wk-1', { nodename: '' })), target: { node: undefined, goal: {} } }, /^yes$/],
  ['no API', 'node-ready', { machine: ok(renewed('wk-1')), nodes: 'away' }, /^unknown/],

  ['no shadow', 'api-server', { of: 'cp-1' }, /^no: its kubelet reports no kube-apiserver yet$/],
  [
    'the shadow of the boot before, Ready as ever',
    'api-server',
    {
      of: 'cp-1',
      target: installedOn('cp-1'),
      pods: [pod('kube-apiserver-cp-1', { namespace: 'kube-system', mirror: true, startedAt: Date.parse(at(3_600_000)) })],
    },
    /^no: its kube-apiserver has not started since the reboot$/,
  ],
  [
    'starting',
    'api-server',
    {
      of: 'cp-1',
      target: installedOn('cp-1'),
      pods: [pod('kube-apiserver-cp-1', { namespace: 'kube-system', mirror: true, startedAt: Date.parse(at(5000)), ready: false })],
    },
    /^no: its kube-apiserver is not Ready$/,
  ],
  [
    'runs',
    'api-server',
    {
      of: 'cp-1',
      target: installedOn('cp-1'),
      pods: [pod('kube-apiserver-cp-1', { namespace: 'kube-system', mirror: true, startedAt: Date.parse(at(5000)) })],
    },
    /^yes$/,
  ],
  ['no API', 'api-server', { of: 'cp-1', pods: 'away' }, /^unknown/],

  ['etcd is well', 'rejoin', { of: 'cp-1' }, /^yes$/],
  ['a member is ill', 'rejoin', { of: 'cp-1', etcd: { 'cp-2': ok(etcd('cp-2', { healthy: false })) } }, /^no: etcd condition 1 on cp-2: /],
  ['a member is silent', 'rejoin', { of: 'cp-1', etcd: { 'cp-1': away() } }, /^no: etcd condition 1 on cp-1: /],
  [
    'an alarm',
    'rejoin',
    { of: 'cp-1', etcd: { 'cp-2': ok({ ...etcd('cp-2'), alarms: [{ memberID: '0000000000000001', alarm: 'CORRUPT' }] }) } },
    /^failed EtcdAlarm: .*CORRUPT/,
  ],

  [
    'our cordon',
    'uncordon',
    { nodes: { 'wk-1': node('wk-1', { unschedulable: true, annotations: { [ANNOTATION.cordonedBy]: UID } }) } },
    /^no: its Node still carries the mark/,
  ],
  ["somebody else's cordon", 'uncordon', { nodes: { 'wk-1': node('wk-1', { unschedulable: true }) } }, /^yes$/],
  [
    "another operation's cordon",
    'uncordon',
    { nodes: { 'wk-1': node('wk-1', { unschedulable: true, annotations: { [ANNOTATION.cordonedBy]: 'other' } }) } },
    /^yes$/,
  ],

  [
    'the image of before',
    'record-image',
    { machine: ok(renewed('wk-1')) },
    /^no: its configuration names ghcr\.io\/siderolabs\/installer:v1\.13\.5$/,
  ],
  ['the new image', 'record-image', { machine: ok(renewed('wk-1', { installImage: 'ghcr.io/siderolabs/installer:v1.13.9' })) }, /^yes$/],
  ['no image at all', 'record-image', { machine: ok(renewed('wk-1', { installImage: '' })) }, /^yes$/],

  ['ready', 'soak', { machine: ok(renewed('wk-1')), nodes: { 'wk-1': node('wk-1', { bootID: 'new-wk-1' }) } }, /^yes$/],
  ['not ready', 'soak', { machine: ok(renewed('wk-1', { ready: false })) }, /^no: it is not ready$/],
]

const guardTable: Table = [
  ['well', 'pull', {}, /^yes$/],
  ['away', 'pull', { machine: away('no route') }, /^wait MachineUnreachable: it does not answer: no route$/],
  ['rebooted', 'install', { machine: ok(facts('wk-1', { bootID: 'x' })) }, /^wait : it was rebooted by somebody else meanwhile$/],
  ['shutting down', 'install', { machine: ok(facts('wk-1', { stage: 'shutting down' })) }, /^wait MachineNotReady: it is shutting down$/],
  ['a worker asks nothing of etcd', 'install', { etcd: { 'cp-1': away() } }, /^yes$/],
  [
    'an ill member',
    'install',
    { of: 'cp-1', etcd: { 'cp-2': ok(etcd('cp-2', { healthy: false })) } },
    /^wait EtcdUnhealthy: etcd condition 1 on cp-2/,
  ],
  [
    'an alarm',
    'cordon',
    { of: 'cp-1', etcd: { 'cp-2': ok({ ...etcd('cp-2'), alarms: [{ memberID: '0000000000000001', alarm: 'NOSPACE' }] }) } },
    /^no EtcdAlarm/,
  ],
  ['an ill member', 'transfer-leadership', { of: 'cp-1', etcd: { 'cp-3': away() } }, /^wait EtcdUnhealthy/],
  ['rebooted meanwhile', 'drain', { machine: ok(facts('wk-1', { bootID: 'x' })) }, /^wait : it was rebooted by somebody else meanwhile$/],
  [
    'an ill member right before',
    'reboot',
    { of: 'cp-1', target: installedOn('cp-1'), etcd: { 'cp-2': ok(etcd('cp-2', { healthy: false })) } },
    /^wait EtcdUnhealthy/,
  ],
  [
    'asked for, and away as asked: no reason of its own',
    'reboot',
    { target: { ...installed, firstActedAt: at(600_000) }, machine: away() },
    /^wait : /,
  ],
  [
    'asked for, and stuck',
    'reboot',
    { target: { ...installed, firstActedAt: at(600_000) }, machine: ok(facts('wk-1', { stage: 'rebooting' })) },
    /^wait : its boot id has not changed; it is in stage rebooting$/,
  ],
  [
    'asked for, and fell back',
    'reboot',
    { target: { ...installed, firstActedAt: at(600_000) }, machine: ok(renewed('wk-1', { version: 'v1.13.5', ready: false })) },
    /^wait : it came back with v1\.13\.5/,
  ],
  ['asked for, and dropped: it still runs', 'reboot', { target: { ...installed, firstActedAt: at(600_000) } }, /^yes$/],
  [
    'accepted, and on its way',
    'upgrade',
    { target: { firstActedAt: at(600_000) }, machine: ok(facts('wk-1', { stage: 'upgrading' })) },
    /^wait : /,
  ],
  ['healthy', 'give-back', { nodes: { 'wk-1': node('wk-1') } }, /^yes$/],
  ['its Node is not Ready', 'give-back', { nodes: { 'wk-1': node('wk-1', { ready: false }) } }, /^wait/],
  ['away', 'give-back', { machine: away() }, /^wait/],
]

describe('done?', () => {
  it.each(doneTable)('%s: %s', (_, name, over, answer) => {
    expect(done(name, over)).toMatch(answer)
  })
})

describe('may I?', () => {
  it.each(guardTable)('%s: %s', (_, name, over, answer) => {
    expect(guard(name, over)).toMatch(answer)
  })
})

describe('a new try after the wrong boot', () => {
  const failedAt = (reason: 'BootedOldVersion' | 'RebootTimeout', retriedMs: number): Given => ({
    target: { ...installed, failure: { at: at(60_000), reason } },
    machine: ok(renewed('wk-1', { version: 'v1.13.5' })),
    nodes: { 'wk-1': node('wk-1', { bootID: 'new-wk-1' }) },
    // Another machine may have failed since, which says nothing of this one.
    status: { lastFailure: { at: at(20_000), reason: 'InstallFailed', message: '', machine: 'wk-2-aaaaa' }, lastRetry: at(retriedMs) },
  })

  it.each([
    ['goes back to the begin', failedAt('BootedOldVersion', 30_000), ['no', 'no', 'no']],
    ['does not without a word from a person', failedAt('BootedOldVersion', 90_000), ['yes', 'yes', 'yes']],
    ['does not after another failure', failedAt('RebootTimeout', 30_000), ['yes', 'yes', 'yes']],
    ["does not after another machine's failure", { ...failedAt('BootedOldVersion', 30_000), target: installed }, ['yes', 'yes', 'yes']],
  ])('%s', (_, over, answers) => {
    expect(['pull', 'install', 'reboot'].map(name => step(name).done(given(over)).is)).toEqual(answers)
  })
})

describe('which steps there are', () => {
  const names = (over: Given): readonly string[] => steps.filter(s => s.applies?.(given(over)) ?? true).map(s => s.name)
  const last = ['verify', 'node-ready', 'uncordon', 'record-image']
  it.each([
    ['a worker', {}, ['pull', 'install', 'cordon', 'drain', 'reboot', ...last]],
    [
      'a control plane',
      { of: 'cp-1' },
      [
        'pull',
        'install',
        'transfer-leadership',
        'cordon',
        'drain',
        'reboot',
        'verify',
        'node-ready',
        'api-server',
        'rejoin',
        'uncordon',
        'record-image',
      ],
    ],
    ['a worker of the old way', { target: { goal: { way: 'legacy', drain: 'wait' } } }, ['pull', 'cordon', 'drain', 'upgrade', ...last]],
    ['no drain', { target: { goal: { way: 'lifecycle', drain: 'none' } } }, ['pull', 'install', 'reboot', ...last]],
    [
      'the only control plane',
      { of: 'cp-1', without: ['cp-2', 'cp-3'] },
      ['pull', 'install', 'cordon', 'drain', 'reboot', 'verify', 'node-ready', 'api-server', 'rejoin', 'uncordon', 'record-image'],
    ],
    ['a soak', { spec: { minReadySeconds: 60 } }, ['pull', 'install', 'cordon', 'drain', 'reboot', ...last, 'soak']],
  ] as readonly (readonly [string, Given, readonly string[]])[])('%s', (_, over, expected) => {
    expect(names(over)).toEqual(expected)
  })
})

describe('how long it may take', () => {
  const minutes = (name: string, over: Given): number => (step(name).deadlineMs?.(given(over)) ?? Number.NaN) / 60_000
  it.each([
    ['pull', {}, 15],
    ['install', {}, 30],
    ['install', { target: { stepStartedAt: at(1_200_000), firstActedAt: at(600_000) } }, 20],
    ['drain', { target: { stepStartedAt: at(60_000), firstActedAt: at(60_000) } }, 10],
    ['drain', { target: { stepStartedAt: at(60_000), firstActedAt: at(60_000) }, spec: { drain: { policy: 'force', timeout: '2m' } } }, 7],
    ['reboot', { target: { stepStartedAt: at(60_000), firstActedAt: at(60_000) } }, 30],
    ['reboot', { target: { stepStartedAt: at(60_000), firstActedAt: at(60_000) }, spec: { timeouts: { reboot: '45m' } } }, 45],
    ['upgrade', { target: { stepStartedAt: at(60_000), firstActedAt: at(60_000) } }, 45],
    ['rejoin', { of: 'cp-1' }, 30],
    ['api-server', { of: 'cp-1' }, 10],
    ['verify', {}, 15],
    ['soak', { spec: { minReadySeconds: 120 } }, 17],
  ] as readonly (readonly [string, Given, number])[])('%s', (name, over, expected) => {
    expect(minutes(name, over)).toBe(expected)
  })

  it('has a deadline and a failure for every step', () => {
    for (const one of steps) {
      expect(one.deadlineMs?.(given())).toBeGreaterThan(0)
      expect(one.failure).toBeTruthy()
    }
  })

  it.each([
    ['the machine never came back', { machine: away() }, 'RebootTimeout'],
    [
      'it fell back and never got well',
      { target: installed, machine: ok(renewed('wk-1', { version: 'v1.13.5', ready: false })) },
      'BootedOldVersion',
    ],
    ['it is stuck', { machine: ok(facts('wk-1', { stage: 'rebooting' })) }, 'RebootTimeout'],
  ] as readonly (readonly [string, Given, string])[])('and the reboot that fails says why: %s', (_, over, reason) => {
    const { failure } = step('reboot')
    expect(typeof failure === 'function' ? failure(given(over)) : failure).toBe(reason)
  })
})
