import { describe, expect, it } from 'vitest'
import type { ActPorts, LongOutcome, Step } from '../../core/kind.ts'
import type { Fault, FaultKind, Result } from '../../ports/fault.ts'
import { steps } from './steps.ts'
import { ANNOTATION } from '../../api/names.ts'
import { at, given, node, UID, type Given } from './test-view.ts'

const step = (name: string): Step => {
  const found = steps.find(s => s.name === name)
  if (!found?.act) throw new Error(`no act ${name}`)
  return found
}

const fine: Result<void> = { ok: true, value: undefined }
const call = { cancellation: { cancelled: false, onCancel: () => () => {} }, progress: () => {} }

/** Ports that write down what they were asked, and answer what the test says. */
const ports = (answers: Readonly<Record<string, unknown>> = {}) => {
  const asked: unknown[][] = []
  const port = new Proxy(
    {},
    {
      get:
        (_, name: string) =>
        (...args: unknown[]) => {
          asked.push([name, ...args.filter(arg => arg !== call)])
          return Promise.resolve(answers[name] ?? fine)
        },
    },
  )
  return { ports: { talos: port, kube: port } as ActPorts, asked }
}

const act = async (name: string, over: Given, answers?: Readonly<Record<string, unknown>>) => {
  const { act: what } = step(name)
  const { ports: open, asked } = ports(answers)
  const view = given(over)
  if (!what) throw new Error(`${name} has no act`)
  const result: Result<LongOutcome | void> = what.long ? await what.run(open, view, call) : await what.run(open, view)
  return {
    result,
    asked: asked.map(
      ([call_, ...args]) =>
        `${String(call_)} ${args.map(a => (typeof a === 'string' ? a : JSON.stringify(a, ['name', 'image', 'preserve', 'rebootMode']))).join(' ')}`,
    ),
  }
}

const IMAGE = 'ghcr.io/siderolabs/installer:v1.13.9'

describe('what is asked of whom', () => {
  it.each([
    ['pull', {}, [`pull 10.5.0.5 ${IMAGE}`]],
    ['transfer-leadership', { of: 'cp-1' }, ['forfeitLeadership 10.5.0.2']],
    ['cordon', {}, [`cordon {"name":"wk-1"} ${UID}`]],
    ['cordon', { nodes: { 'wk-1': undefined } }, []],
    ['reboot', {}, ['reboot 10.5.0.5 default']],
    ['reboot', { spec: { talos: { version: 'v1.13.9', rebootMode: 'powercycle' } } }, ['reboot 10.5.0.5 powercycle']],
    ['upgrade', { of: 'cp-1' }, [`upgrade 10.5.0.2 {"image":"${IMAGE}","preserve":false,"rebootMode":"default"}`]],
    [
      'upgrade',
      { of: 'cp-1', without: ['cp-2', 'cp-3'] },
      [`upgrade 10.5.0.2 {"image":"${IMAGE}","preserve":true,"rebootMode":"default"}`],
    ],
    ['upgrade', {}, [`upgrade 10.5.0.5 {"image":"${IMAGE}","preserve":false,"rebootMode":"default"}`]],
    ['record-image', {}, [`setInstallImage 10.5.0.5 ${IMAGE}`]],
    ['uncordon', { nodes: { 'wk-1': node('wk-1', { annotations: { [ANNOTATION.cordonedBy]: UID } }) } }, ['uncordon {"name":"wk-1"}']],
    ['pull', { machines: m => ({ ...m, spec: { ...m.spec, address: '192.0.2.9' } }) }, [`pull 192.0.2.9 ${IMAGE}`]],
  ] as readonly (readonly [string, Given, readonly string[]])[])('%s %#', async (name, over, expected) => {
    const image = { image: IMAGE, schematic: '', way: 'lifecycle', drain: 'wait', node: over.of ?? 'wk-1' }
    const { asked } = await act(name, { ...over, target: { goal: image, ...over.target } })
    expect(asked).toEqual(expected)
  })

  it('installs what was pulled, by its digest', async () => {
    const pinned = `${IMAGE}@sha256:${'0'.repeat(64)}`
    const { asked, result } = await act(
      'install',
      { target: { receipts: [{ step: 'pull', bootID: 'old-wk-1', value: pinned, at: at(1000) }] } },
      { install: { ok: true, value: { exitCode: 0, lines: ['done'] } } },
    )
    expect(asked).toEqual([`install 10.5.0.5 ${pinned}`])
    expect(result).toEqual({ ok: true, value: { receipt: `exit code 0, ${pinned}` } })
  })
})

