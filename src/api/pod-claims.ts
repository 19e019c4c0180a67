/**
 * The PersistentVolumeClaims, of its own namespace, that a pod uses: those that it names, and those that are made for it, which have the names of pod and
 * volume. `volumes` is `spec.volumes` of the pod.
 */
export const claimsOf = (pod: string, volumes: unknown): readonly string[] =>
  Array.isArray(volumes)
    ? volumes.flatMap((volume: unknown) => {
        if (typeof volume !== 'object' || volume === null) return []
        const { name, persistentVolumeClaim, ephemeral } = volume as {
          readonly name?: unknown
          readonly persistentVolumeClaim?: { readonly claimName?: unknown }
          readonly ephemeral?: unknown
        }
        const claim = persistentVolumeClaim?.claimName
        if (typeof claim === 'string') return [claim]
        return ephemeral !== undefined && typeof name === 'string' ? [`${pod}-${name}`] : []
      })
    : []
