import { describe, expect, it } from 'vitest'
import type { Answer, Opening, Stage, Verdict } from '../../core/kind.ts'
import { stageOf, stagesOf } from '../../core/stages.ts'
import type { View } from '../../core/world.ts'
import { serviceKey } from '../../core/world.ts'
import type { Result } from '../../ports/fault.ts'
import type { ServiceFacts } from '../../ports/machine-actions.ts'
import { away, at, etcd, facts, given, node as nodeFacts, ok, type Given } from '../talos/test-view.ts'
import { checks } from './checks.ts'
import { node } from './node.ts'

type Facts = Partial<View['world']['facts']>

/** As the tables of kind talos have it: wk-1 is open, all is well. Then what the block and the facts of this one say. */
const view = (block: object, over: Given = {}, more: { readonly facts?: Facts; readonly spec?: object } = {}): View => {
  const base = given(over)
  const machine = base.target.hostname ?? ''
  const spec = { ...base.operation.spec, kind: 'node', node: { machine, ...block }, ...more.spec }
  return {
    operation: { ...base.operation, spec },
    target: base.target,
    world: { ...base.world, facts: { ...base.world.facts, ...more.facts } },
  }
}
const stage = (v: View): Stage => stageOf(node, v.operation)
const step = (v: View, name: string) => {
  const found = stage(v).steps.find(s => s.name === name)
  if (!found) throw new Error(`no step ${name}`)
  return found
}
const text = (answer: Answer | Verdict): string => {
  if ('is' in answer && answer.is === 'failed') return `failed ${answer.reason}`
  if ('is' in answer) return 'why' in answer ? `${answer.is}: ${answer.why}` : answer.is
  return answer.may === 'no' ? `no ${answer.reason}` : 'why' in answer ? `${answer.may}: ${answer.why}` : answer.may
}
const done = (v: View, name: string): string => text(step(v, name).done(v))
const may = (v: View, name: string): string => text(step(v, name).guard?.(v) ?? { may: 'yes' })

const asked = (name: string) => ({ step: name, actedAt: at(30_000), firstActedAt: at(30_000), attempts: 1 })
const silent = away()
const rebooted = ok(facts('wk-1', { bootID: 'new-wk-1' }))

describe('an operation has the one stage of its action', () => {
  it.each(['reboot', 'shutdown', 'restart-service', 'etcd-defrag', 'forfeit-leadership', 'reset'])('%s', action =>
    expect(stagesOf(node, view({ action }).operation).map(s => s.name)).toEqual([action]),
  )
})

describe('a reboot is done', () => {
  it.each<[string, Given, string]>([
    ['not in the boot that was recorded', {}, 'no: its boot id has not changed; it is in stage running'],
    ['with another boot id, whoever caused it', { machine: rebooted }, 'yes'],
    ['nobody knows while it is away', { machine: silent }, 'unknown: it is away: connection refused'],
  ])('%s', (_, over, expected) => expect(done(view({ action: 'reboot' }, over), 'reboot')).toBe(expected))

  it('and may be given to a machine that hangs by force only', () => {
    const hangs: Given = { machine: ok(facts('wk-1', { stage: 'rebooting' })) }
    expect(may(view({ action: 'reboot' }, hangs), 'reboot')).toBe('wait: it is rebooting')
    expect(may(view({ action: 'reboot', mode: 'force' }, hangs), 'reboot')).toBe('yes')
    expect(may(view({ action: 'reboot', mode: 'force' }, { machine: rebooted }), 'reboot')).toMatch(/^wait: it was rebooted/)
  })
})

describe('a shutdown is done', () => {
  const shutdown = { action: 'shutdown' }
  const failed = { failure: { at: at(10_000), reason: 'MachineDidNotStop' } } as const
  const seenByOthers = { ok: false, fault: { kind: 'unreachable', message: 'timeout; it answers through 10.5.0.2', runs: true } } as const
  it.each<[string, Given, string]>([
    ['not while it answers', { target: asked('shutdown') }, 'no: it still answers, in stage running'],
    ['when it is silent, once it was asked', { target: asked('shutdown'), machine: silent }, 'yes'],
    ['not when it is silent before', { target: { step: 'shutdown' }, machine: silent }, 'unknown: it does not answer: connection refused'],
    [
      'not when it is silent in an earlier step',
      { target: asked('drain'), machine: silent },
      'unknown: it does not answer: connection refused',
    ],
    ['when it was asked in a try that failed', { target: { ...failed, step: 'shutdown', actedBefore: true }, machine: silent }, 'yes'],
    [
      'not where the try that failed never asked it',
      { target: { ...failed, step: 'shutdown' }, machine: silent },
      'unknown: it does not answer: connection refused',
    ],
    [
      'not when only the way from here to it is cut',
      { target: asked('shutdown'), machine: seenByOthers },
      'unknown: it does not answer: timeout; it answers through 10.5.0.2',
    ],
    ['when somebody started it again since', { target: asked('shutdown'), machine: rebooted }, 'yes'],
    [
      'not where another machine answers',
      { target: asked('shutdown'), machine: { ok: false, fault: { kind: 'wrongPeer', message: 'x' } } },
      'unknown: it does not answer: x',
    ],
  ])('%s', (_, over, expected) => expect(done(view(shutdown, over), 'shutdown')).toBe(expected))

  it('after two minutes of silence, at once where it was seen again', () => {
    expect(step(view(shutdown), 'shutdown').stableMs?.(view(shutdown, { machine: silent }))).toBe(120_000)
    expect(step(view(shutdown), 'shutdown').stableMs?.(view(shutdown, { machine: rebooted }))).toBe(0)
  })
})

