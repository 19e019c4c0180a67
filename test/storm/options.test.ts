import { describe, expect, it } from 'vitest'
import { readStormOptions } from '../../scripts/storm-options.ts'

const read = (line: string) => readStormOptions(line.split(' ').filter(Boolean))

describe('options of npm run storm', () => {
  it('are a hundred seeds of all kinds, unless they say something else', () => {
    expect(read('')).toMatchObject({ kind: 'all', from: 1, seeds: 100, minutes: undefined, families: undefined, threads: undefined })
    expect(read('--minutes 8 --from 70000000')).toMatchObject({ from: 70_000_000, seeds: Infinity, minutes: 8 })
    expect(read('--minutes 0.5 --seeds 100')).toMatchObject({ seeds: 100, minutes: 0.5 })
    expect(read('--seeds 5 --kind node --faults crash,clock --machines 1+0 --workers 2')).toMatchObject({
      ...{ seeds: 5, kind: 'node', families: ['crash', 'clock'], controlPlanes: 1, workers: 0, threads: 2 },
    })
    expect(read('--seed 17 --replay')).toMatchObject({ seed: 17, replay: true })
    expect(read('-h')).toBe('help')
  })

  it.each([
    ['--seeds x', '--seeds x: must be a whole number from 1'],
    ['--seeds 0', '--seeds 0: must be a whole number from 1'],
    ['--from 1.5', '--from 1.5: must be a whole number from 0'],
    ['--minutes soon', '--minutes soon: must be a number above 0'],
    ['--workers 0', '--workers 0: must be a whole number from 1'],
    ['--kind nonsense', '--kind nonsense: there are all, talos, '],
    ['--faults crash,rain', '--faults rain: there are crash, lost-reply, '],
    ['--machines 3', '--machines 3: must be control planes + workers, for example 3+3'],
    ['--machines 0+3', '--machines 0+3: must be control planes + workers, for example 3+3'],
    ['--seed', "Option '--seed <value>' argument missing"],
    ['--fast', "Unknown option '--fast'"],
    ['17', "Unexpected argument '17'"],
    ['--plan a.json', '--plan is played with --replay'],
    ['--replay', '--replay needs --seed S or --plan FILE'],
    ['--seed 17 --seeds 3', '--seed is one alone'],
  ])('%s is refused in one sentence', (line, sentence) => {
    expect(read(line)).toEqual({ problem: expect.stringContaining(sentence) })
    expect(JSON.stringify(read(line))).not.toContain('\\n')
  })
})
