import { describe, expect, it } from 'vitest'
import { failed } from '../../src/ports/fault.ts'
import { play } from './play.ts'

describe('a configuration that the first machine refuses [B145 siderolabs/talos#4724, siderolabs/talos#4591]', () => {
  it('is not given to a second one, and nothing else of the rollout is begun', async () => {
    const { run, end } = await play({
      spec: { talos: { version: 'v1.13.9' } },
      arrange: ({ world }) => {
        const { fault } = failed('invalid', '10.5.0.2: MachineService.ApplyConfiguration: unknown keys found during decoding')
        world.calls.next({ name: 'setInstallImage', times: Infinity }, { do: 'fail', when: 'before', fault })
      },
    })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'ConfigRejected' })
    expect(run.status().message).toContain('cp-1: 10.5.0.2: MachineService.ApplyConfiguration: unknown keys found during decoding')
    expect(run.world.calls.log().flatMap(({ name, target }) => (name === 'setInstallImage' ? [target] : []))).toHaveLength(1)
    expect(run.world.machines.filter(({ name }) => run.world.journal.of('install-began', name).length > 0).map(({ name }) => name)).toEqual(
      ['cp-1'],
    )
    // The machine itself is well, and is left as one finds it.
    expect(
      run
        .status()
        .machines?.filter(({ phase }) => phase === 'Failed')
        .map(({ node }) => node),
    ).toEqual(['cp-1'])
  })
})
