import { integerOf, isNothing, textOf, valueAt, type Node } from './yaml-nodes.ts'

/**
 * How the items of a patch find those that they change: `find` says where in the list, -1 where there is none and the item is appended. Where
 * `isWhole`, the item takes the other's place instead of being merged into it.
 */
type Match = { readonly isWhole: boolean; readonly find: (items: readonly Node[], item: Node) => number }

/** The lists that Talos merges in a way of their own, by the names of their types. That there are no others is asked by shape.test.ts. */
export const KEYED_LISTS = [
  'NetworkDeviceList',
  'AdmissionPluginConfigList',
  'ConfigFileList',
  'VlanList',
  'ImageVerificationRules',
] as const
export type KeyedList = (typeof KEYED_LISTS)[number]

/** `length` is how many items there were before the patch. */
export const keyedMatch = (list: KeyedList, length: number): Match => {
  switch (list) {
    case 'NetworkDeviceList':
      return { isWhole: false, find: findDevice }
    case 'AdmissionPluginConfigList':
      return { isWhole: false, find: byText('name') }
    case 'ConfigFileList':
      return { isWhole: false, find: byText('mountPath') }
    case 'VlanList':
      return { isWhole: false, find: (items, item) => items.findIndex(other => vlanOf(other) === vlanOf(item)) }
    case 'ImageVerificationRules':
      return {
        isWhole: true,
        find: (items, item) => items.slice(0, length).findLastIndex(other => textAt(other, 'image') === textAt(item, 'image')),
      }
  }
}

const textAt = (node: Node, key: string): string => {
  const value = valueAt(node, key)
  return isNothing(value) ? '' : textOf(value)
}

const byText =
  (key: string): Match['find'] =>
  (items, item) =>
    items.findIndex(other => textAt(other, key) === textAt(item, key))

const vlanOf = (node: Node): number => Number(integerOf(textAt(node, 'vlanId')) ?? 0)

const findDevice: Match['find'] = (items, item) => {
  const name = textAt(item, 'interface')
  if (name !== '') return items.findIndex(other => textAt(other, 'interface') === name)
  const selector = valueAt(item, 'deviceSelector')
  return isNothing(selector) ? -1 : items.findIndex(other => isSameSelector(valueAt(other, 'deviceSelector'), selector as Node))
}

const SELECTORS = ['busPath', 'hardwareAddr', 'permanentAddr', 'pciID', 'driver']

/** One that says `physical` is never the same as another: Talos compares there where the value lies, not what it is. */
const isSameSelector = (one: Node | undefined, other: Node): boolean =>
  one !== undefined &&
  !isNothing(one) &&
  [one, other].every(selector => isNothing(valueAt(selector, 'physical'))) &&
  SELECTORS.every(key => textAt(one, key) === textAt(other, key))
