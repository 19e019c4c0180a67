import { describe, expect, it } from 'vitest'
import { retryAppliedBy } from './retry-manager.ts'

const fieldsV1 = { 'f:metadata': { 'f:annotations': { '.': {}, 'f:ichor.maesh.dev/retry': {} } } }
const other = { 'f:metadata': { 'f:annotations': { 'f:example.com/other': {} } }, 'f:spec': { 'f:paused': {} } }

describe('who wrote the retry', () => {
  it.each([
    ['kubectl annotate', [{ manager: 'kubectl-annotate', operation: 'Update', fieldsV1 }], undefined],
    ['the CLI', [{ manager: 'ichor', operation: 'Update', fieldsV1 }], undefined],
    ['a server-side apply', [{ manager: 'argocd-controller', operation: 'Apply', fieldsV1 }], 'argocd-controller'],
    ['a client-side apply', [{ manager: 'kubectl-client-side-apply', operation: 'Update', fieldsV1 }], 'kubectl-client-side-apply'],
    [
      'an apply of something else',
      [
        { manager: 'flux', operation: 'Apply', fieldsV1: other },
        { manager: 'kubectl-edit', operation: 'Update', fieldsV1 },
      ],
      undefined,
    ],
    [
      'an apply, and a person beside it',
      [
        { manager: 'flux', operation: 'Apply', fieldsV1 },
        { manager: 'kubectl-annotate', operation: 'Update', fieldsV1 },
      ],
      undefined,
    ],
    ['nobody', [], undefined],
    ['nobody, and no record', undefined, undefined],
  ])('%s', (_, managedFields, expected) => {
    expect(retryAppliedBy(managedFields)).toBe(expected)
  })
})
