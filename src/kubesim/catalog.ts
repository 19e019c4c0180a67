import type { JSONSchemaProps } from '../api/structural.ts'
import type { PrintColumn } from '../api/schema.ts'
import type { KubeObject, Store } from '../world/store.ts'
import { fieldsAt, isFields, listAt, textAt, valueAt } from './fields.ts'
import type { ResourceType } from './resource-types.ts'
import { BUILT_IN } from './resource-types.ts'

export const CRD_SHELF = 'customresourcedefinitions.apiextensions.k8s.io'

/** What is served now: the built-in types and those of the CustomResourceDefinitions in the store. */
export type Catalog = {
  types(): readonly ResourceType[]
  find(group: string, version: string, plural: string): ResourceType | undefined
}

const words = (list: readonly unknown[]): string[] => list.filter(word => typeof word === 'string')

const CUSTOM_VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']

/** The types of one definition, one for each version that is served. */
const typesOf = (crd: KubeObject): ResourceType[] => {
  const [spec, names] = [fieldsAt(crd, 'spec'), fieldsAt(crd, 'spec', 'names')]
  const [group, plural, kind] = [textAt(spec, 'group'), textAt(names, 'plural'), textAt(names, 'kind')]
  return listAt(spec, 'versions')
    .filter(version => valueAt(version, 'served') === true)
    .map(version => ({
      group,
      version: textAt(version, 'name'),
      plural,
      singular: textAt(names, 'singular') || kind.toLowerCase(),
      kind,
      listKind: textAt(names, 'listKind') || `${kind}List`,
      namespaced: textAt(spec, 'scope') === 'Namespaced',
      shortNames: words(listAt(names, 'shortNames')),
      categories: words(listAt(names, 'categories')),
      verbs: CUSTOM_VERBS,
      subresources: isFields(valueAt(version, 'subresources', 'status'))
        ? [{ name: 'status', kind, verbs: ['get', 'patch', 'update'] }]
        : [],
      shelf: `${plural}.${group}`,
      generation: true,
      custom: {
        schema: fieldsAt(version, 'schema', 'openAPIV3Schema') as JSONSchemaProps,
        columns: listAt(version, 'additionalPrinterColumns') as readonly PrintColumn[],
      },
    }))
}

export const createCatalog = (store: Store): Catalog => {
  // Definitions change rarely and are asked for with every request.
  let read: readonly KubeObject[] = []
  let types: readonly ResourceType[] = BUILT_IN
  const current = (): readonly ResourceType[] => {
    const { items } = store.list(CRD_SHELF)
    if (items.length !== read.length || items.some((item, at) => item !== read[at])) {
      read = items
      types = [...BUILT_IN, ...items.flatMap(typesOf)]
    }
    return types
  }
  return {
    types: current,
    find: (group, version, plural) => current().find(type => type.group === group && type.version === version && type.plural === plural),
  }
}
