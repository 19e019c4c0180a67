// The generators of CRDs and pages, on samples. That the committed files are fresh is asked by `npm run generate -- --check`.
import { Command } from 'commander'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { durationMs } from '../src/api/duration.ts'
import { REASONS } from '../src/api/reasons.ts'
import { toCrd } from '../src/api/structural.ts'
import { talosMachine } from '../src/api/talos-machine.ts'
import { talosOperation } from '../src/api/talos-operation.ts'
import type { Step } from '../src/core/kind.ts'
import { blockOf, no, YES } from '../src/core/kind.ts'
import { compatibilityTable } from '../src/core/compatibility/table.ts'
import { cliPage } from '../scripts/generate/cli-page.ts'
import { compatibilityPage } from '../scripts/generate/compatibility-page.ts'
import { crdFiles } from '../scripts/generate/crds.ts'
import { claimsIn, fieldCasesPage, wrongClaims, type FieldCase } from '../scripts/generate/field-cases-page.ts'
import { differences, settle } from '../scripts/generate/files.ts'
import { kindPages, stepsByReason, type DocumentedKind } from '../scripts/generate/kind-pages.ts'
import { reasonsPage } from '../scripts/generate/reasons-page.ts'
import { resourcePages } from '../scripts/generate/resource-pages.ts'

const spec = z.object({
  version: z.string().max(64).meta({ description: 'The version | to install.' }),
  snapshot: z.enum(['auto', 'skip']).default('auto').meta({ description: 'Whether to save first.' }),
})
const steps: Step[] = [
  {
    name: 'gate',
    summary: 'It may go.',
    applies: view => view.target.role === 'controlplane',
    done: () => YES,
    stableMs: ({ world }) => world.timing.etcdStableMs,
    failure: 'EtcdUnhealthy',
    deadlineMs: () => 600_000,
  },
  {
    name: 'reboot',
    summary: 'It boots anew.',
    done: () => no('not yet'),
    milestone: true,
    failure: ({ target }) => (target.role === 'worker' ? 'RebootTimeout' : 'MachineNotReady'),
    deadlineMs: ({ operation, target }) => durationMs(operation.spec.timeouts.reboot) * (target.role === 'worker' ? 1 : 2),
    act: {
      long: false,
      describe: () => 'rebooting',
      disruptive: true,
      run: () => Promise.resolve({ ok: true as const, value: undefined }),
    },
  },
  {
    name: 'verify',
    summary: 'It is right.',
    done: () => YES,
    failure: 'VersionMismatch',
    deadlineMs: ({ operation }) => blockOf(kind, operation).version.length,
  },
]
const kind = {
  name: 'talos',
  block: 'talos',
  summary: 'Upgrades Talos.',
  spec,
  stages: [
    {
      name: 'machines',
      summary: 'One after the other.',
      orderNeeds: () => [],
      order: () => [],
      turn: () => YES,
      open: () => ({ skip: '' }),
      steps,
      abandon: [],
      preview: () => ({ from: '', to: '', loses: [] }),
    },
  ],
} satisfies DocumentedKind

const only = (files: ReadonlyMap<string, string>): string => {
  expect(files.size).toBe(1)
  return [...files.values()][0]!
}
const rowOf = (page: string, cell: string): string[] | undefined =>
  page
    .split('\n')
    .find(line => line.startsWith(`| ${cell} |`))
    ?.split(/(?<!\\)\|/)
    .slice(1, -1)
    .map(text => text.trim())

