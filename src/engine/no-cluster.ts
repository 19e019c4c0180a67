import type { Home, Key } from '../ports/home.ts'

/** Says that a cluster does not exist, and which do. */
export const noCluster = async (home: Home, { namespace, name }: Key): Promise<string> => {
  const all = await home.clusters(namespace)
  const names = all.ok ? all.value.map(c => c.metadata.name).join(', ') || 'none' : 'unknown'
  return `There is no TalosCluster ${name} in namespace ${namespace} (there are: ${names}).`
}
