import { expect, vi } from 'vitest'
import type { RealKubeApiserver } from './kube-apiserver.ts'

type Deleted = { readonly name: string; readonly deletionTimestamp?: string }

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/**
 * Waits until no CRD is left of those that were deleted. An API server counts the objects that are still to go by a cache, and where the storage version has
 * just changed it may go on counting by the one from before, which learns nothing any more. One that starts anew counts right.
 */
export const typesGone = async (server: RealKubeApiserver): Promise<void> => {
  const areGone = async (): Promise<void> => {
    const { items } = (await server.request({ path: CRDS })).body as { readonly items: readonly { readonly metadata: Deleted }[] }
    expect(items.flatMap(({ metadata }) => (metadata.deletionTimestamp ? [metadata.name] : []))).toEqual([])
  }
  try {
    await vi.waitFor(areGone, { timeout: 30_000, interval: 200 })
  } catch {
    await server.restart()
    await vi.waitFor(areGone, { timeout: 150_000, interval: 200 })
  }
}
