import { describe, expect, it } from 'vitest'
import { cordonedByOperation } from './cordon-owner.ts'
import { ANNOTATION } from './names.ts'

const mark = { [ANNOTATION.cordonedBy]: 'op' }
const by = (manager: string, operation = 'Update') => ({ manager, operation, fieldsV1: { 'f:spec': { 'f:unschedulable': {} } } })
const markedBy = (manager: string) => ({
  manager,
  operation: 'Update',
  fieldsV1: { 'f:metadata': { 'f:annotations': { '.': {}, [`f:${ANNOTATION.cordonedBy}`]: {} } }, 'f:spec': { 'f:taints': {} } },
})

describe('whose cordon it is', () => {
  it.each([
    ['ours', { annotations: mark, managedFields: [by('ichor-controller')] }, 'op'],
    ['ours, and somebody wrote another field', { annotations: mark, managedFields: [by('ichor-controller'), markedBy('kubelet')] }, 'op'],
    ['marked, and nobody is on record', { annotations: mark, managedFields: undefined }, 'op'],
    ['without a mark', { managedFields: [by('ichor-controller')] }, undefined],
    ['lifted by a person, who leaves the mark', { unschedulable: false, annotations: mark, managedFields: [] }, undefined],
    ['set again by a person', { annotations: mark, managedFields: [markedBy('ichor-controller'), by('kubectl-cordon')] }, undefined],
    ['wanted by an apply too', { annotations: mark, managedFields: [by('flux', 'Apply'), by('ichor-controller')] }, undefined],
  ] as readonly (readonly [string, Partial<Parameters<typeof cordonedByOperation>[0]>, string | undefined])[])(
    '%s',
    (_, over, expected) => {
      expect(cordonedByOperation({ unschedulable: true, annotations: {}, managedFields: [], ...over })).toBe(expected)
    },
  )
})
