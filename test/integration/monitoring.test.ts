// What the chart brings for Prometheus and Grafana: rendered by helm, its expressions read by the parser of Prometheus' own editor, and every metric and label
// in them one that the controller has. Nothing evaluates them here.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parser } from '@prometheus-io/lezer-promql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createMetrics } from '../../src/app/controller/metrics.ts'
import { ALERTS } from '../../src/install/alerts.ts'
import { realParts } from '../real/parts.ts'

const parts = await realParts('helm')
const chart = join(import.meta.dirname, '../../charts/ichor')

type Rendered = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec: any
  readonly data: Readonly<Record<string, string>>
}

const parsed = (expr: string): { readonly errors: number; readonly metrics: readonly string[]; readonly labels: readonly string[] } => {
  const found = { errors: 0, metrics: [] as string[], labels: [] as string[] }
  parser.parse(expr).iterate({
    enter: node => {
      const text = expr.slice(node.from, node.to)
      if (node.type.isError) found.errors++
      if (node.name === 'Identifier' && text.startsWith('ichor_')) found.metrics.push(text)
      if (node.name === 'LabelName') found.labels.push(text)
    },
  })
  return found
}

/** The metrics of a controller, with their labels. */
const metrics = async (): Promise<ReadonlyMap<string, readonly string[]>> => {
  const made = createMetrics({ now: () => 0, monotonic: () => 0, after: () => () => {} }, 'v1')
  made.show({
    controller: { isLeading: () => false, queue: () => ({ depth: 0, oldestMs: 0 }) } as never,
    home: { stalenessMs: () => 0 } as never,
    namespace: undefined,
  })
  return new Map(
    made.registry
      .getMetricsAsArray()
      .map(metric => metric as unknown as { readonly name: string; readonly type: string; readonly labelNames: readonly string[] })
      .flatMap(({ name, type, labelNames }) => [
        [name, labelNames] as const,
        ...(type === 'histogram' ? [[`${name}_bucket`, [...labelNames, 'le']] as const] : []),
      ]),
  )
}

/** That nothing in it is a misspelling, which Prometheus would take for a metric that nobody has. */
const mustBeOurs = (expr: string, known: ReadonlyMap<string, readonly string[]>): readonly string[] => {
  const { errors, metrics: used, labels } = parsed(expr)
  expect(errors, expr).toBe(0)
  expect(used.length, expr).toBeGreaterThan(0)
  for (const name of used) expect([...known.keys()], expr).toContain(name)
  const has = used.flatMap(name => known.get(name) ?? [])
  for (const label of labels) expect(has, expr).toContain(label)
  return has
}

