import type { Refusal } from '../../core/kind.ts'
import { refuse, sentence } from '../../core/preflight.ts'

/** What a machine has against its patched configuration, with the machine. */
export type Objection = { readonly name: string; readonly machine: string; readonly rule: string; readonly what: string }

/** The same of several machines is told once. */
export const grouped = (objections: readonly Objection[]): readonly Refusal[] => {
  const groups = new Map<string, Objection[]>()
  for (const one of objections) {
    const key = `${one.rule} ${one.what.replaceAll(addressIn, '')}`
    groups.set(key, [...(groups.get(key) ?? []), one])
  }
  return [...groups.values()].flatMap(group => {
    const [first, ...others] = group
    if (!first) return []
    const more = others.length > 0 ? ` The same holds for ${others.map(o => o.name).join(', ')}.` : ''
    return [refuse(first.rule, `${first.name} ${sentence(first.what)}${more}`, first.machine)]
  })
}
const addressIn = /\b\d+\.\d+\.\d+\.\d+(:\d+)?/g
