import { describe, expect, it } from 'vitest'
import type { WorldOptions } from './cluster.ts'
import { createWorld } from './cluster.ts'
import { setConfig } from './configuration.ts'
import { RESOURCE, change } from './objects.ts'

const world = (options: Partial<WorldOptions> = {}) => createWorld({ seed: 5, controlPlanes: 1, workers: 1, ...options })
type World = ReturnType<typeof world>
const pass = (w: World, ms: number) => w.schedule.advanceTo(w.schedule.now() + ms)
const node = (w: World, name: string) => w.store.get(RESOURCE.nodes, '', name)
const taints = (w: World, name: string) => (node(w, name)?.spec as { taints?: unknown[] } | undefined)?.taints
const configure = (w: World, name: string, section: string) => {
  const machine = w.machine(name)
  const base = machine.config.replace(/ {4}node(?:Labels|Annotations|Taints):\n(?: {8}.*\n)+/g, '')
  setConfig(w.site, machine, base.replace('cluster:\n', `${section}cluster:\n`))
  pass(w, 1000)
}

describe('the Node of a machine', () => {
  it('carries its role and what it is, and says which of it is Talos’ own', () => {
    const w = world()
    expect(node(w, 'cp-1')?.metadata.annotations?.['talos.dev/owned-labels']).toBe('["node-role.kubernetes.io/control-plane"]')
    expect(node(w, 'cp-1')?.metadata.annotations?.['talos.dev/owned-taints']).toBe('["node-role.kubernetes.io/control-plane"]')
    expect(taints(w, 'cp-1')).toEqual([{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }])
    expect(node(w, 'wk-1')?.metadata.annotations).toEqual({ 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' })
    expect(taints(w, 'wk-1')).toBeUndefined()
  })

  it('follows labels, annotations and taints of the configuration within a second, and loses them with it', () => {
    const w = world()
    configure(
      w,
      'wk-1',
      '    nodeLabels:\n        zone: a\n    nodeAnnotations:\n        note: here\n    nodeTaints:\n        gpu: "yes:NoSchedule"\n',
    )
    expect(node(w, 'wk-1')?.metadata.labels).toMatchObject({ zone: 'a' })
    expect(node(w, 'wk-1')?.metadata.annotations).toMatchObject({
      note: 'here',
      'talos.dev/owned-labels': '["zone"]',
      'talos.dev/owned-annotations': '["note"]',
      'talos.dev/owned-taints': '["gpu"]',
    })
    expect(taints(w, 'wk-1')).toEqual([{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }])
    configure(w, 'wk-1', '')
    expect(node(w, 'wk-1')?.metadata.labels).not.toHaveProperty('zone')
    expect(node(w, 'wk-1')?.metadata.annotations).toEqual({ 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' })
    expect(taints(w, 'wk-1')).toBeUndefined()
  })

  it('keeps what somebody else has set otherwise, and takes it over only where both say the same', () => {
    const w = world()
    change(w.store, RESOURCE.nodes, '', 'wk-1', now => ({
      ...now,
      metadata: { ...now.metadata, labels: { ...now.metadata.labels, zone: 'mine', same: 'both' } },
      spec: { ...(now.spec as object), taints: [{ key: 'gpu', effect: 'NoExecute' }] },
    }))
    configure(w, 'wk-1', '    nodeLabels:\n        zone: a\n        same: both\n    nodeTaints:\n        gpu: NoSchedule\n')
    expect(node(w, 'wk-1')?.metadata.labels).toMatchObject({ zone: 'mine', same: 'both' })
    expect(node(w, 'wk-1')?.metadata.annotations?.['talos.dev/owned-labels']).toBe('["same"]')
    expect(taints(w, 'wk-1')).toEqual([{ key: 'gpu', effect: 'NoExecute' }])
    configure(w, 'wk-1', '')
    expect(node(w, 'wk-1')?.metadata.labels).toMatchObject({ zone: 'mine' })
    expect(node(w, 'wk-1')?.metadata.labels).not.toHaveProperty('same')
    expect(taints(w, 'wk-1')).toEqual([{ key: 'gpu', effect: 'NoExecute' }])
  })

  it('comes back with them when it was deleted', () => {
    const w = world()
    configure(w, 'wk-1', '    nodeLabels:\n        zone: a\n')
    w.userDeleteNode('wk-1')
    w.powerOff('wk-1')
    w.powerOn('wk-1')
    pass(w, 300_000)
    expect(node(w, 'wk-1')?.metadata.labels).toMatchObject({ zone: 'a' })
  })

  it('shows the schematic of the image as an annotation', () => {
    const schematic = 'ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515'
    const w = world({ schematic })
    expect(node(w, 'wk-1')?.metadata.annotations?.['extensions.talos.dev/schematic']).toBe(schematic)
  })
})