describe('how the installer ended', () => {
  it.each([
    [0, ['done'], 'receipt'],
    [1, ['failed to probe bootloader'], 'InstallFailed'],
    [2, ['invalid input'], 'InstallFailed'],
    [3, ['unsupported path'], 'InstallFailed'],
    [4, ['pre-flight checks failed: host version 1.11 is too old'], 'InstallFailed'],
    [4, ['no space left on device'], 'again'],
    [5, ['dependency'], 'again'],
    [6, ['I/O error'], 'again'],
    [7, ['install'], 'again'],
    [137, [], 'InstallFailed'],
  ])('exit code %d, %j: %s', async (exitCode, lines, expected) => {
    const { result } = await act('install', {}, { install: { ok: true, value: { exitCode, lines } } })
    if (!result.ok) {
      expect(expected).toBe('again')
      expect(result.fault).toEqual({ kind: 'busy', message: `the installer ended with exit code ${exitCode}: ${lines[0]}` })
      return
    }
    const value = result.value as LongOutcome
    if ('receipt' in value) return expect(expected).toBe('receipt')
    expect(value.failed.reason).toBe(expected)
    expect(value.failed.message).toMatch(new RegExp(`exit code ${exitCode}: .*The machine still runs v1\\.13\\.5, wanted v1\\.13\\.9\\.$`))
  })
})

describe('which answers end a step, and which are tried again [B171 home-operations/tuppr#113]', () => {
  const fatal = (name: string, kind: FaultKind): string | undefined => {
    const fault: Fault = { kind, message: 'said the server' }
    return step(name).act?.fatal?.(fault, given())?.reason
  }
  it.each([
    ['pull', 'notFound', 'ImageNotFound'],
    ['pull', 'forbidden', 'PermissionDenied'],
    ['pull', 'unauthenticated', 'CredentialRejected'],
    ['pull', 'unreachable', undefined],
    ['pull', 'unknown', undefined],
    // Talos 1.14 answers so for a moment while it installs.
    ['install', 'forbidden', undefined],
    ['install', 'precondition', undefined],
    ['reboot', 'forbidden', undefined],
    ['reboot', 'unreachable', undefined],
    ['upgrade', 'notFound', 'ImageNotFound'],
    ['upgrade', 'forbidden', 'PermissionDenied'],
    ['upgrade', 'unknown', undefined],
    ['cordon', 'forbidden', 'PermissionDenied'],
    ['cordon', 'conflict', undefined],
    ['drain', 'forbidden', 'PermissionDenied'],
    ['record-image', 'invalid', 'ConfigRejected'],
    ['record-image', 'unreachable', undefined],
  ] as const)('%s: %s is %s', (name, kind, reason) => {
    expect(fatal(name, kind)).toBe(reason)
  })

  it('what may take something away is fenced, and what commits is named', () => {
    expect(steps.filter(s => s.act?.disruptive).map(s => s.name)).toEqual([
      'install',
      'transfer-leadership',
      'cordon',
      'drain',
      'reboot',
      'upgrade',
    ])
    expect(steps.filter(s => s.commits).map(s => s.name)).toEqual(['install', 'upgrade'])
    expect(steps.filter(s => s.milestone).map(s => s.name)).toEqual(['reboot', 'upgrade'])
  })
})
