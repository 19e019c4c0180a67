// Loads the storm, as it is or with one line of the source spoiled.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { type Sabotage, sabotages } from './sabotages.ts'

const root = join(import.meta.dirname, '..', '..')

export type Storm = Pick<typeof import('../../src/storm/judge.ts'), 'judge' | 'replay' | 'shrink'> &
  Pick<typeof import('../../src/storm/draw.ts'), 'drawPlan'>

const ENTRY = `export { judge, replay, shrink } from './src/storm/judge.ts'
export { drawPlan } from './src/storm/draw.ts'`

export const sabotageOf = (name: string): Sabotage | undefined => sabotages.find(s => s.name === name)

/** The source of a file with the sabotage done; throws where its line is not there exactly once. */
export const spoiled = ({ name, file, find, replace }: Sabotage): string => {
  const source = readFileSync(join(root, file), 'utf8')
  const times = source.split(find).length - 1
  if (times !== 1) throw new Error(`sabotage ${name}: its line is ${times} times in ${file}, and has to be there once`)
  return source.replace(find, () => replace)
}

export const loadStorm = async (sabotage?: Sabotage): Promise<Storm> => {
  if (!sabotage) {
    const [{ judge, replay, shrink }, { drawPlan }] = await Promise.all([
      import('../../src/storm/judge.ts'),
      import('../../src/storm/draw.ts'),
    ])
    return { judge, replay, shrink, drawPlan }
  }
  const contents = spoiled(sabotage)
  const path = join(root, sabotage.file)
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
        setup: builder => builder.onLoad({ filter: /\.ts$/ }, ({ path: file }) => (file === path ? { contents, loader: 'ts' } : undefined)),
      },
    ],
  })
  const folder = join(root, '.cache', 'storm')
  mkdirSync(folder, { recursive: true })
  const target = join(folder, `${sabotage.name}-${process.pid}.mjs`)
  writeFileSync(target, outputFiles[0]?.text ?? '')
  return (await import(/* @vite-ignore */ pathToFileURL(target).href)) as Storm
}
