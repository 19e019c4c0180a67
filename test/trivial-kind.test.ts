// Adding a kind touches one new file, its test and one line of the registry. Here is such a file's whole content, and the list with the line; the CRD,
// the command, the page, the plan and the run follow from it. Nothing else knows of it.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { kindPages } from '../scripts/generate/kind-pages.ts'
import { toCrd } from '../src/api/structural.ts'
import { talosOperation } from '../src/api/talos-operation.ts'
import { envelopeFlags, kindFlags, specOf } from '../src/app/cli/kind-flags.ts'
import { YES, kind, no, wait } from '../src/core/kind.ts'
import { openTargets } from '../src/core/ledger.ts'
import { machineFacts } from '../src/core/world.ts'
import { planOperation } from '../src/engine/plan.ts'
import { timing } from '../src/core/timing.ts'
import { kinds } from '../src/kinds/registry.ts'
import { CLUSTER, NAMESPACE, createStory } from '../src/storm/story.ts'
import { openPorts } from '../src/world/ports/open.ts'

const poke = kind({
  name: 'poke',
  block: 'poke',
  summary: 'Reboots every machine, one after the other.',
  spec: z.object({ mode: z.enum(['default', 'powercycle']).default('default').meta({ description: 'How machines are rebooted.' }) }),
  checkNeeds: () => [],
  checks: () => ({ found: {}, refusals: [], notes: [] }),
  stages: [
    {
      name: 'poke',
      summary: 'One machine after the other, in the order of their names.',
      orderNeeds: () => [],
      order: (_, world) =>
        world.machines.map(({ metadata, spec, status: { hostname } }) => ({
          name: metadata.name,
          role: spec.role,
          ...(hostname ? { hostname } : {}),
        })),
      turn: ({ operation }) => (openTargets(operation.status).length > 0 ? wait('another one is away') : YES),
      open: () => ({ open: { goal: {} } }),
      steps: [
        {
          name: 'reboot',
          summary: 'Reboots the machine.',
          done: ({ world, target }) => {
            const facts = machineFacts(world, target.name)
            return facts.ok && facts.value.bootID !== target.before?.bootID && facts.value.ready && facts.value.stage === 'running'
              ? YES
              : no('it has not come back')
          },
          act: {
            long: false,
            disruptive: true,
            describe: () => 'rebooting',
            run: ({ talos }, { world, target }) =>
              talos.reboot(world.machines.find(m => m.metadata.name === target.name)?.spec.address ?? '', 'default'),
          },
          settleMs: ({ world }) => world.timing.rebootSettleMs,
          deadlineMs: () => 1_800_000,
          failure: 'RebootTimeout',
        },
      ],
      abandon: [],
      preview: ({ target }) => ({ from: 'running', to: 'rebooted', loses: [`${target.hostname ?? target.name}, until it is back`] }),
    },
  ],
})

const registry = [...kinds, poke]

describe('a new kind is one value and one line', () => {
  it('brings its block of the CRD, with the rules of the envelope', () => {
    const crd = JSON.stringify(toCrd(talosOperation(registry)))
    expect(crd).toContain('How machines are rebooted.')
    expect(crd).toContain("(self.kind == 'poke') == has(self.poke)")
    expect(crd).toContain(kinds.map(k => `"${k.name}",`).join('') + '"poke"')
  })

  it('brings its command: flags with their words, choices and checks', () => {
    expect(kindFlags(poke).map(({ option }) => `${option.flags}: ${option.description}`)).toEqual([
      '--mode <choice>: how machines are rebooted (default: default)',
    ])
    expect(envelopeFlags(registry).length).toBeGreaterThan(5)
    expect(specOf(registry, poke, CLUSTER, undefined, { mode: 'powercycle' }).complete).toMatchObject({
      kind: 'poke',
      poke: { mode: 'powercycle' },
      clusterRef: { name: CLUSTER },
    })
  })

  it('brings its page', () => {
    const page = kindPages(registry).get('docs/reference/kinds/poke.md') ?? ''
    expect(page).toContain('Reboots every machine, one after the other.')
    expect(page).toContain('How machines are rebooted.')
    expect(page).toContain('[RebootTimeout](../reasons.md#reboottimeout)')
  })

  it('is planned, and runs to its end', async () => {
    const story = createStory({ kinds: registry, controlPlanes: 1, workers: 1, homeOutside: true })
    story.start()
    await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 2)
    const ports = openPorts(story.world, { name: 'planner', operation: talosOperation(registry) })
    const spec = specOf(registry, poke, CLUSTER, undefined, {}).complete
    const plan = await planOperation({ ...ports, timing: timing(), self: undefined }, poke, NAMESPACE, 'p', spec)
    expect(plan).toMatchObject({
      ok: true,
      value: { refusals: [], order: [{ name: 'cp-1', loses: ['cp-1, until it is back'] }, { name: 'wk-1' }] },
    })
    story.create({ name: 'p', spec: { kind: 'poke', poke: {} } })
    await story.until('it is completed', () => story.operation('p')?.status.phase === 'Completed')
    expect(story.world.journal.of('reboot-requested').map(e => e.machine)).toEqual(['cp-1', 'wk-1'])
  })
})