describe('a service is restarted', () => {
  const seen = (service: object | undefined, id = 'kubelet') =>
    view(
      { action: 'restart-service', service: id },
      { target: { goal: { startedAt: '100' } } },
      { facts: { services: { [serviceKey({ name: 'wk-1-aaaaa', service: id })]: ok(service as never) } } },
    )
  const restarted = (service: object | undefined, id?: string) => done(seen(service, id), 'restart')
  it.each<[string, object | undefined, string]>([
    ['by a later start', { state: 'Running', health: 'healthy', startedAt: 200 }, 'yes'],
    ['not by the one before', { state: 'Running', health: 'healthy', startedAt: 100 }, 'no: the service has not been started since'],
    [
      'not before it is healthy',
      { state: 'Running', health: 'unknown', startedAt: 200 },
      'no: the service is Running, and not healthy yet',
    ],
    ['not while it does not run', { state: 'Preparing', health: 'unknown' }, 'no: the service is Preparing'],
    ['not where it is gone', undefined, 'no: it has no service kubelet now'],
  ])('%s', (_, service, expected) => expect(restarted(service)).toBe(expected))
  it('and is soon asked for again where it was stopped and left so', () => {
    const settles = (state: string) => {
      const at = seen({ state, health: 'unknown' })
      return step(at, 'restart').settleMs?.(at)
    }
    expect(settles('Stopping')).toBe(60_000)
    expect(settles('Finished')).toBe(10_000)
  })
  it('one without a health check need not be healthy', () =>
    expect(restarted({ state: 'Running', health: 'unknown', startedAt: 200 }, 'ext-x')).toBe('yes'))
})

describe('a control plane has left etcd', () => {
  const reset = { action: 'reset' }
  const id = etcd('cp-1').status.memberID
  const target = { goal: { member: id, uuid: 'uuid-cp-1' } }
  const list = (change: (members: ReturnType<typeof etcd>['members']) => ReturnType<typeof etcd>['members']) =>
    Object.fromEntries(
      (['cp-2', 'cp-3'] as const).map(name => {
        const own = etcd(name)
        return [name, ok({ ...own, members: change(own.members) })]
      }),
    )
  const left = (over: Given) => done(view(reset, { of: 'cp-1', target, ...over }), 'leave')

  it('when the others no longer list the member that was recorded', () => {
    expect(left({})).toBe('no: it is still a member of etcd')
    expect(left({ etcd: list(m => m.filter(x => x.id !== id)) })).toBe('yes')
  })
  it('nobody knows while the others differ, or one is silent', () => {
    expect(left({ etcd: { 'cp-2': silent } })).toMatch(/^unknown/)
    expect(left({ etcd: { 'cp-2': list(m => m.filter(x => x.id !== id))['cp-2'] ?? silent } })).toMatch(/^unknown/)
  })
  it('not when it has joined anew: that member was never meant', () =>
    expect(left({ etcd: list(m => m.map(x => (x.id === id ? { ...x, id: 'ffff' } : x))) })).toBe('failed MachineAmbiguous'))
})

