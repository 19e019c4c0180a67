import { describe, expect, it } from 'vitest'
import { restartStory } from '../storm/restart-story.ts'
import { fenced } from './fence.ts'

describe('a fenced port', () => {
  it('answers until the right to act is gone, and reaches nobody afterwards', async () => {
    let mayAct = true
    const evicted: string[] = []
    const port = fenced({ evict: (pod: string) => Promise.resolve({ ok: true, value: evicted.push(pod) }) }, () => mayAct)
    expect(await port.evict('a')).toEqual({ ok: true, value: 1 })
    mayAct = false
    expect(await port.evict('b')).toEqual({ ok: false, fault: { kind: 'cancelled', message: 'leadership is lost' } })
    expect(evicted).toEqual(['a'])
  })

  it('ends an act of several calls in its middle: what comes after the loss never leaves the process', async () => {
    const story = await restartStory({ unled: true })
    const first = story.start('ichor-0')
    await story.until('machines are discovered', () => story.world.store.list('talosmachines.ichor.maesh.dev').items.length === 2)
    const second = story.start('ichor-1')
    const late: string[] = []
    story.world.calls.intercept(call => {
      if (second.controller.isLeading() && call.client === 'ichor-0' && call.changes && call.port !== 'home') late.push(call.name)
      // It cannot renew from here on, and its act is answered long after another leads.
      return call.client === 'ichor-0' && story.world.journal.of('cordon').length > 0 ? { do: 'delay', ms: 60_000 } : undefined
    })
    story.restart('a')
    await story.until('the other leads', () => second.controller.isLeading() && !first.controller.isLeading())
    await story.untilDone('a')
    expect(late).toEqual([])
  })
})
