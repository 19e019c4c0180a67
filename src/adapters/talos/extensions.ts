import { ok, type Result } from '../../ports/fault.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import type { Calls } from './calls.ts'
import { listResources } from './cosi.ts'
import { resourceTypes } from './resource-types.ts'

/** The pseudo-extension by which an Image Factory marks its images. */
const schematicName = 'schematic'
/** Talos lists its rebuilt module index among the extensions. */
const moduleIndexName = 'modules.dep'

/** What the running image carries beside Talos. */
export async function readExtensions(
  calls: Calls,
  address: string,
): Promise<Result<Pick<MachineFacts, 'schematic' | 'factory' | 'extensions'>>> {
  const listed = await listResources(calls, address, resourceTypes.extensionStatus)
  if (!listed.ok) return listed
  const all = listed.value.flatMap(({ spec }) => spec.metadata ?? [])
  const schematic = all.find(({ name }) => name === schematicName)
  return ok({
    schematic: schematic?.version ?? '',
    factory: hostIn(schematic?.author ?? ''),
    extensions: all.map(({ name }) => name).filter(name => name !== schematicName && name !== moduleIndexName),
  })
}

/** The author of a schematic is `Image Factory (https://factory.talos.dev)`; older factories named themselves only. */
function hostIn(author: string): string {
  const [, url] = /\((https?:\/\/[^\s)]+)\)/.exec(author) ?? []
  return url !== undefined && URL.canParse(url) ? new URL(url).host : ''
}
