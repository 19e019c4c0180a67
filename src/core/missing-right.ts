/** A right that the API server misses. */
export type Right = { readonly verb: string; readonly resource: string; readonly group: string; readonly namespace: string }

/** Which one, in the API server's own words for a refusal; undefined where they are others. */
export const rightIn = (message: string): Right | undefined => {
  const [, verb, resource, group = '', namespace = ''] =
    /cannot (\w+) resource "([^"]+)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]+)")?/.exec(message) ?? []
  return verb === undefined || resource === undefined ? undefined : { verb, resource, group, namespace }
}

/** `get customresourcedefinitions.apiextensions.k8s.io`, `list pods in ichor-system`. */
export const rightText = ({ verb, resource, group, namespace }: Right): string =>
  `${verb} ${resource}${group === '' ? '' : `.${group}`}${namespace === '' ? '' : ` in ${namespace}`}`