describe('a machine is wiped', () => {
  const seen = (uuid: string) => ({ facts: { maintenance: { 'wk-1-aaaaa': ok({ uuid }) } } })
  const nobody = { facts: { maintenance: { 'wk-1-aaaaa': silent } } }
  const goal = { goal: { uuid: 'uuid-wk-1' } }
  const wiped = (block: object, over: Given, more = nobody as Parameters<typeof view>[2]) =>
    done(view({ action: 'reset', ...block }, { ...over, target: { ...asked('reset'), ...goal, ...over.target } }, more), 'reset')
  it.each<[string, object, Given, Parameters<typeof view>[2], string]>([
    ['not while it answers', {}, {}, nobody, 'no: it still answers, in stage running'],
    ['when it is in maintenance', { rebootAfter: true }, { machine: silent }, seen('uuid-wk-1'), 'yes'],
    [
      'not when another is',
      { rebootAfter: true },
      { machine: silent },
      seen('other'),
      'no: another machine (UUID other) answers in maintenance at its address',
    ],
    [
      'not by silence where it is to come back',
      { rebootAfter: true },
      { machine: silent },
      nobody,
      'no: it is away, and does not answer in maintenance yet',
    ],
    ['by silence where it is powered off', {}, { machine: silent }, nobody, 'yes'],
    ['by silence where nothing is left to boot', { wipe: 'disk', rebootAfter: true }, { machine: silent }, nobody, 'yes'],
    ['never where it came back as it was', {}, { machine: rebooted }, nobody, 'failed ResetFailed'],
  ])('%s', (_, block, over, more, expected) => expect(wiped(block, over, more)).toBe(expected))
  const never = { firstActedAt: undefined, failure: { at: at(10_000), reason: 'RebootTimeout' } } as never
  it('not by a silence before it was asked, also where an earlier try failed of that silence', () =>
    expect(wiped({}, { machine: silent, target: never })).toMatch(/^unknown/))
  it('not by a silence that is only ours: others hear it', () => {
    const machine = { ok: false, fault: { kind: 'unreachable', message: 'timeout', runs: true } } as const
    expect(wiped({}, { machine })).toBe('unknown: it is not wiped: timeout')
  })
  it('and what is told to do says whether it was', () => {
    const told = (over: Given): string => {
      const v = view({ action: 'reset' }, { machine: silent, ...over }, nobody)
      const { remedy } = step(v, 'reset')
      return typeof remedy === 'function' ? remedy(v) : ''
    }
    expect(told({ target: asked('reset') })).toContain('is gone')
    expect(told({ target: { step: 'reset' } })).toBe('It was not asked to wipe itself yet: resume when it answers.')
  })
})

describe('the Node of a machine that was wiped', () => {
  const deleted = (over: Given) => done(view({ action: 'reset' }, over), 'delete-node')
  it('is deleted, but not one of a boot since then: that machine has joined anew', () => {
    expect(deleted({ machine: silent })).toBe('no: its Node is still there')
    expect(deleted({ machine: silent, nodes: { 'wk-1': nodeFacts('wk-1', { bootID: 'new-wk-1' }) } })).toBe('yes')
  })
})

describe('opening', () => {
  const opened = (v: View): Opening => stage(v).open(v)
  const big = etcd('cp-1')
  const bloated = { ...big, status: { ...big.status, dbSize: 400, dbSizeInUse: 100 } }
  it.each<[string, View, unknown]>([
    ['a worker is drained', view({ action: 'reboot' }), { open: { goal: { way: 'orderly', drain: 'wait', node: 'wk-1' } } }],
    [
      'one that hangs is not',
      view({ action: 'reboot', mode: 'force' }, { machine: ok(facts('wk-1', { stage: 'rebooting' })) }),
      { open: { goal: { way: 'as it is', drain: 'none', node: 'wk-1' } } },
    ],
    [
      'the silent are waited for',
      view({ action: 'reboot' }, { machine: silent }),
      { wait: 'it does not answer: connection refused', reason: 'MachineUnreachable' },
    ],
    [
      'another machine at its address',
      view({ action: 'reset' }, { machine: ok(facts('wk-1', { nodeID: 'stranger' })) }),
      { fail: { reason: 'MachineAmbiguous' } },
    ],
    ['a full database is left alone', view({ action: 'etcd-defrag' }, { of: 'cp-1' }), { skip: expect.stringContaining('little to gain') }],
    [
      'one that is half free is not',
      view({ action: 'etcd-defrag' }, { of: 'cp-1', etcd: { 'cp-1': ok(bloated) } }),
      { open: { goal: { drain: 'none' } } },
    ],
    ['a follower leads nothing', view({ action: 'forfeit-leadership' }, { of: 'cp-1' }), { skip: 'it does not lead etcd: cp-3 does' }],
    ['the leader does', view({ action: 'forfeit-leadership' }, { of: 'cp-3' }), { open: {} }],
    [
      'the member is recorded',
      view({ action: 'reset' }, { of: 'cp-1' }),
      { open: { goal: { member: etcd('cp-1').status.memberID, uuid: 'uuid-cp-1' } } },
    ],
  ])('%s', (_, v, expected) => expect(opened(v)).toMatchObject(expected as object))
})

