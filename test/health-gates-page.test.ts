// What docs/health-gates.md shows is what one copies: each gate must be one, and its expression must be right.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { healthGate, type HealthGate } from '../src/api/talos-cluster.ts'
import { askExpression, expressionProblem } from '../src/core/gate-expression.ts'

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'health-gates.md'), 'utf8')
const documents = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(([, text = '']) =>
  parseAllDocuments(text).map(d => d.toJS() as unknown),
)
const gates = documents.flatMap(one => {
  const list = Array.isArray(one) ? one : (one as { spec?: { healthGates?: unknown[] } }).spec?.healthGates
  return (list ?? []).map(gate => healthGate.parse(gate))
})

describe('the page about health gates', () => {
  it('has gates', () => expect(gates.map(({ name }) => name)).toEqual(['storage', 'ceph', 'postgres', 'queue', 'backup', 'switch']))

  /** Objects as their own controllers write them: well, and not. */
  const objects: Record<string, readonly [well: object, unwell: object]> = {
    storage: [{ status: { ceph: { health: 'HEALTH_OK' } } }, { status: { ceph: { health: 'HEALTH_WARN' } } }],
    ceph: [{ status: { ceph: { health: 'HEALTH_OK' } } }, { status: {} }],
    postgres: [
      { spec: { instances: 3 }, status: { phase: 'Cluster in healthy state', readyInstances: 3, instances: 3 } },
      { spec: { instances: 3 }, status: { phase: 'Cluster in healthy state', readyInstances: 2, instances: 3 } },
    ],
    queue: [
      { metadata: { generation: 4 }, spec: { replicas: 3 }, status: { observedGeneration: 4, readyReplicas: 3 } },
      { metadata: { generation: 4 }, spec: { replicas: 3 }, status: { observedGeneration: 4 } },
    ],
    backup: [
      { status: { conditions: [{ type: 'Synchronizing', status: 'False' }] } },
      { status: { conditions: [{ type: 'Synchronizing', status: 'True' }] } },
    ],
    switch: [{ data: { maintenance: 'allowed' } }, { data: {} }],
  }
  it.each(gates.map((gate): [string, HealthGate] => [gate.name, gate]))(
    'its gate %s holds where all is well, and only there',
    (name, { expr }) => {
      expect(expressionProblem(expr)).toBeUndefined()
      const [well, unwell] = objects[name] ?? []
      expect(askExpression(expr, well).is).toBe('yes')
      expect(askExpression(expr, unwell).is).not.toBe('yes')
    },
  )

  const lines = [...page.matchAll(/^\| [^|]+ \| `((?:object|\[).[^`]+)` \|$/gm)].map(([, expr = '']) => expr)
  it('has expressions in its table', () => expect(lines).toHaveLength(5))
  it.each(lines)('%s can be read', expr => expect(expressionProblem(expr)).toBeUndefined())
})
