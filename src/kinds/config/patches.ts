import type { TalosOperation } from '../../api/talos-operation.ts'
import type { PatchNote } from '../../core/config-patch/note.ts'
import { patchConfig, type PatchedConfig } from '../../core/config-patch/patch-config.ts'
import type { PatchText } from '../../core/config-patch/read-patch.ts'
import { withoutValuesOf } from '../../core/config-patch/secrets.ts'
import { sha256 } from '../../core/sha256.ts'
import type { Need, World } from '../../core/world.ts'
import { textsFacts } from '../../core/world.ts'
import type { Fault } from '../../ports/fault.ts'
import type { TextSource } from '../../ports/home.ts'
import type { PatchSource } from './spec.ts'
import { specOf } from './spec.ts'

/** Where the patches come from, and what they make of a configuration. */

type Ref = { readonly kind: TextSource; readonly name: string; readonly key: string }

const refOf = ({ secretKeyRef, configMapKeyRef }: PatchSource): Ref | undefined =>
  secretKeyRef ? { kind: 'Secret', ...secretKeyRef } : configMapKeyRef ? { kind: 'ConfigMap', ...configMapKeyRef } : undefined

export const textNeeds = (operation: TalosOperation): readonly Need[] =>
  specOf(operation).patches.flatMap(source => {
    const ref = refOf(source)
    return ref ? [{ what: 'texts', kind: ref.kind, name: ref.name } as const] : []
  })

/** Why a patch cannot be had. `fault` where the object itself could not be read. */
export type Missing = { readonly message: string; readonly fault?: Fault }

export type Patches = {
  /** The texts of those that a Secret holds. */
  readonly secrets: readonly string[]
} & (
  | {
      readonly ok: true
      readonly texts: readonly PatchText[]
      /**
       * Of each that is in an object: its hash, by which it is known when it is another one. It is taken together with the UID of the object, which is
       * known only to those who may read it: a password must not be found by its hash.
       */
      readonly pins: Readonly<Record<string, string>>
    }
  | { readonly ok: false; readonly missing: readonly [Missing, ...Missing[]] }
)

export const patchesOf = (operation: TalosOperation, world: World): Patches => {
  const texts: PatchText[] = []
  const pins: Record<string, string> = {}
  const secrets: string[] = []
  const missing: Missing[] = []
  for (const [index, source] of specOf(operation).patches.entries()) {
    const name = `patch ${index + 1}`
    const ref = refOf(source)
    if (source.inline !== undefined) texts.push({ name, text: source.inline })
    else if (ref) {
      const found = textsFacts(world, ref)
      const where = `${ref.kind} ${operation.metadata.namespace}/${ref.name}`
      const text = found.ok ? found.value.data[ref.key] : undefined
      if (!found.ok) missing.push({ message: unreadText(name, where, found.fault), fault: found.fault })
      else if (text === undefined)
        missing.push({ message: `${name}: ${where} has no key ${ref.key}${keysText(Object.keys(found.value.data))}` })
      else {
        texts.push({ name: `${name} (${where}, key ${ref.key})`, text })
        if (ref.kind === 'Secret') secrets.push(text)
        pins[`${ref.kind}/${ref.name}/${ref.key}`] = sha256(`${found.value.uid}\n${text}`)
      }
    } else missing.push({ message: `${name}: it names neither a text nor a Secret nor a ConfigMap` })
  }
  const [first, ...others] = missing
  return first ? { ok: false, missing: [first, ...others], secrets } : { ok: true, texts, pins, secrets }
}

/** What a machine says about a patched configuration. It may quote values; those of a Secret are told to nobody. */
export const saidByMachine = (operation: TalosOperation, world: World, said: string): string =>
  withoutValuesOf(patchesOf(operation, world).secrets, said)

const unreadText = (name: string, where: string, fault: Fault): string =>
  fault.kind === 'notFound' ? `${name}: there is no ${where}` : `${name}: ${where} cannot be read: ${fault.message}`

const keysText = (keys: readonly string[]): string => (keys.length > 0 ? ` (it has: ${keys.slice(0, 8).join(', ')})` : ' (it is empty)')

const MOST_KEPT = 64
const kept = new Map<string, PatchedConfig>()

/** As `patchConfig`, which reads the whole configuration anew: of the last ones that were asked for, the answer is kept. */
export const patched = (config: string, texts: readonly PatchText[], talos: string): PatchedConfig => {
  const key = JSON.stringify([talos, texts, config])
  const known = kept.get(key)
  if (known) return known
  const made = patchConfig(config, texts, talos)
  const [oldest] = kept.keys()
  if (kept.size >= MOST_KEPT && oldest !== undefined) kept.delete(oldest)
  kept.set(key, made)
  return made
}

/** What whoever wrote it may not have meant: what is written is read as something else. */
export const isTrap = ({ code }: PatchNote): boolean => code === 'trap'
