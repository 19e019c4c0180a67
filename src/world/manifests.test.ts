import { describe, expect, it } from 'vitest'
import { createWorld } from './cluster.ts'
import { bootstrapManifests, compareManifests, pruneManifests } from './manifests.ts'
import { RESOURCE } from './objects.ts'

const INVENTORY = ['configmaps', 'kube-system', 'talos-bootstrap-manifests-inventory'] as const

describe('what Talos once brought', () => {
  it('is known by its inventory, in which the core group has no name', () => {
    const { site, store, machine } = createWorld({ seed: 7, controlPlanes: 1, workers: 0 })
    const objects = bootstrapManifests(site, machine(0)).flatMap(manifest => manifest.objects)
    const leftovers = (): readonly string[] =>
      compareManifests(site, objects).flatMap(change => (change.would === 'leftover' ? [change.name] : []))
    expect(leftovers()).toEqual([])

    store.create(RESOURCE.configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'once', namespace: 'kube-system' } })
    const inventory = store.get(...INVENTORY)
    if (!inventory) throw new Error('there is no inventory')
    store.update(INVENTORY[0], { ...inventory, data: { ...(inventory['data'] as object), 'kube-system_once__ConfigMap': '' } })
    expect(leftovers()).toEqual(['ConfigMap kube-system/once'])

    pruneManifests(site, objects, leftovers())
    expect(leftovers()).toEqual([])
    expect(store.get(RESOURCE.configMaps, 'kube-system', 'once')).toBeUndefined()
  })
})
