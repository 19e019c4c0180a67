/** What a path names, before it is known whether it exists. */
export type Target = {
  readonly group: string
  readonly version: string
  readonly plural: string
  /** '' where the path names none. */
  readonly namespace: string
  readonly name: string
  readonly subresource: string
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

/** Namespaces have subresources of their own; any other word behind one is a resource within it. */
const OF_NAMESPACE = ['status', 'finalize']

/** Undefined where the path is not that of a resource. */
export const targetOf = (path: string): Target | undefined => {
  const parts = path
    .split('/')
    .filter(part => part !== '')
    .map(decodeURIComponent)
  const [root, ...rest] = parts
  const group = root === 'apis' ? rest.shift() : root === 'api' ? '' : undefined
  const version = rest.shift()
  if (group === undefined || version === undefined || rest.length === 0) return undefined
  let namespace = ''
  if (rest[0] === 'namespaces' && rest.length > 2 && !(rest.length === 3 && OF_NAMESPACE.includes(rest[2] ?? ''))) {
    namespace = rest[1] ?? ''
    rest.splice(0, 2)
  }
  const [plural = '', name = '', subresource = ''] = rest
  return rest.length > 3 ? undefined : { group, version, plural, namespace, name, subresource }
}

export const verbOf = (method: string, target: Target, watching: boolean): Verb | undefined => {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return watching ? 'watch' : target.name === '' ? 'list' : 'get'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return target.name === '' ? 'deletecollection' : 'delete'
    default:
      return undefined
  }
}
