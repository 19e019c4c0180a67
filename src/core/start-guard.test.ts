import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { KindBlock } from '../api/talos-operation.ts'
import { failed, ok } from '../ports/fault.ts'
import { operation, spec, world } from './samples.ts'
import { startNeeds, startRefusals } from './start-guard.ts'
import { NO_FACTS } from './world.ts'

const NOW = Date.UTC(2026, 8, 1)
/** The kind of the sample operation. */
const quiet: KindBlock = { name: spec().kind, block: 'sample', summary: '', spec: z.object({}) }
const asked = (more: object) => operation({}, { spec: spec(more) })
const refusalsOf = (more: object, policies: ReturnType<typeof ok<readonly string[]>> | ReturnType<typeof failed>) =>
  startRefusals(quiet, asked(more), world({ now: NOW, facts: { ...NO_FACTS, policies } })).map(({ rule, message }) => `${rule}: ${message}`)

describe('what the API server has to enforce', () => {
  it.each([
    ['nothing', {}, 0],
    ['override', { override: true }, 1],
    ['ignoreWindows', { ignoreWindows: true }, 1],
  ])('%s: the policies are asked for where it matters', (_, more, needs) => expect(startNeeds(quiet, asked(more))).toHaveLength(needs))

  it.each(['override', 'ignoreWindows'])('spec.%s counts for nothing where they do not hold', field => {
    expect(refusalsOf({ [field]: true }, ok([]))).toEqual([])
    expect(refusalsOf({ [field]: true }, ok(['the policy ichor-operations is not there']))[0]).toMatch(
      new RegExp(`^PoliciesMissing: spec.${field} counts for nothing .*: the policy ichor-operations is not there\\. Install them`),
    )
    expect(refusalsOf({ [field]: true }, failed('forbidden', 'no right'))[0]).toMatch(/whether they hold cannot be seen: no right/)
  })
})
