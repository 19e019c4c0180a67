import { rightIn } from '../../core/missing-right.ts'
import { peoplesRoles, type Rule } from '../../install/roles.ts'

/** Whom to ask for what, where the API server has refused with these words. A role without the right is none that helps, and may be the one that one has. */
export const roleHints = (refusal: string): readonly string[] => {
  // A policy names the role itself.
  if (/the ClusterRole ichor-/.test(refusal)) return []
  const right = rightIn(refusal)
  const names = peoplesRoles([])
    .filter(role => right === undefined || (role as { readonly rules?: readonly Rule[] }).rules?.some(rule => grants(rule, right)))
    .map(({ metadata }) => metadata.name)
  if (names.length === 0) return ["None of Ichor's own ClusterRoles has that right: ask an administrator for it."]
  const last = names.at(-1)
  return [
    names.length === 1
      ? `Ask an administrator for the ClusterRole ${last}.`
      : `Ask an administrator for one of the ClusterRoles ${names.slice(0, -1).join(', ')} or ${last}.`,
  ]
}

const grants = ({ apiGroups = [], resources = [], verbs }: Rule, right: { verb: string; resource: string; group: string }): boolean =>
  apiGroups.includes(right.group) && resources.includes(right.resource) && verbs.includes(right.verb)
