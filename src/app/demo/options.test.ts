import { describe, expect, it } from 'vitest'
import { readOptions } from './options.ts'

const read = (...argv: string[]) => {
  const result = readOptions(argv)
  return result.ok ? result.options : result.problem
}

describe('options of the demo', () => {
  it('are three control planes and three workers, from 1.13.5 to 1.13.9, unless they say something else', () => {
    expect(read()).toEqual({
      controlPlanes: 3,
      workers: 3,
      from: 'v1.13.5',
      to: 'v1.13.9',
      speed: 20,
      scenario: 'happy',
      realApiServer: false,
      once: false,
      seed: 1,
    })
    expect(read('--machines', '5+20', '--speed', '2.5', '--once', '--kube-apiserver', '--seed', '7')).toMatchObject({
      controlPlanes: 5,
      workers: 20,
      speed: 2.5,
      once: true,
      realApiServer: true,
      seed: 7,
    })
  })

  it('begin at the release before the one to upgrade to', () => {
    expect(read('--to', '1.12.5')).toMatchObject({ from: 'v1.12.4', to: 'v1.12.5' })
    expect(read('--to', 'v1.13.0')).toMatchObject({ from: 'v1.12.11', to: 'v1.13.0' })
    expect(read('--from', '1.12.5')).toMatchObject({ from: 'v1.12.5', to: 'v1.13.9' })
    expect(read('--from', '1.9.6', '--to', '1.10.0')).toMatchObject({ from: 'v1.9.6', to: 'v1.10.0' })
  })

  it.each([
    [['--machines', '3'], '--machines 3: must be 1 to 7 control planes + 0 to 100 workers, for example 3+3'],
    [['--machines', '0+1'], '--machines 0+1: must be 1 to 7 control planes + 0 to 100 workers, for example 3+3'],
    [['--machines', '3+101'], '--machines 3+101: must be 1 to 7 control planes + 0 to 100 workers, for example 3+3'],
    [['--to', '1.13.99'], '--to 1.13.99: there is no such Talos release; the simulated registries have v1.13.0 to v1.13.9'],
    [['--from', 'x'], '--from x: there is no such Talos release; the simulated registries have v1.9.0 to v1.13.9'],
    [
      ['--to', '1.14.0-rc.1'],
      '--to 1.14.0-rc.1: is a pre-release, and only final ones will do; the simulated registries have v1.9.0 to v1.13.9',
    ],
    [['--to', '1.9.0'], '--to v1.9.0: there is nothing older to begin with; the simulated registries have v1.9.0 to v1.13.9'],
    [
      ['--from', '1.13.5', '--to', '1.13.4'],
      '--from v1.13.5 --to v1.13.4: v1.13.4 is not newer; from v1.13.5 --to can be v1.13.6 to v1.13.9, and for --to v1.13.4 --from can be v1.12.0 to v1.13.3',
    ],
    [['--from', '1.13.9'], '--from v1.13.9 --to v1.13.9: v1.13.9 is not newer; for --to v1.13.9 --from can be v1.12.0 to v1.13.8'],
    [
      ['--from', 'v1.11.6'],
      '--from v1.11.6 --to v1.13.9: skips a minor; from v1.11.6 --to can be v1.12.0 to v1.12.11, and for --to v1.13.9 --from can be v1.12.0 to v1.13.8',
    ],
    [['--speed', '0'], '--speed 0: must be a number from 1 to 1000'],
    [['--speed', 'fast'], '--speed fast: must be a number from 1 to 1000'],
    [
      ['--scenario', 'sad'],
      '--scenario sad: there are happy, image-not-found, controller-killed, pdb-blocks, etcd-unhealthy, boots-old-version, two-operations, leader-paused',
    ],
    [
      ['--scenario', 'etcd-unhealthy', '--machines', '2+3'],
      '--scenario etcd-unhealthy --machines 2+3: needs a member of etcd to spare, so at least 3+0',
    ],
    [
      ['--scenario', 'pdb-blocks', '--machines', '1+0'],
      '--scenario pdb-blocks --machines 1+0: needs another machine that pods could go to, or nothing is drained; so at least 1+1',
    ],
    [['--fast'], "Unknown option '--fast'"],
    [['--speed'], "Option '--speed <value>' argument missing"],
    [['v1.13.9'], "Unexpected argument 'v1.13.9'"],
  ])('%j are refused in one sentence', (argv, sentence) => {
    expect(read(...argv)).toContain(sentence)
    expect(read(...argv)).not.toContain('\n')
  })
})
