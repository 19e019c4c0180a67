// Loads the storm, as it is or with one line of the source spoiled.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { sabotages } from './sabotages/all.ts'
import type { Sabotage } from './spoiling.ts'

const root = join(import.meta.dirname, '..', '..')

export type Storm = Pick<typeof import('../../src/storm/judge.ts'), 'judge' | 'replay' | 'shrink'> &
  Pick<typeof import('../../src/storm/draw.ts'), 'drawPlan'>

const ENTRY = `export { judge, replay, shrink } from './src/storm/judge.ts'
export { drawPlan } from './src/storm/draw.ts'`

export const sabotageOf = (name: string): Sabotage | undefined => sabotages.find(s => s.name === name)

/** The source of the files with the sabotage done, by path; throws where a line is not there exactly once. */
const spoiled = ({ name, also = [], ...first }: Sabotage): ReadonlyMap<string, string> => {
  const files = new Map<string, string>()
  for (const { file, find, replace } of [first, ...also]) {
    const path = join(root, file)
    const source = files.get(path) ?? readFileSync(path, 'utf8')
    const times = source.split(find).length - 1
    if (times !== 1) throw new Error(`sabotage ${name}: its line is ${times} times in ${file}, and has to be there once`)
    files.set(
      path,
      source.replace(find, () => replace),
    )
  }
  return files
}

export const loadStorm = async (sabotage?: Sabotage): Promise<Storm> => {
  if (!sabotage) {
    const [{ judge, replay, shrink }, { drawPlan }] = await Promise.all([
      import('../../src/storm/judge.ts'),
      import('../../src/storm/draw.ts'),
    ])
    return { judge, replay, shrink, drawPlan }
  }
  const files = spoiled(sabotage)
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    plugins: [
      {
        name: 'sabotage',
        setup: builder =>
          builder.onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const contents = files.get(path)
            return contents === undefined ? undefined : { contents, loader: 'ts' }
          }),
      },
    ],
  })
  const folder = join(root, '.cache', 'storm')
  mkdirSync(folder, { recursive: true })
  const target = join(folder, `${sabotage.name}-${process.pid}.mjs`)
  writeFileSync(target, outputFiles[0]?.text ?? '')
  return (await import(/* @vite-ignore */ pathToFileURL(target).href)) as Storm
}
