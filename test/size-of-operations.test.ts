// An operation's status is its only memory, so it grows with the machines. etcd takes objects of 1.5 MB, and all that watch it read it at every change.
import { describe, expect, it } from 'vitest'
import { toCrd, type JSONSchemaProps } from '../src/api/structural.ts'
import { talosOperation, type TalosOperation, type Target } from '../src/api/talos-operation.ts'
import { withConditions } from '../src/core/ledger.ts'
import { kinds } from '../src/kinds/registry.ts'
import { recordWrite } from '../src/kubesim/managed-fields.ts'
import { createStory } from '../src/storm/story.ts'

const MACHINES = 200
const LIMIT = 256 * 1024
/** The workers that are open at once, with maxUnavailable 25%. */
const OPEN = 50

const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
const largest = <T>(all: readonly T[]): T => all.reduce((most, one) => (bytes(one) > bytes(most) ? one : most))

/** Every record of a machine, and every status, of an upgrade that had to ask for much twice. */
const statusesOf = async (): Promise<{ readonly operation: TalosOperation; readonly statuses: readonly TalosOperation['status'][] }> => {
  const statuses: TalosOperation['status'][] = []
  const story = createStory({
    controlPlanes: 3,
    workers: 3,
    talos: 'v1.13.5',
    schematic: '0123456789abcdef'.repeat(4),
    wrap: ports => ({
      ...ports,
      home: {
        ...ports.home,
        writeOperationStatus: async (operation, status) => {
          const written = await ports.home.writeOperationStatus(operation, status)
          if (written.ok) statuses.push(status)
          return written
        },
      },
    }),
  })
  story.start()
  await story.pass(60_000)
  story.create({ name: 'up', spec: { kind: 'talos', talos: { version: 'v1.13.9' }, maxUnavailable: 2 } })
  await story.until('it is done', () => story.operation('up')?.status.phase === 'Completed')
  return { operation: story.operation('up')!, statuses }
}

/** The same record of another machine, with names as long as those of a cloud, and an address of IPv6. */
const renamed = (target: Target, index: number): Target => {
  const hostname = `ip-10-12-${index}.eu-central-1.compute.internal`
  const text = JSON.stringify(target)
    .replaceAll(target.hostname ?? target.name, hostname)
    .replaceAll(target.address ?? '-', `fd00:10:20:30::${index}`)
  return { ...(JSON.parse(text) as Target), name: `${hostname}-0a1b2c3d`, node: hostname }
}

type Crd = { readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: JSONSchemaProps } }[] } }

const asStored = (operation: TalosOperation, status: TalosOperation['status']): object => {
  const schema = (toCrd(talosOperation(kinds)) as Crd).spec.versions[0]!.schema.openAPIV3Schema
  const shape = { kind: 'TalosOperation', schema }
  const time = '2026-09-01T08:00:00Z'
  const { metadata, spec } = operation
  const created = {
    apiVersion: 'ichor.maesh.dev/v1alpha1',
    kind: 'TalosOperation',
    metadata: { name: metadata.name, namespace: metadata.namespace },
    spec,
  }
  const apiVersion = created.apiVersion
  const creator = recordWrite(undefined, created, { manager: { name: 'ichor', operation: 'Update', apiVersion }, shape, time })
  const before = { ...created, metadata: { ...created.metadata, managedFields: creator } }
  const manager = { name: 'ichor-controller', operation: 'Update', apiVersion, subresource: 'status' } as const
  const managedFields = recordWrite(before, { ...before, status }, { manager, shape, time })
  return { ...created, metadata: { ...metadata, managedFields }, status }
}

describe('the size of an operation', () => {
  it(`with ${MACHINES} machines stays below 256 kB, as the server stores it, at its largest`, async () => {
    const { operation, statuses } = await statusesOf()
    const records = statuses.flatMap(({ machines = [] }) => machines)
    const open = largest(records.filter(({ phase }) => phase === 'Running'))
    const done = largest(records.filter(({ phase }) => phase === 'Completed'))
    expect(open.receipts?.length).toBeGreaterThan(0)
    const status = largest(statuses)
    // With a refusal of the longest words, which each condition repeats, and the longest history.
    const full = withConditions(
      {
        ...status,
        machines: Array.from({ length: MACHINES }, (_, index) => renamed(index < OPEN ? open : done, index)),
        message: 'x'.repeat(4096),
        history: Array.from({ length: 20 }, () => ({ at: '2026-09-01T08:00:00.000Z', message: 'x'.repeat(512) })),
      },
      operation,
      0,
    )
    const stored = asStored(operation, full)
    expect(JSON.stringify(stored)).toContain('f:machines')
    expect(bytes(stored)).toBeLessThan(LIMIT)
  })
})
