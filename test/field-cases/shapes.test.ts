import { describe, expect, it } from 'vitest'
import type { StoryOptions } from '../../src/storm/story.ts'
import { play } from './play.ts'

const v4 = (index: number): string => `10.5.0.${index + 2}`
const v6 = (index: number): string => `2001:db8::${(index + 2).toString(16)}`
const workloads = [{ name: 'web', replicas: 2 }]

describe('an upgrade of a cluster of any shape', () => {
  const shapes: readonly (readonly [string, StoryOptions, 'outage' | 'none'])[] = [
    ['one machine', { controlPlanes: 1, workers: 0 }, 'outage'],
    ['two control planes and a worker', { controlPlanes: 2, workers: 1, workloads }, 'outage'],
    ['four control planes and a worker', { controlPlanes: 4, workers: 1, workloads }, 'none'],
    ['five control planes and a worker', { controlPlanes: 5, workers: 1, workloads }, 'none'],
    ['both families of addresses, IPv4 first', { addresses: i => [v4(i), v6(i)], workloads }, 'none'],
    ['both families of addresses, IPv6 first', { addresses: i => [v6(i), v4(i)], workloads }, 'none'],
    ['IPv6 alone', { addresses: v6, workloads }, 'none'],
  ]

  it.each(shapes)('%s', async (_, cluster, api) => {
    const { run, end } = await play({
      cluster,
      spec: { talos: { version: 'v1.13.9' }, ...(api === 'outage' ? { acknowledge: ['api-outage'] } : {}) },
      allowed: api === 'outage' ? { apiOutage: true, undrained: cluster.workers === 0 } : {},
    })
    const { machines, etcd, calls, journal } = run.world
    expect(end.phase).toBe('Completed')
    expect(end.machines).toEqual(machines.map(m => `${m.name} v1.13.9 Completed`))
    for (const { name } of machines) {
      expect(journal.of('install-began', name), name).toHaveLength(1)
      expect(journal.of('down', name), name).toHaveLength(1)
    }
    const members = machines.filter(m => m.role === 'controlplane')
    expect(etcd.members().filter(m => !m.isLearner)).toHaveLength(members.length)
    expect(etcd.hasQuorum()).toBe(true)
    const asked = new Set(calls.log().flatMap(({ port, target }) => (port === 'talos' ? [target] : [])))
    // One that is away is asked at its other address, too.
    expect([...asked].filter(address => !machines.some(m => m.addresses.includes(address)))).toEqual([])
    expect(machines.filter(m => !asked.has(m.addresses[0] ?? ''))).toEqual([])
  })

  it.each([1, 2])('with %i of them, nothing begins before the outage is accepted', async controlPlanes => {
    const { run, end } = await play({ cluster: { controlPlanes, workers: 1 }, spec: { talos: { version: 'v1.13.9' } } })
    expect(end).toMatchObject({ phase: 'Paused', reason: 'PreflightRefused' })
    expect(run.status().preflight?.refusals.map(r => r.rule)).toEqual(['QuorumWouldBeLost'])
  })
})
