import { KEPT_ARGUMENTS } from '../../core/compatibility/kept-arguments.ts'
import { CONFIG_PLACES } from '../../core/compatibility/removed-options.ts'
import type { ConfigDocument } from '../../core/config-patch/documents.ts'
import { placeOf, saidAt } from '../../core/config-patch/places.ts'
import type { Component } from '../../ports/components.ts'
import { type Change, changesAny, isOfControlPlane } from './change.ts'
import type { Objection } from './objections.ts'

/** Arguments of Kubernetes' programs that Talos keeps for itself. Neither it nor its dry run refuses them, and whoever looks sees the pods from before. */

/** What goes with each other: one such argument, and Talos renders none of them. */
const GROUPS: readonly { readonly components: readonly Component[]; readonly follows: string }[] = [
  {
    components: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'],
    follows: 'it takes the configuration, and then renders no static pod of the machine any more',
  },
  { components: ['kubelet'], follows: 'it takes the configuration, and then has no kubelet to start' },
]

const placesOf = (component: Component): readonly string[] => {
  const { section, kind } = CONFIG_PLACES[component]
  return [section.join('.'), kind]
}

/** A document of its own says it all, where there is one. */
const argumentsIn = (documents: readonly ConfigDocument[], component: Component): readonly string[] => {
  const { section, kind } = CONFIG_PLACES[component]
  const place = documents.some(one => one.kind === kind) ? `${kind}.extraArgs` : `${section.join('.')}.extraArgs`
  return saidAt(documents, placeOf(place)).flatMap(said => (typeof said === 'object' && said !== null ? Object.keys(said) : []))
}

/** Also one that was there before, where the patch is about the same programs: it would come to nothing. */
export const keptArguments = (changes: readonly Change[]): readonly Objection[] =>
  changes.flatMap(change =>
    GROUPS.filter(({ components }) => components.includes('kubelet') || isOfControlPlane(change))
      .filter(({ components }) => changesAny(change, components.flatMap(placesOf)))
      .flatMap(({ components, follows }) =>
        components.flatMap(component => {
          const kept = argumentsIn(change.after, component).filter(name => KEPT_ARGUMENTS[component]?.includes(name))
          if (kept.length === 0) return []
          const what = `would have ${component} with --${kept.join(' and --')}, which Talos sets itself and lets nobody change: ${follows}`
          return [{ name: change.name, machine: change.machine.metadata.name, rule: 'ArgumentKept', what }]
        }),
      ),
  )
