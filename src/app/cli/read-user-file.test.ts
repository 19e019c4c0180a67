import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'

it('reads standard input for -, as kubectl does', () => {
  const main = new URL('main.ts', import.meta.url).href
  const script = `const { readUserFile } = await import(${JSON.stringify(main)}); process.stdout.write(await readUserFile('-'))`
  const said = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { input: 'machine: {}\n', encoding: 'utf8' })
  expect(said).toBe('machine: {}\n')
})
