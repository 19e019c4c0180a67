// The official patcher of Talos 1.13.9 and ours make the same documents of the same patches, and refuse the same.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { documentOf, readText } from '../../../src/core/config-patch/documents.ts'
import { knownKinds } from '../../../src/core/config-patch/kinds.ts'
import { noteText } from '../../../src/core/config-patch/note.ts'
import { patchConfig } from '../../../src/core/config-patch/patch-config.ts'
import schema from '../../../src/core/config-patch/schema.json' with { type: 'json' }
import { documentKinds } from '../../../src/core/config-patch/shape.ts'
import { styleOf, writeDocuments } from '../../../src/core/config-patch/write.ts'
import { isMapping } from '../../../src/core/config-patch/yaml-nodes.ts'
import { realPart } from '../../real/parts.ts'
import { drawQuestion } from './config-patch-draw.ts'
import { jsonPatches, strategicPatches, type NamedPatches } from './config-patches.ts'
import { probe, probeWith } from './probe.ts'

const part = await realPart('talos-probe')

type Question = NamedPatches & { readonly config: string }
type Answer = { readonly patched?: string; readonly refused?: string; readonly other?: string; readonly otherRefused?: string }
type Compared = { readonly equal: number; readonly refused: number; readonly different: readonly string[] }

const CONTRACTS = ['v1.10', 'v1.11', 'v1.12', 'v1.13']
const DRAWN = { strategic: 500, json: 150 }

let configs: { readonly contract: string; readonly type: string; readonly config: string }[] = []

/** Those that JSON patches are for. */
const single = () => configs.filter(({ config }) => !config.includes('\n---\n'))

/** What Talos writes, we write the same. */
const rewritten = (text: string): string => {
  const read = readText(text)
  return read.ok
    ? writeDocuments(
        read.roots.flatMap(({ node }) => (isMapping(node) ? [documentOf(node)] : [])),
        styleOf(text),
      )
    : ''
}

/** Asks the official patcher, shows it our results, and says where both differ. */
async function compare(questions: readonly Question[]): Promise<Compared> {
  const ours = questions.map(({ config, patches }) =>
    patchConfig(
      config,
      patches.map((text, index) => ({ name: `patch ${index + 1}`, text })),
      'v1.13.9',
    ),
  )
  const asked = questions.map(({ config, patches }, index) => {
    const our = ours[index]!
    return JSON.stringify({ config, patches, ...(our.ok ? { other: our.text } : {}) })
  })
  const { lines, error } = await probeWith(asked.join('\n'), 'config-patch')
  expect(error).toBeUndefined()
  expect(lines).toHaveLength(questions.length)
  let [equal, refused] = [0, 0]
  const different: string[] = []
  for (const [index, { name }] of questions.entries()) {
    const [our, official] = [ours[index]!, lines[index] as Answer]
    if (our.ok && official.patched !== undefined && official.patched === official.other && rewritten(official.patched) === official.patched)
      equal++
    else if (!our.ok && official.refused !== undefined) refused++
    else
      different.push(
        `${name}: official ${official.refused ?? 'patched'}; ours ${our.ok ? (official.otherRefused ?? 'patched') : our.faults.map(noteText).join(', ')}`,
      )
  }
  return { equal, refused, different }
}

const told = (what: string, { equal, refused, different }: Compared): void =>
  console.log(`${what}: ${equal} equal documents and ${refused} refused by both of ${equal + refused + different.length}`)

describe.skipIf('missing' in part)('patches, beside the official patcher', () => {
  beforeAll(async () => {
    configs = (await probe('config-generate', ...CONTRACTS)).lines as typeof configs
  })

  test('configurations of a control plane and a worker of each contract, of one document and of several', () => {
    expect(configs.map(({ contract, type }) => `${contract} ${type}`)).toEqual(
      CONTRACTS.flatMap(contract => [`${contract} controlplane`, `${contract} worker`]),
    )
    expect([single().length, configs.length - single().length]).toEqual([4, 4])
  })

  test('the types of all documents are those of Talos 1.13.9', async () => {
    const [described] = (await probe('config-schema', ...documentKinds)).lines
    const fresh = { talos: '1.13', ...(described as object) }
    if (process.env.UPDATE_CONFIG_SCHEMA === '1')
      await writeFile(join(import.meta.dirname, '../../../src/core/config-patch/schema.json'), JSON.stringify(fresh, undefined, 2))
    expect(schema).toEqual(fresh)
    const [unknown] = (await probe('config-schema', 'NoSuchConfig')).lines
    expect(unknown).toBeUndefined()
    expect(documentKinds.filter(kind => !knownKinds.includes(kind))).toEqual([])
  })

  test('a configuration that is not patched stays as it is, byte for byte', async () => {
    for (const { config } of configs) expect(patchConfig(config, [], 'v1.13.9')).toMatchObject({ ok: true, text: config, changed: false })
    expect((await compare(configs.map(({ config }) => ({ name: 'none', patches: [], config })))).different).toEqual([])
  })

  test('picked by hand, on each configuration', async () => {
    const on = (list: readonly NamedPatches[], them: typeof configs): Question[] =>
      them.flatMap(({ contract, type, config }) => list.map(one => ({ ...one, name: `${one.name} (${contract} ${type})`, config })))
    const compared = await compare([
      ...on(strategicPatches, configs),
      ...on(jsonPatches, single()),
      ...on(jsonPatches.slice(0, 1), configs.slice(-1)),
    ])
    told('picked patches', compared)
    expect(compared.different).toEqual([])
    expect(compared.equal).toBeGreaterThan(300)
  })

  test.each([
    ['strategic merge', DRAWN.strategic, false],
    ['JSON', DRAWN.json, true],
  ])('drawn %s patches', async (what, count, isJson) => {
    const from = isJson ? single() : configs
    const questions = Array.from({ length: count }, (_, seed) => {
      const { configuration, patches } = drawQuestion(seed, from.length, isJson)
      return { name: `seed ${seed}`, patches, config: from[configuration]!.config }
    })
    const compared = await compare(questions)
    told(`drawn ${what} patches`, compared)
    expect(compared.different).toEqual([])
    // Most must come to something, or nothing was compared.
    expect(compared.equal).toBeGreaterThan(count / 3)
  })
})
