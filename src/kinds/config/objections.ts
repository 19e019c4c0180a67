import type { Refusal } from '../../core/kind.ts'
import { refuse, sentence } from '../../core/preflight.ts'

/** What a machine has against its patched configuration, with the machine. */
export type Objection = { readonly name: string; readonly machine: string; readonly rule: string; readonly what: string }

/** The same of several machines is told once. */
export const grouped = (objections: readonly Objection[]): readonly Refusal[] => {
  const groups = new Map<string, readonly [Objection, ...Objection[]]>()
  for (const one of objections) {
    const key = `${one.rule} ${one.what.replaceAll(addressIn, '')}`
    const group = groups.get(key)
    groups.set(key, group ? [...group, one] : [one])
  }
  return [...groups.values()].map(([first, ...others]) => {
    const more = others.length > 0 ? ` The same holds for ${others.map(o => o.name).join(', ')}.` : ''
    return refuse(first.rule, `${first.name} ${sentence(first.what)}${more}`, first.machine)
  })
}
const addressIn = /\b\d+\.\d+\.\d+\.\d+(:\d+)?/g
