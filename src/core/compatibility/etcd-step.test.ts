import { describe, expect, it } from 'vitest'
import { etcdStep } from './etcd-step.ts'

const refused = (fromTalos: string, toTalos: string, ...runningEtcd: string[]) =>
  etcdStep({ fromTalos, toTalos, runningEtcd })
    .findings.filter(f => f.verdict !== 'warning')
    .map(f => f.id)

describe('etcd under a Talos step', () => {
  it.each([
    ['no etcd minor is crossed', 'v1.13.5', 'v1.13.9', ['3.6.12'], []],
    ['1.12 and 1.13 have the same etcd minor', 'v1.12.5', 'v1.13.9', ['3.6.8'], []],
    ['3.5.21 may bring back removed members (etcd-io/etcd#20967)', 'v1.10.8', 'v1.11.6', ['3.5.21'], ['etcd-36-zombies']],
    ['3.5.19 also counts learners wrong (etcd-io/etcd#19557)', 'v1.9.5', 'v1.11.6', ['3.5.19'], ['etcd-36-learners', 'etcd-36-zombies']],
    ['3.5.26 may go (siderolabs/talos#12467)', 'v1.10.9', 'v1.11.6', ['3.5.26'], []],
    ['one old member is enough', 'v1.10.9', 'v1.11.6', ['3.5.26', '3.5.21', '3.5.26'], ['etcd-36-zombies']],
    ['3.7 needs 3.6.11', 'v1.13.0', 'v1.14.0', ['3.6.9'], ['etcd-36-37']],
    ['3.6.12 may go to 3.7', 'v1.13.9', 'v1.14.0', ['3.6.12'], []],
    ['a pinned 3.5 image does not start on 1.14', 'v1.13.9', 'v1.14.0', ['3.5.26'], ['etcd-two-minors']],
    ['a pinned 3.7 image does not start on 1.13', 'v1.13.5', 'v1.13.9', ['3.7.1'], ['etcd-37-36']],
    ['back to 3.5', 'v1.11.6', 'v1.10.9', ['3.6.5'], ['etcd-36-35']],
    ['without running versions the release counts', 'v1.13.0', 'v1.14.0', [], ['etcd-36-37']],
    ['a running version that cannot be read counts as the worst', 'v1.13.9', 'v1.14.0', ['unknown'], ['etcd-36-37', 'etcd-two-minors']],
    ['a target that the table does not know', 'v1.14.0', 'v1.15.0', ['3.7.1'], ['etcd-step']],
  ])('%s', (_, from, to, running, expected) => {
    expect(refused(from, to, ...running)).toEqual(expected)
  })
  it('says which minors meet', () => {
    expect(etcdStep({ fromTalos: 'v1.13.9', toTalos: 'v1.14.0', runningEtcd: ['3.6.12'] })).toMatchObject({
      crossesMinor: true,
      targetEtcd: '3.7.x',
    })
    expect(etcdStep({ fromTalos: 'v1.12.5', toTalos: 'v1.13.9', runningEtcd: ['3.6.8'] })).toMatchObject({
      crossesMinor: false,
      targetEtcd: '3.6.12',
    })
  })
  it('warns of what moves with etcd 3.7', () => {
    const warnings = etcdStep({ fromTalos: 'v1.13.9', toTalos: 'v1.14.0', runningEtcd: ['3.6.12'] }).findings
    expect(warnings.map(f => f.id)).toEqual(['etcd-37-arguments', 'etcd-37-metrics'])
    expect(warnings[0]?.reason).toContain('Ichor cannot see whether cluster.etcd.extraArgs')
  })
})
