import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createWorld } from '../../world/cluster.ts'
import { FAULTS_HELP, readFault } from './faults.ts'

const world = () => createWorld({ seed: 1, controlPlanes: 3, workers: 1 })

describe('a fault of a simulated machine', () => {
  it('is done to that machine, and mended', () => {
    const w = world()
    const wk = w.machine('wk-1')
    const faults = () => w.faults.of(wk)
    const apply = (...lines: string[]) => {
      for (const line of lines) readFault(line)(w)
    }
    apply('wk-1 off')
    expect(wk.powered).toBe(false)
    apply('wk-1 on', 'wk-1 cut')
    expect([wk.powered, wk.cut]).toEqual([true, true])
    apply('wk-1 heal', 'wk-1 slow 500', 'wk-1 bandwidth 1000', 'wk-1 full', 'wk-1 boot-full', 'wk-1 clock -60', 'wk-1 no-time')
    expect(wk.cut).toBe(false)
    expect(faults()).toMatchObject({
      slowMs: 500,
      bytesPerSecond: 1000,
      diskFull: true,
      bootPartitionFull: true,
      clockOffsetMs: -60_000,
      timeNeverSyncs: true,
    })
    apply('wk-1 slow 0', 'wk-1 bandwidth 0', 'wk-1 free', 'wk-1 clock 0', 'wk-1 time')
    expect(faults()).toMatchObject({
      slowMs: 0,
      bytesPerSecond: undefined,
      diskFull: false,
      bootPartitionFull: false,
      clockOffsetMs: 0,
      timeNeverSyncs: false,
    })
    apply('  wk-1   address 127.0.0.7,127.0.0.8 ')
    expect(wk.addresses).toEqual(['127.0.0.7', '127.0.0.8'])
    apply('wk-1 next-address 127.0.0.9')
    expect([wk.addresses.length, wk.nextAddresses]).toEqual([2, ['127.0.0.9']])
    const image = 'registry.k8s.io/kube-scheduler:v1.34.9'
    apply('cp-1 no-image kube-scheduler:v1.34.9')
    expect(w.registry.hasProgram(image)).toBe(false)
    apply('cp-1 image kube-scheduler:v1.34.9')
    expect(w.registry.hasProgram(image)).toBe(true)
    apply('cp-1 fill-etcd')
    expect(w.etcd.isFull()).toBe(true)
  })

  it.each([
    ['', /write a machine and one of off, on/],
    ['wk-1', /write a machine and one of/],
    ['wk-1 explode', /"wk-1 explode" is no fault/],
    ['wk-1 slow', /write wk-1 slow MS/],
    ['wk-1 slow -5', /write wk-1 slow MS/],
    ['wk-1 slow fast', /write wk-1 slow MS/],
    ['wk-1 off now', /write wk-1 off/],
    ['wk-1 address 10.0.0.1', /write wk-1 address A\[,B\]/],
    ['wk-1 off a b', /is no fault/],
    ['wk-1 no-image', /write wk-1 no-image IMAGE/],
  ])('%j is none', (line, problem) => expect(() => readFault(line)).toThrow(problem))

  it('of a machine that is not there names those that are', () => {
    expect(() => readFault('wk-9 off')(world())).toThrow('there is no machine wk-9; there are cp-1, cp-2, cp-3, wk-1')
  })

  it('is in the help and in the documentation, each', () => {
    const page = readFileSync(new URL('../../../docs/sim-talos.md', import.meta.url), 'utf8')
    for (const line of FAULTS_HELP.trimEnd().split('\n')) expect(page).toContain(`\`${line.trim().split(/\s{2,}/)[0]}\``)
  })
})