describe('CRD files', () => {
  it('are what the API server is to get, also for readers of YAML 1.1', () => {
    const n = z
      .object({ n: z.enum(['y', 'no', 'on', '012', '1:30']).default('on').meta({ description: 'off' }) })
      .meta({ description: 'yes' })
    const definition = { ...talosMachine, spec: n }
    const text = only(crdFiles([definition]))
    for (const version of ['1.1', '1.2'] as const) expect(parse(text, { version })).toEqual(JSON.parse(JSON.stringify(toCrd(definition))))
    expect(text).toMatch(/^# Generated from src\/api by npm run generate; do not edit\.\n/)
    expect(text).toContain('"n":')
  })
})

describe('pages of resources', () => {
  const page = resourcePages([talosOperation([kind])]).get('docs/reference/resources/talosoperation.md')!

  it('show each field with type, default, bounds and sentence', () => {
    expect(rowOf(page, '`talos.version` (required)')).toEqual([
      '`talos.version` (required)',
      'string',
      '',
      'at most 64 characters',
      'The version \\| to install.',
    ])
    expect(rowOf(page, '`talos.snapshot`')?.slice(1, 4)).toEqual(['string', '`"auto"`', 'one of `auto`, `skip`'])
    expect(rowOf(page, '`maxUnavailable`')?.slice(1, 4)).toEqual([
      'integer or string',
      '`1`',
      'must be a number from 1 to 1000 or a percentage from 1% to 100%',
    ])
    expect(rowOf(page, '`machineSelector.matchLabels`')?.slice(1, 4)).toEqual([
      'map of string',
      '',
      'at most 32 entries; each: at most 63 characters',
    ])
    expect(rowOf(page, '`machines[].before.bootID`')?.[1]).toBe('string')
    expect(rowOf(page, '`startedAt`')?.[1]).toBe('time')
    expect(rowOf(page, '`failureReason`')?.[3]).toBe('one of the [reasons](../reasons.md)')
  })

  it('show rules, once each, and columns', () => {
    expect(page).toContain('- `spec.talos` must be set exactly when spec.kind is talos.')
    expect(page).toMatch(/- `spec\.clusterRef`, `spec\.kind`, .*`spec\.talos` cannot be changed after creation\./)
    expect(page).toContain('- `spec.override`, `spec.cancelled` can only be turned on.')
    expect(rowOf(page, 'Done')).toEqual([
      'Done',
      'always',
      '`.status.progress.summary`',
      'Machines done of all, in which stage of how many.',
    ])
    expect(rowOf(page, 'Lock')?.[1]).toBe('with `-o wide`')
  })
})

describe('pages of kinds', () => {
  const page = only(kindPages([kind]))

  it('show the block and the steps, as far as the value tells', () => {
    expect(rowOf(page, '`snapshot`')?.[1]).toBe('string')
    expect(rowOf(page, '`gate`')).toEqual([
      '`gate`',
      'It may go.',
      'control planes',
      '10m',
      '[EtcdUnhealthy](../reasons.md#etcdunhealthy)',
      'only waits; must hold for 20s',
    ])
    expect(rowOf(page, '`reboot`')?.slice(2, 5)).toEqual([
      'every machine',
      '1h for a control plane, 30m for a worker',
      '[MachineNotReady](../reasons.md#machinenotready), [RebootTimeout](../reasons.md#reboottimeout)',
    ])
    expect(rowOf(page, '`reboot`')?.[5]).toContain('disruptive')
    // A question that needs the operation's own fields has no answer here.
    expect(rowOf(page, '`verify`')?.[3]).toBe('depends on the machine')
  })

  it('show a kind without stages', () => {
    const { stages: _, ...bare } = kind
    expect(only(kindPages([bare]))).not.toContain('## Stage')
  })
})

it('the page of reasons has every reason with its sentence and who gives it', () => {
  const page = only(reasonsPage(stepsByReason([kind])))
  for (const [reason, sentence] of Object.entries(REASONS)) expect(page).toContain(`## ${reason}\n\n${sentence}\n`)
  expect(page).toContain('Given by: [talos: reboot](kinds/talos.md).')
})

it('the page of commands has every command that is not hidden', () => {
  const program = new Command('ichor').description('Operations.').option('-n, --namespace <name>', 'Where.')
  const upgrade = program.command('upgrade').description('Upgrades.')
  upgrade
    .command('talos')
    .description('Upgrades Talos.')
    .argument('<version>', 'Which.')
    .option('--drain <policy>', 'How.', 'wait')
    .alias('os')
  program.command('secret', { hidden: true }).description('Not shown.')
  const page = only(cliPage(program, { ok: { code: 0, meaning: 'Done.' } }))
  expect(page).toContain('### ichor upgrade talos\n\nUpgrades Talos.\n\n```\nichor upgrade talos [options] <version>\n```')
  expect(page).toContain('Also as `ichor upgrade os`.')
  expect(rowOf(page, '`--drain <policy>`')).toEqual(['`--drain <policy>`', '`wait`', 'How.'])
  expect(rowOf(page, '0')).toEqual(['0', 'Done.'])
  expect(page).not.toContain('secret')
})

it('the page of compatibility has every row with its sources', () => {
  const page = only(compatibilityPage(compatibilityTable))
  for (const { minor } of [...compatibilityTable.talosMinors, ...compatibilityTable.ciliumMinors])
    expect(rowOf(page, minor), minor).toBeDefined()
  for (const { id } of [...compatibilityTable.faults, ...compatibilityTable.etcdSteps])
    expect(rowOf(page, id)?.at(-1), id).toContain('](https://')
  for (const { version } of compatibilityTable.talosReleases) expect(rowOf(page, version), version).toBeDefined()
})

describe('field cases', () => {
  const cases: FieldCase[] = [
    { id: 'B001', title: 'A fault', urls: ['https://github.com/siderolabs/talos/issues/7697', 'https://github.com/a/b/commit/bf8ec45'] },
    { id: 'B003', title: 'Another', urls: ['https://example.org/a-story'] },
  ]
  // In two pieces, or this file would claim the cases.
  const tag = (id: string, report = '') => `[B${id}${report && ` ${report}`}]`
  const claims = (line: string) => claimsIn('src/a.test.ts', line)

  it('are claimed by tags in titles', () => {
    expect(claims(`it('asks for a v ${tag('001', 'siderolabs/talos#7697')}', () => {})`)).toEqual([
      { id: 'B001', report: 'siderolabs/talos#7697', path: 'src/a.test.ts', test: 'asks for a v' },
    ])
    expect(claims(`it("${tag('001')} ${tag('003')} don't", () => {})`).map(({ id, test }) => [id, test])).toEqual([
      ['B001', "don't"],
      ['B003', "don't"],
    ])
    expect(claims(`it('isn\\'t lost ${tag('001')}')`)[0]?.test).toBe("isn't lost")
    expect(claims(`// nothing but a comment ${tag('001')}`)).toEqual([])
    expect(claims(`it.skip('later ${tag('001')}')\nit.todo("${tag('003')} later")`)).toEqual([])
    expect(claims(`it.skipIf(missing)('on a real server ${tag('001')}')`)).toHaveLength(1)
  })

  it('are refused where the tag names no case or another report', () => {
    const wrong = (text: string) => wrongClaims(cases, claims(`it('x ${text}')`))
    expect(wrong(tag('001', 'siderolabs/talos#7697'))).toEqual([])
    expect(wrong(tag('001', 'a/b@bf8ec45'))).toEqual([])
    expect(wrong(tag('003', 'example.org'))).toEqual([])
    expect(wrong(tag('002'))).toEqual(['src/a.test.ts: "x" names B002, which is no field case'])
    expect(wrong(tag('001', 'siderolabs/talos#1'))[0]).toContain(
      'names siderolabs/talos#1, which is no report of B001 (siderolabs/talos#7697, a/b@bf8ec45)',
    )
  })

  it('are listed with their tests or as not yet done', () => {
    const page = only(fieldCasesPage(cases, claims(`it('asks for a v ${tag('001')}')`)))
    expect(page).toContain('1 of 2 have a test.')
    expect(rowOf(page, 'B001')?.at(-1)).toBe('[asks for a v](../src/a.test.ts)')
    expect(rowOf(page, 'B003')?.slice(2)).toEqual(['[example.org](https://example.org/a-story)', 'not yet'])
  })

  it('are ninety', () => {
    const all = JSON.parse(readFileSync(join(import.meta.dirname, '../docs/field-cases.json'), 'utf8')) as FieldCase[]
    expect(all).toHaveLength(90)
    expect(new Set(all.map(({ id }) => id)).size).toBe(90)
    for (const { id, title, urls } of all) {
      expect(id).toMatch(/^B\d{3}$/)
      expect(title).not.toBe('')
      expect(urls.length, id).toBeGreaterThan(0)
      for (const url of urls) expect(URL.canParse(url), url).toBe(true)
    }
  })
})

describe('files on disk', () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'ichor-generate-'))
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  it('differ until they are settled', () => {
    const files = new Map([
      ['docs/a.md', 'a'],
      ['crds/b.yaml', 'b'],
    ])
    expect(differences(root, files, ['crds'])).toEqual([
      { path: 'crds/b.yaml', what: 'is missing' },
      { path: 'docs/a.md', what: 'is missing' },
    ])
    settle(root, files, differences(root, files, ['crds']))
    expect(differences(root, files, ['crds'])).toEqual([])

    writeFileSync(join(root, 'docs/a.md'), 'edited')
    writeFileSync(join(root, 'docs/own.md'), 'by hand')
    writeFileSync(join(root, 'crds/old.yaml'), 'old')
    const found = differences(root, files, ['crds'])
    expect(found).toEqual([
      { path: 'crds/old.yaml', what: 'is no longer generated' },
      { path: 'docs/a.md', what: 'differs' },
    ])
    settle(root, files, found)
    expect(readFileSync(join(root, 'docs/a.md'), 'utf8')).toBe('a')
    expect(existsSync(join(root, 'crds/old.yaml'))).toBe(false)
    expect(existsSync(join(root, 'docs/own.md'))).toBe(true)
  })
})
