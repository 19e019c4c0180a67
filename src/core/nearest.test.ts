import { describe, expect, it } from 'vitest'
import { nearestAdvice, nearestFirst } from './nearest.ts'

describe('what was misspelt', () => {
  const fields = ['kubelet', 'network', 'sysctls', 'sysfs']

  it('stands first', () => {
    expect(nearestFirst(fields, 'sysctl')).toEqual(['sysctls', 'sysfs', 'kubelet', 'network'])
  })

  it.each([
    ['sysctl', 'the nearest is sysctls'],
    ['Kublet', 'the nearest is kubelet'],
    ['nodes', 'there are kubelet, network, sysctls, sysfs'],
    ['x', 'there are kubelet, network, sysctls, sysfs'],
  ])('%s: %s', (text, advice) => expect(nearestAdvice(fields, text)).toBe(advice))

  it('has no remedy where nothing can be given', () => {
    expect(nearestAdvice([], 'kubelet')).toBe('there is nothing that can be given here')
  })
})
