// What people write by mistake, and what they are told: all of it at once, before anything is written.
import { describe, expect, it } from 'vitest'
import { createStory, NAMESPACE, type StoryOptions } from '../../storm/story.ts'
import { RESOURCE } from '../../world/objects.ts'
import { asciiBytes, encodeBase64 } from '../../world/ports/base64.ts'
import { configSpec } from './spec.ts'

const MINUTE = 60_000
const PASSWORD = 'machine:\n  sysctls: {a: so-secret}\n'
const DIGITS = 'machine:\n  sysctls: {a: 0713}\n'

const refusals = async (config: object, options: StoryOptions = {}, spec: object = {}, refuses?: string): Promise<readonly string[]> => {
  const story = createStory({ seed: 3, ...options })
  const texts = { a: 'machine: {}\n', b: 'x', password: PASSWORD, digits: DIGITS }
  const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, encodeBase64(asciiBytes(text))]))
  story.world.store.create(RESOURCE.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'patches', namespace: NAMESPACE },
    data,
  })
  if (refuses !== undefined) story.world.fault('cp-3', { refusesConfig: refuses })
  story.start()
  await story.pass(MINUTE)
  story.create({ name: 'op', spec: { kind: 'config', ...spec, config } })
  await story.until('it has settled', () => ['Completed', 'Paused'].includes(story.operation('op')?.status.phase ?? ''))
  expect(story.world.journal.of('config-applied')).toEqual([])
  expect(story.holder()).toBe('')
  return (story.operation('op')?.status.preflight?.refusals ?? []).map(r => `${r.rule}: ${r.message}`)
}
const inline = (...texts: readonly string[]) => ({ patches: texts.map(text => ({ inline: text })) })
const inMachine = (text: string): string => `machine:\n  ${text.replaceAll('\n', '\n  ')}\n`

describe('a patch', () => {
  it.each<[string, string, string]>([
    [
      'a field that there is not',
      inMachine('sysctl:\n  net.core.somaxconn: "1"'),
      'UnknownField: patch 1, line 2, the main document, machine.sysctl: there is no such field; the nearest is sysctls.',
    ],
    [
      'a field of a document of its own',
      'apiVersion: v1alpha1\nkind: VLANConfig\nname: eth0.5\nvlanId: 5\n',
      'UnknownField: patch 1, line 4, VLANConfig eth0.5, vlanId: there is no such field; the nearest is vlanID.',
    ],
    [
      'an octal number that YAML 1.1 and 1.2 read as two',
      inMachine('files:\n  - path: /var/x\n    op: create\n    permissions: 0644\n    content: x'),
      'PatchAmbiguous: patch 1, line 5, the main document, machine.files[0].permissions: a number with a leading zero is octal to Talos; write 0o instead of the zero where that is meant, or quotes around a text.',
    ],
    [
      'a word that is a boolean to some',
      inMachine('install:\n  wipe: no'),
      'PatchAmbiguous: patch 1, line 3, the main document, machine.install.wipe: no without quotes is false to Talos; write false.',
    ],
    [
      'and a text to others',
      inMachine('nodeLabels:\n  spot: yes'),
      'PatchAmbiguous: patch 1, line 3, the main document, machine.nodeLabels.spot: yes without quotes is a text to Talos; write "yes" for the text, or true for the boolean.',
    ],
    [
      'what binds a machine to its cluster',
      'cluster:\n  secret: bm90aGluZw==\n',
      'PatchForbidden: patch 1, line 2, the main document, cluster.secret: a patch may not touch this; it binds the machine to its cluster, and stays as long as the cluster does.',
    ],
    [
      'the type of a machine',
      inMachine('type: worker'),
      'PatchForbidden: patch 1, line 2, the main document, machine.type: a patch may not touch this; a machine becomes another type by a reset and a new configuration.',
    ],
    [
      'a document that nobody knows',
      'apiVersion: v1alpha1\nkind: TimeSynConfig\n',
      'UnknownDocument: patch 1, line 2, TimeSynConfig: Talos knows no documents of kind TimeSynConfig; the nearest is TimeSyncConfig.',
    ],
    [
      'a list where a mapping belongs',
      inMachine('sysctls:\n  - a'),
      'PatchInvalid: patch 1, line 2, the main document, machine.sysctls: Talos wants a mapping here.',
    ],
    ['no YAML', 'machine: {', 'PatchInvalid: patch 1, line 1: a { or a [ is not closed, or what is in it is not indented.'],
    ['nothing', '# only a remark\n', 'PatchInvalid: patch 1: it says nothing; give a strategic merge patch, or a JSON patch.'],
    [
      'a pointer to nowhere',
      '- op: replace\n  path: /machine/sysctls/a\n  value: "1"\n',
      'PatchMatchesNothing: cp-1 cannot be patched: patch 1, line 1, [0]: there is nothing at /machine/sysctls/a; a JSON patch makes no way to its place: add what is around it first, or use a strategic merge patch. The same holds for cp-2, cp-3, wk-1, wk-2.',
    ],
    [
      'a document to delete that is not there',
      'apiVersion: v1alpha1\nkind: TimeSyncConfig\n$patch: delete\n',
      'PatchMatchesNothing: cp-1 cannot be patched: patch 1, line 1, TimeSyncConfig: the machine does not have TimeSyncConfig to delete from; leave the deletion out for this machine. The same holds for cp-2, cp-3, wk-1, wk-2.',
    ],
  ])('%s', async (_, text, expected) => {
    expect(await refusals(inline(text))).toEqual([expected])
  })

  it('is for a Talos that one machine has not yet', async () => {
    const [first = '', ...others] = await refusals(inline('apiVersion: v1alpha1\nkind: TimeSyncConfig\n'), {
      talos: 'v1.11.6',
      kubernetes: 'v1.33.1',
    })
    expect(first).toMatch(
      /^UnknownDocument: patch 1, line 2, TimeSyncConfig: documents of kind TimeSyncConfig are known from Talos 1\.12 on, and the machine runs v1\.11\.6; upgrade Talos first\.$/,
    )
    expect(others).toEqual([])
  })

  it('has several faults, all told at once, each with its line', async () => {
    const told = await refusals(inline(inMachine('sysctl: {}\ninstall:\n  wipe: no'), 'cluster:\n  token: abcdef.0123456789abcdef\n'))
    expect(told.map(text => text.replace(/:.*/, ''))).toEqual(['UnknownField', 'PatchForbidden', 'PatchAmbiguous'])
    expect(told[1]).toContain('patch 2, line 2')
    expect(told.join()).not.toContain('abcdef')
  })
})