describe('the checks refuse', () => {
  const refusals = (v: View) => checks(v.operation, v.world).refusals.map(r => `${r.rule}${r.overridable ? ' (overridable)' : ''}`)
  const container = ok(facts('wk-1', { platform: 'container' }))
  const withService = (seen: Result<ServiceFacts | undefined>, over: Given = {}) =>
    view({ action: 'restart-service', service: 'ext-x' }, over, {
      facts: { services: { [serviceKey({ name: 'wk-1-aaaaa', service: 'ext-x' })]: seen } },
    })
  it.each<[string, View, readonly string[]]>([
    ['nothing where all is well', view({ action: 'reboot' }), []],
    ['a machine that there is not', view({ action: 'reboot', machine: 'wk-9' }), ['UnknownMachine']],
    ['not the case of a host name', view({ action: 'reboot', machine: 'WK-1' }), []],
    [
      'a host name that two have',
      view({ action: 'reboot' }, { machines: m => ({ ...m, status: { ...m.status, hostname: 'wk-1' } }) }),
      ['MachineAmbiguous'],
    ],
    ['the silent', view({ action: 'reboot' }, { machine: silent }), ['MachineUnreachable']],
    ['one on its way', view({ action: 'reboot' }, { machine: ok(facts('wk-1', { stage: 'booting' })) }), ['MachineNotReady']],
    ['but not by force', view({ action: 'reboot', mode: 'force' }, { machine: ok(facts('wk-1', { stage: 'rebooting' })) }), []],
    [
      'force where Talos is too old for it',
      view({ action: 'reboot', mode: 'force' }, { machine: ok(facts('wk-1', { version: 'v1.11.6' })) }),
      ['ModeUnsupported'],
    ],
    ['a reboot in container mode', view({ action: 'reboot' }, { machine: container }), ['ContainerMode']],
    ['a reset there of partitions that it does not have', view({ action: 'reset' }, { machine: container }), ['ContainerMode']],
    ['but not one of all', view({ action: 'reset', wipe: 'disk' }, { machine: container }), []],
    ['etcd on a worker', view({ action: 'etcd-defrag' }), ['NotAControlPlane']],
    ['Nodes that cannot be read, where they are drained', view({ action: 'reboot' }, { nodes: 'away' }), ['KubernetesUnreachable']],
    ['but not where they are not', withService(ok({ id: 'ext-x', state: 'Running', health: 'unknown' }), { nodes: 'away' }), []],
    ['a service that it does not have', withService(ok(undefined)), ['UnknownService']],
    ['but not one whose state nobody tells', withService(silent), []],
    ['the reset of one of three', view({ action: 'reset' }, { of: 'cp-1' }), ['QuorumWouldBeLost']],
    ['unless that is accepted', view({ action: 'reset' }, { of: 'cp-1' }, { spec: { acknowledge: ['no-fault-tolerance'] } }), []],
    [
      'the reset of the last',
      view({ action: 'reset' }, { of: 'cp-1', without: ['cp-2', 'cp-3'] }, { spec: { acknowledge: ['no-fault-tolerance'] } }),
      ['LastControlPlane'],
    ],
    [
      'a control plane that is unwell itself',
      view({ action: 'reboot' }, { of: 'cp-1', etcd: { 'cp-1': ok(etcd('cp-1', { healthy: false })) } }),
      ['EtcdUnhealthy (overridable)'],
    ],
    [
      'one beside another that is unwell',
      view({ action: 'reboot' }, { of: 'cp-1', etcd: { 'cp-2': ok(etcd('cp-2', { healthy: false })) } }),
      ['EtcdUnhealthy'],
    ],
    [
      'two things at once',
      view({ action: 'forfeit-leadership' }, { machine: ok(facts('wk-1', { stage: 'booting' })) }),
      ['MachineNotReady', 'NotAControlPlane'],
    ],
  ])('%s', (_, v, expected) => expect(refusals(v)).toEqual(expected))
})

it.each<[string, string, RegExp[]]>([
  ['a reboot boots', 'reboot', [/^A configuration is staged on wk-1, which the reboot takes/]],
  ['so does a start after a shutdown', 'shutdown', [/^A configuration is staged on wk-1/]],
  ['a service does not', 'restart-service', []],
])('what is staged, %s, and it says so', (_, action, expected) => {
  const name = 'wk-1-aaaaa'
  const v = view(
    { action, service: 'ext-x' },
    {},
    {
      facts: {
        configurations: { [name]: ok({ running: 'a: 1\n', onDisk: 'a: 2\n', pending: 'staged' }) },
        services: { [serviceKey({ name, service: 'ext-x' })]: ok({ id: 'ext-x', state: 'Running', health: 'unknown' }) },
      },
    },
  )
  const told = checks(v.operation, v.world).notes.filter(note => note.includes('staged'))
  expect(told).toEqual(expected.map(pattern => expect.stringMatching(pattern) as string))
})

it('what a plan says', () => {
  const v = view({ action: 'reset', wipe: 'disk' }, { nodes: { 'wk-1': nodeFacts('wk-1') } })
  expect(stage(v).preview(v)).toEqual({
    from: 'running',
    to: 'off, its system disk wiped',
    loses: ['its pods, which are evicted first', 'everything on its disk'],
  })
})
