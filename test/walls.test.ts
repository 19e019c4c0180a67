// The walls between the rooms, proved by files that must fail: test/walls/bad stands for the tree.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')
const bin = (name: string) => join(root, 'node_modules', '.bin', name)

const mustFailLint = {
  'core/imports-engine.ts': 'core may not import engine',
  'core/imports-node.ts': 'core may not import node:fs',
  'core/imports-value-of-zod.ts': 'core may not import zod',
  'core/imports-value-of-port.ts': 'core may import only types of ports',
  'adapters/kube/imports-adapter.ts': 'adapters/kube may not import adapters/talos',
  'kinds/reboot/imports-kind.ts': 'kind reboot may not import kind talos',
  'unheard-of/imports.ts': 'is a room that scripts/walls.ts does not know',
  'core/asks-clock.ts': 'Date.now is closed in the pure rooms',
  'engine/makes-date.ts': 'new Date() is closed in the pure rooms',
  'world/rolls-dice.ts': 'Math.random is closed in the pure rooms',
  'engine/floats-promise.ts': 'Promises must be awaited',
}
const mustFailCompiler = {
  'core/imports-node.ts': "Cannot find name 'node:fs'",
  'core/reads-process.ts': "Cannot find name 'process'",
  'core/sets-timeout.ts': "Cannot find name 'setTimeout'",
  'engine/fetches.ts': "Cannot find name 'fetch'",
}

interface Outcome {
  code: number
  said: string
}

const run = (command: string, args: string[]) =>
  new Promise<Outcome>(resolve => {
    execFile(command, args, { cwd: root, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, said: stdout + stderr })
    })
  })

// The file and line of a problem, and how often the same problem came.
const problemsIn = (outcome: Outcome, file: string) =>
  outcome.said.split('\n').filter(line => line.startsWith(`test/walls/bad/src/${file}`))

describe('the lint', () => {
  let outcome: Outcome
  beforeAll(async () => {
    outcome = await run(bin('oxlint'), ['--type-aware', '--config', 'test/walls/oxlintrc.json', '--format', 'unix', 'test/walls/bad'])
  }, 60_000)

  it('fails', () => expect(outcome.code).not.toBe(0))

  it.each(Object.entries(mustFailLint))('refuses %s: %s', (file, reason) => {
    const problems = problemsIn(outcome, file)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(reason)
  })

  it('refuses nothing else', () => {
    const refused = [...outcome.said.matchAll(/^test\/walls\/bad\/src\/(.+?):/gm)].map(match => match[1]!)
    expect(refused.toSorted()).toEqual(Object.keys(mustFailLint).toSorted())
  })
})

describe('the compiler', () => {
  let outcome: Outcome
  beforeAll(async () => {
    outcome = await run(bin('tsc'), ['--project', 'test/walls/tsconfig.json', '--pretty', 'false'])
  }, 60_000)

  it('fails', () => expect(outcome.code).not.toBe(0))

  it.each(Object.entries(mustFailCompiler))('refuses %s: %s', (file, reason) => {
    const problems = problemsIn(outcome, file)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(reason)
  })

  it('refuses nothing else', () => {
    const refused = [...outcome.said.matchAll(/^test\/walls\/bad\/src\/(.+?)\(/gm)].map(match => match[1]!)
    expect(refused.toSorted()).toEqual(Object.keys(mustFailCompiler).toSorted())
  })
})

it('stands around every file of the pure rooms, and lets no Node in', async () => {
  const { said } = await run(bin('tsc'), ['--project', 'tsconfig.pure.json', '--listFilesOnly'])
  const compiled = said.split('\n').map(path => relative(root, path))
  const sources = ['api', 'core', 'ports', 'kinds', 'engine', 'world']
    .map(room => join('src', room))
    .filter(folder => existsSync(join(root, folder)))
    .flatMap(folder => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(name => join(folder, name)))
    .filter(path => path.endsWith('.ts') && !/\.(test|conformance)\.ts$/.test(path))
  expect(sources.filter(path => !compiled.includes(path))).toEqual([])
  expect(compiled.filter(path => path.startsWith('node_modules/@types/node/') || /\.(test|conformance)\.ts$/.test(path))).toEqual([])
}, 60_000)
