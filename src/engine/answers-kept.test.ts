import { describe, expect, it } from 'vitest'
import type { FaultKind } from '../ports/fault.ts'
import { restartStory } from '../storm/restart-story.ts'

/** The API does not take what the controller writes, or takes it and does not say so. */
const REFUSALS: readonly (readonly [FaultKind, 'before' | 'after'])[] = [
  ['unreachable', 'before'],
  ['unreachable', 'after'],
  ['busy', 'before'],
  ['forbidden', 'before'],
  ['unknown', 'before'],
  ['conflict', 'before'],
]

describe('what a long act answered', () => {
  it.each(REFUSALS)('is kept where the write of it is %s (%s its effect): the act is not given again', async (kind, when) => {
    const story = await restartStory()
    let left = 3
    story.world.calls.intercept(call => {
      if (call.port !== 'home' || call.name !== 'writeOperationStatus' || story.world.journal.of('installed').length === 0 || left === 0)
        return undefined
      left--
      return { do: 'fail', when, fault: { kind, message: 'not now' } }
    })
    story.restart('a')
    await story.untilDone('a')
    expect(left).toBe(0)
    expect(story.world.journal.of('install-began').map(({ machine }) => machine)).toEqual(['cp-1', 'wk-1'])
  })

  it('is kept where it was no: the failure is told once, and not tried again', async () => {
    const story = await restartStory()
    story.world.fault('cp-1', { installer: { exitCode: 1, lines: ['no'], times: 1 } })
    let left = 3
    story.world.calls.intercept(call => {
      if (
        call.port !== 'home' ||
        call.name !== 'writeOperationStatus' ||
        story.world.journal.of('install-failed').length === 0 ||
        left === 0
      )
        return undefined
      left--
      return { do: 'fail', when: 'before', fault: { kind: 'unreachable', message: 'not now' } }
    })
    story.restart('a')
    await story.until('it failed', () => story.status('a').phase === 'Paused')
    expect(left).toBe(0)
    expect(story.world.journal.of('install-began')).toHaveLength(1)
  })
})
