import type { World } from '../world/cluster.ts'
import { RESOURCE } from '../world/objects.ts'
import { asciiBytes, encodeBase64 } from '../world/ports/base64.ts'
import type { Random } from '../world/random.ts'
import { NAMESPACE } from './story.ts'

/** Patches that stand in objects beside the operation, as those who keep theirs in Git or have a password in them write it. */

type Key = { readonly name: string; readonly key: string }
export type Source = { readonly inline?: string; readonly secretKeyRef?: Key; readonly configMapKeyRef?: Key }

const NAME = 'patches'
const TEXTS = {
  sysctls: 'machine:\n  sysctls:\n    vm.swappiness: "10"\n',
  login:
    'machine:\n  registries:\n    config:\n      registry.example:\n        auth:\n          username: somebody\n          password: hunter22hunter22\n',
}
const KINDS = { secretKeyRef: RESOURCE.secrets, configMapKeyRef: RESOURCE.configMaps } as const

/** One that is there, or seldom one that is not: without its object, without its key, or naming nothing, which an API server without CEL takes. */
export const drawSource = (random: Random): Source => {
  if (random.chance(0.04)) return {}
  const kind = random.pick(['secretKeyRef', 'configMapKeyRef'] as const)
  const name = random.chance(0.15) ? 'nobody' : random.chance(0.1) ? 'empty' : NAME
  return { [kind]: { name, key: random.chance(0.15) ? 'another' : random.pick(Object.keys(TEXTS)) } }
}

/** The texts are others from now on, where it is told: somebody has pushed them. */
export const setUpSources = ({ store }: World, edit: (text: string) => string = text => text): void => {
  for (const [kind, resource] of Object.entries(KINDS))
    for (const [name, texts] of [[NAME, TEXTS] as const, ['empty', {}] as const]) {
      const data = Object.fromEntries(
        Object.entries(texts).map(([key, text]) => [key, kind === 'secretKeyRef' ? encodeBase64(asciiBytes(edit(text))) : edit(text)]),
      )
      const known = store.get(resource, NAMESPACE, name)
      if (known) store.update(resource, { ...known, data })
      else
        store.create(resource, {
          apiVersion: 'v1',
          kind: resource === RESOURCE.secrets ? 'Secret' : 'ConfigMap',
          metadata: { name, namespace: NAMESPACE },
          data,
        })
    }
}

export const deleteSources = ({ store }: World): void => {
  for (const resource of Object.values(KINDS)) store.remove(resource, NAMESPACE, NAME)
}
