import { documentsOf, type ConfigDocument } from '../../core/config-patch/documents.ts'
import { differsAt, placeOf } from '../../core/config-patch/places.ts'
import type { Known } from '../../core/preflight.ts'
import type { Wish } from './view.ts'

/** A machine that is to get another configuration, and what the documents of the two say. */
export type Change = Known & { readonly before: readonly ConfigDocument[]; readonly after: readonly ConfigDocument[] }

export const changesOf = (wishes: readonly (Known & { readonly wish: Wish })[]): readonly Change[] =>
  wishes.flatMap(({ wish, ...known }) =>
    wish.is === 'made' && wish.from !== wish.to ? [{ ...known, before: documentsOf(wish.from), after: documentsOf(wish.to) }] : [],
  )

/** Whether any of these places says something else afterwards; written as `placeOf` reads them. */
export const changesAny = ({ before, after }: Change, places: readonly string[]): boolean =>
  places.some(place => differsAt(before, after, placeOf(place)))

export const isOfControlPlane = ({ machine }: Known): boolean => machine.spec.role === 'controlplane'
