import { createHash } from 'node:crypto'
import type { ResourceType } from './resource-types.ts'

/** OpenAPI v3 as far as kubectl reads it: which parameters a PATCH takes, and the schemas that `explain` shows. */
const versionPath = (type: ResourceType): string => (type.group === '' ? `api/${type.version}` : `apis/${type.group}/${type.version}`)

const componentName = (type: ResourceType): string => {
  const reversed = type.group === '' ? 'io.k8s.api.core' : type.group.split('.').toReversed().join('.')
  return `${reversed}.${type.version}.${type.kind}`
}

const METADATA = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

const OBJECT_META = {
  description: 'ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.',
  type: 'object',
  properties: {
    annotations: {
      description: 'Annotations are for tools: any text under any key.',
      type: 'object',
      additionalProperties: { type: 'string' },
    },
    labels: { description: 'Labels are what objects are selected by.', type: 'object', additionalProperties: { type: 'string' } },
    name: { description: 'The name, unique within namespace and kind.', type: 'string' },
    namespace: { description: 'The namespace.', type: 'string' },
  },
}

const BASICS = {
  apiVersion: {
    description:
      'APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources',
    type: 'string',
  },
  kind: {
    description:
      'Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds',
    type: 'string',
  },
  metadata: {
    description:
      "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
    default: {},
    allOf: [{ $ref: `#/components/schemas/${METADATA}` }],
  },
}

const gvkOf = (type: ResourceType) => ({ group: type.group, version: type.version, kind: type.kind })

const component = (type: ResourceType) => {
  const schema = type.custom?.schema
  const gvk = { 'x-kubernetes-group-version-kind': [gvkOf(type)] }
  if (!schema) return { type: 'object', properties: BASICS, ...gvk }
  return { ...schema, properties: { ...schema.properties, ...BASICS }, ...gvk }
}

const QUERY = ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map(name => ({
  name,
  in: 'query',
  schema: { type: name === 'force' ? 'boolean' : 'string', uniqueItems: true },
}))

const paths = (type: ResourceType) => {
  const base = `/${versionPath(type)}${type.namespaced ? '/namespaces/{namespace}' : ''}/${type.plural}`
  const gvk = { 'x-kubernetes-group-version-kind': gvkOf(type) }
  const schema = { $ref: `#/components/schemas/${componentName(type)}` }
  const responses = { 200: { description: 'OK', content: { 'application/json': { schema } } } }
  const can = (verb: string): boolean => type.verbs.includes(verb)
  return {
    [base]: {
      ...(can('list') ? { get: { responses, 'x-kubernetes-action': 'list', ...gvk } } : {}),
      post: { parameters: QUERY.slice(0, 3), responses, 'x-kubernetes-action': 'post', ...gvk },
    },
    ...(can('patch')
      ? {
          [`${base}/{name}`]: {
            get: { responses, 'x-kubernetes-action': 'get', ...gvk },
            put: { parameters: QUERY.slice(0, 3), responses, 'x-kubernetes-action': 'put', ...gvk },
            patch: { parameters: QUERY, responses, 'x-kubernetes-action': 'patch', ...gvk },
            delete: { parameters: QUERY.slice(0, 1), responses, 'x-kubernetes-action': 'delete', ...gvk },
          },
        }
      : {}),
  }
}

/** The document of one group and version; undefined where nothing of it is served. `path` is `api/v1` or `apis/<group>/<version>`. */
export const openApiDocument = (types: readonly ResourceType[], path: string, version: string) => {
  const own = types.filter(type => versionPath(type) === path)
  if (own.length === 0) return undefined
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version },
    paths: Object.assign({}, ...own.map(paths)) as object,
    components: { schemas: { ...Object.fromEntries(own.map(type => [componentName(type), component(type)])), [METADATA]: OBJECT_META } },
  }
}

export const openApiIndex = (types: readonly ResourceType[], version: string) => ({
  paths: Object.fromEntries(
    [...new Set(types.map(versionPath))].map(path => {
      // Clients keep a document as long as its address stays the same.
      const hash = createHash('sha256')
        .update(JSON.stringify(openApiDocument(types, path, version)))
        .digest('hex')
        .toUpperCase()
      return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]
    }),
  ),
})