describe.skipIf('missing' in parts)(`monitoring${'missing' in parts ? ` (${parts.missing})` : ''}`, () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ichor-monitoring-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const rendered = async (...sets: readonly string[]): Promise<readonly Rendered[]> => {
    if ('missing' in parts) throw new Error(parts.missing)
    const env = { ...process.env, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder }
    const args = ['template', 'ichor', chart, '-n', 'ichor-system', '--set', 'image.repository=registry.example.org/ichor']
    const { stdout } = await promisify(execFile)(parts.paths.helm, [...args, ...sets.flatMap(set => ['--set', set])], {
      env,
      maxBuffer: 2 ** 26,
    })
    return parseAllDocuments(stdout).flatMap(document => (document.contents ? [document.toJS() as Rendered] : []))
  }
  const kindsOf = (objects: readonly Rendered[]) => objects.map(({ kind }) => kind)
  const only = async (value: string, ...more: readonly string[]): Promise<Rendered> => {
    const [plain, with_] = [await rendered(), await rendered(`monitoring.${value}.enabled=true`, ...more)]
    const added = with_.filter(object => !kindsOf(plain).includes(object.kind))
    expect(added).toHaveLength(1)
    return added[0]!
  }

  it('is off unless it is asked for', async () => {
    const kinds = kindsOf(await rendered())
    for (const kind of ['ServiceMonitor', 'PodMonitor', 'PrometheusRule', 'ConfigMap']) expect(kinds).not.toContain(kind)
  })

  it.each([
    ['serviceMonitor', 'Service', 'endpoints'],
    ['podMonitor', 'Deployment', 'podMetricsEndpoints'],
  ] as const)('%s finds what the chart runs, by a port that is there, and keeps the labels of the metrics', async (value, of, field) => {
    const monitor = await only(value, `monitoring.${value}.labels.release=prometheus`)
    expect(monitor.metadata).toMatchObject({
      namespace: 'ichor-system',
      labels: { release: 'prometheus', 'app.kubernetes.io/part-of': 'ichor' },
    })
    const found = (await rendered()).find(({ kind }) => kind === of)!
    const labels = of === 'Service' ? found.metadata.labels : found.spec.template.metadata.labels
    expect(labels).toMatchObject(monitor.spec.selector.matchLabels)
    const ports = of === 'Service' ? found.spec.ports : found.spec.template.spec.containers[0].ports
    expect(monitor.spec[field]).toEqual([{ port: ports[0].name, path: '/metrics', honorLabels: true }])
  })

  it('every alert is of metrics that there are, and speaks of labels that they have', async () => {
    const rule = await only('prometheusRule')
    const known = await metrics()
    const rules = rule.spec.groups[0].rules as readonly {
      alert: string
      expr: string
      for: string
      labels: object
      annotations: Record<string, string>
    }[]
    expect(rules.map(({ alert }) => alert)).toEqual(ALERTS.map(({ alert }) => alert))
    for (const { alert, expr, annotations } of rules) {
      const has = mustBeOurs(expr, known)
      // As Helm leaves them, Prometheus fills them in.
      for (const text of Object.values(annotations)) {
        const asked = [...text.matchAll(/\{\{ \$labels\.(\w+) \}\}/g)].map(([, label]) => label!)
        expect(has, `${alert}: ${text}`).toEqual(expect.arrayContaining(asked))
        expect(text.replaceAll(/\{\{ \$(labels\.\w+|value|value \| humanizeDuration) \}\}/g, '')).not.toMatch(/[{}]/)
      }
    }
    expect(rules.map(({ annotations }) => annotations['summary'])).toEqual(ALERTS.map(({ summary }) => summary))
  })

  it('every panel is of metrics that there are, and lies beside the others', async () => {
    const map = await only('dashboard')
    expect(map.metadata.labels).toMatchObject({ grafana_dashboard: '1' })
    const known = await metrics()
    const { panels } = JSON.parse(map.data['ichor.json']!) as {
      panels: readonly {
        id: number
        gridPos: { x: number; y: number; w: number; h: number }
        targets: readonly { expr: string; legendFormat?: string }[]
      }[]
    }
    const taken = new Set<string>()
    for (const { gridPos, targets } of panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken).not.toContain(`${x} ${y}`)
          taken.add(`${x} ${y}`)
        }
      for (const { expr, legendFormat = '' } of targets) {
        const has = mustBeOurs(expr, known)
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(has).toContain(label)
      }
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  })

  it('refuses what is no value', async () => {
    await expect(rendered('monitoring.serviceMonitor.enable=true')).rejects.toThrow(/additional properties 'enable' not allowed/)
    await expect(rendered('monitoring.alerts.enabled=true')).rejects.toThrow(/additional properties 'alerts' not allowed/)
  })

  it('knows an expression that is none', () => {
    expect(parsed('sum(ichor_leader').errors).toBeGreaterThan(0)
    expect(() => mustBeOurs('ichor_leaders == 1', new Map([['ichor_leader', []]]))).toThrow()
    expect(() => mustBeOurs('sum by (pod) (ichor_leader)', new Map([['ichor_leader', []]]))).toThrow()
  })
})
