import type { Place } from './note.ts'
import { instead, isNothing, text, textOf, type Node } from './yaml-nodes.ts'

/** An address is merged by its parts: a patch that names another host keeps the path. */
export const mergedUrl = (left: Node | undefined, right: Node | undefined, place: Place): Node | undefined => {
  if (isNothing(right) || textOf(right) === '') return left
  if (isNothing(left) || textOf(left) === '') return instead(left, right as Node)
  const [before, after] = [partsOf(textOf(left)), partsOf(textOf(right))]
  if (before.user && after.user)
    place.fault(
      {
        code: 'cannotMerge',
        problem: 'Talos cannot merge two addresses that both name a user',
        advice: 'delete the first in a patch of its own',
      },
      right,
    )
  const address = addressOf({
    scheme: after.scheme || before.scheme,
    user: after.user || before.user,
    host: after.host || before.host,
    path: after.path || before.path,
    query: after.query || before.query,
    fragment: after.fragment || before.fragment,
  })
  return address === textOf(right) ? instead(left, right as Node) : instead(left, text(address))
}

type Parts = Readonly<Record<'scheme' | 'user' | 'host' | 'path' | 'query' | 'fragment', string>>

const partsOf = (address: string): Parts => {
  // Whatever the text is, something of it is a path.
  const found = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/(?:([^/?#]*)@)?([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(address)
  const [, scheme = '', user = '', host = '', path = '', query = '', fragment = ''] = found!
  return { scheme: scheme.toLowerCase(), user, host, path, query, fragment }
}

const addressOf = ({ scheme, user, host, path, query, fragment }: Parts): string =>
  (scheme && `${scheme}:`) +
  (host || user ? `//${user && `${user}@`}${host}` : '') +
  (host && path && !path.startsWith('/') ? `/${path}` : path) +
  (query && `?${query}`) +
  (fragment && `#${fragment}`)

/** Bytes and a share of the disk are two fields to Talos, of which the bytes win, whichever came later. */
export const mergedSize = (left: Node | undefined, right: Node | undefined): Node | undefined => {
  if (isNothing(right) || textOf(right) === '') return left
  const isShadowed = textOf(right).includes('%') && textOf(left) !== '' && !textOf(left).includes('%')
  return isShadowed ? left : instead(left, right as Node)
}
