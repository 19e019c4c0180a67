import type { ResourceType } from './resource-types.ts'
import { apiVersionOf } from './resource-types.ts'

const AGGREGATED = /g=apidiscovery\.k8s\.io/

/** The version of aggregated discovery that a client prefers, if it asks for it. */
export const aggregatedVersion = (accept: string): 'v2' | 'v2beta1' | undefined => {
  for (const one of accept.split(',')) {
    if (!AGGREGATED.test(one)) {
      if (/application\/json/.test(one)) return undefined
      continue
    }
    if (/v=v2(;|$)/.test(one)) return 'v2'
    if (/v=v2beta1(;|$)/.test(one)) return 'v2beta1'
  }
  return undefined
}

const versionsOf = (types: readonly ResourceType[]): string[] => [...new Set(types.map(type => type.version))]
const groupsOf = (types: readonly ResourceType[]): string[] => [...new Set(types.map(type => type.group))].filter(group => group !== '')

const full = <T>(list: readonly T[]): readonly T[] | undefined => (list.length > 0 ? list : undefined)

const aggregatedResource = (type: ResourceType) => ({
  resource: type.plural,
  responseKind: { group: type.custom ? type.group : '', version: type.custom ? type.version : '', kind: type.kind },
  scope: type.namespaced ? 'Namespaced' : 'Cluster',
  singularResource: type.singular,
  verbs: type.verbs,
  shortNames: full(type.shortNames),
  categories: full(type.categories),
  subresources: full(
    type.subresources.map(({ name, kind, group, verbs }) => ({
      subresource: name,
      responseKind: { group: group ?? (type.custom ? type.group : ''), version: group || type.custom ? type.version : '', kind },
      verbs,
    })),
  ),
})

/** `APIGroupDiscoveryList` of the core group or of all others. */
export const aggregated = (types: readonly ResourceType[], core: boolean, version: 'v2' | 'v2beta1') => ({
  kind: 'APIGroupDiscoveryList',
  apiVersion: `apidiscovery.k8s.io/${version}`,
  metadata: {},
  items: (core ? [''] : groupsOf(types)).map(group => {
    const own = types.filter(type => type.group === group)
    return {
      metadata: group === '' ? {} : { name: group },
      versions: versionsOf(own).map(each => ({
        version: each,
        resources: own.filter(type => type.version === each).map(aggregatedResource),
        freshness: 'Current',
      })),
    }
  }),
})

const group = (types: readonly ResourceType[], name: string) => {
  const versions = versionsOf(types.filter(type => type.group === name)).map(version => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions, preferredVersion: versions[0] }
}

/** `/apis/<group>`; undefined where nothing of that group is served. */
export const apiGroup = (types: readonly ResourceType[], name: string) =>
  groupsOf(types).includes(name) ? { kind: 'APIGroup', apiVersion: 'v1', ...group(types, name) } : undefined

export const apiGroups = (types: readonly ResourceType[]) => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groupsOf(types).map(name => group(types, name)),
})

export const coreVersions = (address: string) => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
})

/** `/api/v1` and `/apis/<group>/<version>`; undefined where nothing of them is served. */
export const apiResources = (types: readonly ResourceType[], groupName: string, version: string) => {
  const own = types.filter(type => type.group === groupName && type.version === version)
  const [first] = own
  if (!first) return undefined
  return {
    kind: 'APIResourceList',
    ...(groupName === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: apiVersionOf(first),
    resources: own.flatMap(type => [
      {
        name: type.plural,
        singularName: type.singular,
        namespaced: type.namespaced,
        kind: type.kind,
        verbs: type.verbs,
        shortNames: full(type.shortNames),
        categories: full(type.categories),
      },
      ...type.subresources.map(({ name, kind, group: other, verbs }) => ({
        name: `${type.plural}/${name}`,
        singularName: '',
        namespaced: type.namespaced,
        ...(other ? { group: other, version: 'v1' } : {}),
        kind,
        verbs,
      })),
    ]),
  }
}
