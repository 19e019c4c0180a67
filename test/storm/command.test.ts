// `npm run storm` as a person or a CI starts it: what it says last, and its exit code.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..', '..')

const storm = (...args: string[]): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, 'scripts', 'storm.ts'), ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, err] = ['', '']
    child.stdout.on('data', chunk => (out += String(chunk)))
    child.stderr.on('data', chunk => (err += String(chunk)))
    child.once('error', reject)
    child.once('close', code => resolve({ code, out, err }))
  })

describe('npm run storm', () => {
  it('ends with one line of counts, and 0 where nothing was violated', async () => {
    const { code, out, err } = await storm('--seeds', '2', '--from', '40', '--kind', 'node', '--faults', 'slow', '--workers', '1')
    expect(err).toBe('')
    expect(out.trimEnd().split('\n').at(-1)).toMatch(/^2 seeds \(40 to 41\), 0 violations, \d+ calls, /)
    expect(code).toBe(0)
  })

  it('names the seed and the checker, and ends with 1, where something was', async () => {
    const { code, out } = await storm(
      '--sabotage',
      'skip-the-intention',
      '--seeds',
      '8',
      '--kind',
      'node',
      '--faults',
      'slow',
      '--workers',
      '1',
    )
    expect(out).toMatch(/^seed \d+, kind node: [a-z-]+: /m)
    expect(out.trimEnd().split('\n').at(-1)).toMatch(/^\d+ seeds \(1 to \d+\), [1-9]\d* violations, /)
    expect(code).toBe(1)
  })

  it('plays nothing where it does not understand, says what there is, and ends with 2', async () => {
    const { code, out, err } = await storm('--sabotage', 'nonsense')
    expect(out).toBe('')
    expect(err).toMatch(/^error: --sabotage nonsense: there are ([a-z-]+, )*skip-the-intention, /)
    expect(code).toBe(2)
  })
})
