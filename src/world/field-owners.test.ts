import { expect, it } from 'vitest'
import { disowned } from './field-owners.ts'

it('a field that is gone has no owner, and who owned nothing else is none', () => {
  const metadata = (...names: readonly string[]) => ({ 'f:annotations': Object.fromEntries(names.map(name => [`f:${name}`, {}])) })
  const gitops = { manager: 'gitops', fieldsV1: { 'f:metadata': metadata('retry') } }
  const kubectl = { manager: 'kubectl', fieldsV1: { 'f:metadata': metadata('retry', 'note'), 'f:spec': { 'f:paused': {} } } }
  const nothing = { manager: 'ichor' }
  expect(disowned([gitops, kubectl, nothing], ['f:metadata', 'f:annotations', 'f:retry'])).toEqual([
    { manager: 'kubectl', fieldsV1: { 'f:metadata': metadata('note'), 'f:spec': { 'f:paused': {} } } },
    nothing,
  ])
  expect(disowned([gitops], ['f:spec', 'f:unschedulable'])).toEqual([gitops])
  expect(disowned(undefined, ['f:spec'])).toEqual([])
})
