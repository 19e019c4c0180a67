import type { KindBlock, OperationSpec } from './talos-operation.ts'

/** What needs the verb `start` on a subresource of talosoperations: a kind, or one action of it. */
export type StartRight = { readonly subresource: string; readonly kind: string; readonly block: string; readonly action?: string }

/** All of them, in the order of the kinds. */
export const startRights = (kinds: readonly KindBlock[]): readonly StartRight[] =>
  kinds.flatMap(({ name: kind, block, start, actions = [] }) => [
    ...(start === undefined ? [] : [{ subresource: start, kind, block }]),
    ...actions.flatMap(({ name: action, start: own }) => (own === undefined ? [] : [{ subresource: own, kind, block, action }])),
  ])

/** The one that an operation needs; undefined where it needs none. */
export const startRightOf = (kinds: readonly KindBlock[], spec: OperationSpec): StartRight | undefined =>
  startRights(kinds).find(right => right.kind === spec.kind && (right.action === undefined || right.action === actionOf(spec[right.block])))

const actionOf = (block: unknown): unknown =>
  typeof block === 'object' && block !== null ? (block as { action?: unknown }).action : undefined
