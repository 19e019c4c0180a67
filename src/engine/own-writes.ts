import type { TalosOperation } from '../api/talos-operation.ts'
import type { Result } from '../ports/fault.ts'
import type { Home, Key } from '../ports/home.ts'

/** A home that remembers, for each operation, which versions our last writes made. */
export type OwnWrites = {
  readonly home: Home
  /**
   * Whether that version of an operation is one that we wrote. A write is a compare-and-swap on what its pass had read, so nothing that
   * others wrote can hide behind it.
   */
  readonly isOwn: (key: Key, resourceVersion: string | undefined) => boolean
}

/** Events of several writes in a row come late. */
const KEPT = 8

export const rememberWrites = (home: Home): OwnWrites => {
  const versions = new Map<string, readonly string[]>()
  const path = ({ namespace, name }: Key): string => `${namespace}/${name}`
  const remember = (result: Result<TalosOperation>): Result<TalosOperation> => {
    if (!result.ok) return result
    const { metadata } = result.value
    versions.set(path(metadata), [...(versions.get(path(metadata)) ?? []).slice(1 - KEPT), metadata.resourceVersion])
    return result
  }
  return {
    home: {
      ...home,
      // The answer to the write that lets it go may come after the event that says it is gone; a look is always the last.
      operation: async key => {
        const found = await home.operation(key)
        if (!found.ok && found.fault.kind === 'notFound') versions.delete(path(key))
        return found
      },
      writeOperationStatus: async (operation, status) => remember(await home.writeOperationStatus(operation, status)),
      changeOperation: async (operation, change) => remember(await home.changeOperation(operation, change)),
    },
    isOwn: (key, resourceVersion) => {
      if (resourceVersion !== undefined) return versions.get(path(key))?.includes(resourceVersion) ?? false
      // Gone, or nobody knows its version.
      versions.delete(path(key))
      return false
    },
  }
}