describe('where a patch is', () => {
  it.each<[string, object, RegExp]>([
    [
      'a Secret that is not there',
      { secretKeyRef: { name: 'nobody', key: 'a' } },
      /^PatchMissing: patch 1: there is no Secret ichor-system\/nobody\.$/,
    ],
    [
      'a key that it has not',
      { secretKeyRef: { name: 'patches', key: 'c' } },
      /^PatchMissing: patch 1: Secret ichor-system\/patches has no key c \(it has: a, b, password, digits\)\.$/,
    ],
    [
      'a ConfigMap that is not there',
      { configMapKeyRef: { name: 'patches', key: 'a' } },
      /^PatchMissing: patch 1: there is no ConfigMap ichor-system\/patches\.$/,
    ],
    ['nowhere', {}, /^PatchMissing: patch 1: it names neither a text nor a Secret nor a ConfigMap\.$/],
  ])('%s', async (_, source, expected) => {
    const told = await refusals({ patches: [source] })
    expect(told).toEqual([expect.stringMatching(expected)])
  })

  it('a Secret, of which a machine that refuses it tells nothing', async () => {
    const told = await refusals({ patches: [{ secretKeyRef: { name: 'patches', key: 'password' } }] }, {}, {}, 'no such value: so-secret')
    expect(told).toEqual(['ConfigRejected: cp-3 refuses the patched configuration: no such value: (secret).'])
    const inlined = await refusals(inline(PASSWORD), {}, {}, 'no such value: so-secret')
    expect(inlined).toEqual(['ConfigRejected: cp-3 refuses the patched configuration: no such value: so-secret.'])
  })

  it('a Secret with a number that is read as another, which is not told', async () => {
    const [told = '', ...others] = await refusals({ patches: [{ secretKeyRef: { name: 'patches', key: 'digits' } }] })
    expect(told).toMatch(/^PatchAmbiguous: patch 1 \(Secret ichor-system\/patches, key digits\), line 2, .*machine\.sysctls\.a: a number/)
    expect(told).not.toContain('713')
    expect(others).toEqual([])
  })

  it('is longer than it may be, or there is none', () => {
    expect(configSpec.safeParse({ patches: [] }).success).toBe(false)
    expect(configSpec.safeParse({ patches: [{ inline: 'x'.repeat(32_769) }] }).success).toBe(false)
    expect(configSpec.safeParse({ patches: [{ inline: '' }] }).success).toBe(false)
    expect(configSpec.safeParse({ patches: [{ secretKeyRef: { name: 'a', key: 'no slash/' } }] }).success).toBe(false)
  })
})

describe('on which machines', () => {
  it('none that there is', async () => {
    expect(await refusals(inline('machine:\n  sysctls: {a: "1"}\n'), {}, { machineSelector: { names: ['wk-9'] } })).toEqual([
      expect.stringMatching(
        /^NoMachines: spec\.machineSelector \(one of wk-9\) matches none of the 5 machines of home\. The machines are cp-1-\w+, .*; the labels of TalosMachines ichor\.maesh\.dev\/role=controlplane, ichor\.maesh\.dev\/role=worker\.$/,
      ),
    ])
  })

  it('some in containers, which do not reboot', async () => {
    const told = await refusals({ mode: 'reboot', ...inline('machine:\n  sysctls: {a: "1"}\n') }, { platform: 'container' })
    expect(told).toEqual([
      expect.stringMatching(/^ContainerMode: cp-1, cp-2, cp-3, wk-1, wk-2 run in container mode, in which Talos does not reboot\.$/),
    ])
  })

  it('some that do not tell what is staged', async () => {
    const told = await refusals(
      { mode: 'staged', ...inline('machine:\n  sysctls: {a: "1"}\n') },
      { talos: 'v1.9.6', kubernetes: 'v1.32.4' },
    )
    expect(told).toContainEqual(
      expect.stringMatching(/^ModeUnsupported: cp-1 runs v1\.9\.6, which does not tell what is staged; that came with Talos 1\.10/),
    )
  })

  it('one of two control planes to reboot, which nobody accepted', async () => {
    const told = await refusals({ mode: 'reboot', ...inline('machine:\n  sysctls: {a: "1"}\n') }, { controlPlanes: 1 })
    expect(told).toEqual([expect.stringMatching(/api-outage/)])
  })
})
