import { describe, expect, it } from 'vitest'
import { machineName } from '../../src/core/machine-name.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import { playWithDeaths } from './play.ts'

const node = (index: number): string => (index < 3 ? `cp-${index + 1}` : `wk-${index - 2}`)

describe('a host name in capitals [B025 rancher/system-upgrade-controller#273]', () => {
  it('makes object names that the API takes, with the true name beside them', async () => {
    const { run, end } = await playWithDeaths({
      cluster: { names: i => (i === 0 ? 'cp-alpha01' : node(i)), hostnames: i => (i === 0 ? 'CP-Alpha01' : node(i)) },
      spec: { talos: { version: 'v1.13.9' } },
    })
    expect(end.phase).toBe('Completed')
    const machines = run.world.store.list(ICHOR.machines).items
    expect(machines.map(m => m.metadata.name).filter(name => !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name))).toEqual([])
    expect(machines.map(m => m.metadata.annotations?.['ichor.maesh.dev/hostname'])).toContain('CP-Alpha01')
    expect(run.status().machines?.find(t => t.hostname === 'CP-Alpha01')?.node).toBe('cp-alpha01')
  })

  it('two hosts that differ only by case get different names', () => {
    const names = [machineName('CP-Alpha01', 'node-id-one'), machineName('cp-alpha01', 'node-id-two')]
    expect(new Set(names).size).toBe(2)
    expect(names.every(name => name.startsWith('cp-alpha01-'))).toBe(true)
  })
})

describe('members of etcd are spelled unlike their Nodes [B027 siderolabs/cluster-api-control-plane-provider-talos#185]', () => {
  it.each([
    ['in capitals', (i: number) => `CP-${i + 1}`],
    ['fully qualified', (i: number) => `cp-${i + 1}.example.com`],
  ])('%s: no member is a stranger', async (_, memberNames) => {
    const { run, end } = await playWithDeaths({ cluster: { memberNames }, spec: { talos: { version: 'v1.13.9' } } }, 3)
    expect(end.phase).toBe('Completed')
    expect(run.status().preflight?.refusals).toEqual([])
    expect(run.world.etcd.members()).toHaveLength(3)
  })
})
