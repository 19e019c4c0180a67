import { sameValue } from '../same-value.ts'
import { checkValue } from './check.ts'
import { applyDeletion } from './deletions.ts'
import { documentOf, identityOf, readText, titleOf, type ConfigDocument } from './documents.ts'
import { applyOperation } from './json-patch.ts'
import { cannotMerge, merged } from './merge.ts'
import { pathText, type Note, type PatchNote, type Place } from './note.ts'
import { differsAt } from './places.ts'
import { protectedPlaces } from './protected.ts'
import { isNewerThanSchema, readPatch, type Notes, type PatchText, type Step } from './read-patch.ts'
import { documentShape, type Shape } from './shape.ts'
import { styleOf, writeDocuments } from './write.ts'
import { copyOf, isMapping, saying, type Node } from './yaml-nodes.ts'

export type PatchedConfig =
  | {
      readonly ok: true
      /** The configuration as the machine is to have it. Documents that say the same as before are the same, byte for byte. */
      readonly text: string
      /** Not only another text: it says something else. */
      readonly changed: boolean
      readonly warnings: readonly PatchNote[]
    }
  | { readonly ok: false; readonly faults: readonly PatchNote[] }

/**
 * What a machine's configuration is after patches, one after another, by the rules of Talos' own patcher (that of 1.13.9). `talos` is the
 * version of the machine, such as `v1.13.9`. Every fault of the patches themselves is found; of their application, those of the first that
 * cannot be applied.
 */
export const patchConfig = (config: string, patches: readonly PatchText[], talos: string): PatchedConfig => {
  const notes: Notes = { faults: [], warnings: [] }
  const before = readConfig(config, notes)
  const read = patches.map(patch => readPatch(patch, talos, notes))
  let after = before.map(document => ({ ...document, root: copyOf(document.root) }))
  for (const patch of read) {
    if (notes.faults.length > 0) return { ok: false, faults: notes.faults }
    for (const step of patch.steps) after = applyStep(after, step, talos)
    checkConflicts(after, patch.name, notes)
  }
  checkProtected(before, after, notes)
  if (notes.faults.length > 0) return { ok: false, faults: notes.faults }
  const result = after.map(document => withSource(document, before))
  const changed = result.length !== before.length || result.some(({ source }) => source === undefined)
  const text = changed ? (/^---[ \t]*\n/.test(config) ? '---\n' : '') + writeDocuments(result, styleOf(config)) : config
  return { ok: true, text, changed, warnings: notes.warnings }
}

/** The faults of patches that show without a machine's configuration; `talos` is the oldest version among the machines. */
export const checkPatches = (patches: readonly PatchText[], talos: string): Notes => {
  const notes: Notes = { faults: [], warnings: [] }
  for (const patch of patches) readPatch(patch, talos, notes)
  return notes
}

const inConfig = (code: PatchNote['code'], problem: string, at: Partial<PatchNote> = {}): PatchNote => ({
  patch: '',
  document: 'the configuration of the machine',
  path: '',
  code,
  problem,
  advice: '',
  ...at,
})

const readConfig = (config: string, notes: Notes): ConfigDocument[] => {
  const read = readText(config)
  if (!read.ok) {
    notes.faults.push(inConfig('unreadable', read.problem, { line: read.line }))
    return []
  }
  const documents = read.roots.flatMap(({ node, source }) => (isMapping(node) ? [documentOf(node, source)] : []))
  if (documents.length !== read.roots.length) notes.faults.push(inConfig('unreadable', 'a document in it is no mapping'))
  return documents
}

const applyStep = (documents: ConfigDocument[], step: Step, talos: string): ConfigDocument[] => {
  switch (step.does) {
    case 'operate':
      operate(documents, step, talos)
      return documents
    case 'delete':
      return afterDeletion(documents, step)
    case 'merge': {
      const left = documents.find(one => identityOf(one) === identityOf(step.document))
      if (!left) return [...documents, { ...step.document, root: copyOf(step.document.root) }]
      const shape = documentShape(left.kind)?.shape
      if (shape) merged(shape, left.root, step.document.root, step.place)
      else step.place.fault(cannotMerge('how Talos merges documents of this kind is not known here'), step.document.root)
      return documents
    }
  }
}

const afterDeletion = (documents: ConfigDocument[], step: Extract<Step, { does: 'delete' }>): ConfigDocument[] => {
  const { deletion } = step
  const place = deletion.path.reduce((at, key) => at.at(key), step.place)
  const left = documents.find(one => identityOf(one) === identityOf(step.in))
  if (!left) {
    const problem = `the machine does not have ${titleOf(step.in)} to delete from`
    place.fault({ code: 'noMatch', problem, advice: 'leave the deletion out for this machine' }, deletion.node)
    return documents
  }
  if (deletion.path.length === 0) return documents.filter(one => one !== left)
  applyDeletion(left.root, shapeOf(left), deletion, place)
  return documents
}

/** Of a kind that is not known here anything may be. */
const shapeOf = ({ kind }: ConfigDocument): Shape => documentShape(kind)?.shape ?? { kind: 'any' }

const operate = (documents: readonly ConfigDocument[], { operations, place }: Extract<Step, { does: 'operate' }>, talos: string): void => {
  const [document] = documents
  if (!document || documents.length > 1) {
    const problem = 'Talos applies a JSON patch only where the configuration is one document, and this one has several'
    place.fault({ code: 'cannotMerge', problem, advice: 'write it as a strategic merge patch' })
    return
  }
  const shape = shapeOf(document)
  const known = new Set(problemsOf(shape, document.root, talos).map(({ path }) => pathText(path)))
  for (const [index, operation] of operations.entries()) applyOperation(document.root, operation, place.at(`[${index}]`))
  for (const { path, note } of problemsOf(shape, document.root, talos)) {
    if (known.has(pathText(path))) continue
    const cause = operations.findLast(operation => operation.path.every((key, index) => index >= path.length || key === path[index]))
    path.reduce((at, key) => at.at(key), place).fault(note, cause?.node)
  }
}

type Problem = { readonly path: readonly string[]; readonly note: Note }

/** What is wrong with a document by itself. */
const problemsOf = (shape: Shape, root: Node, talos: string): readonly Problem[] => {
  const problems: Problem[] = []
  const place = (path: readonly string[]): Place => ({
    path,
    at: key => place([...path, key]),
    fault: note => void problems.push({ path, note }),
    warn: () => undefined,
  })
  checkValue(shape, root, place([]), isNewerThanSchema(talos))
  return problems
}

const checkConflicts = (documents: readonly ConfigDocument[], patch: string, notes: Notes): void => {
  for (const [index, document] of documents.entries()) {
    const conflicts = documentShape(document.kind)?.conflicts ?? []
    const other = documents.slice(0, index).find(({ kind, name }) => conflicts.includes(kind) && name === document.name)
    if (other)
      notes.faults.push(inConfig('cannotMerge', `${titleOf(document)} and ${titleOf(other)} may not stand beside each other`, { patch }))
  }
}

/** Whatever way a patch went: what is protected says the same as before. */
const checkProtected = (before: readonly ConfigDocument[], after: readonly ConfigDocument[], notes: Notes): void => {
  for (const { kind, path, note } of protectedPlaces) {
    if (differsAt(before, after, { kind, path }))
      notes.faults.push({
        ...inConfig('forbidden', note.problem),
        document: titleOf({ kind, apiVersion: '', name: '' }),
        path: pathText(path),
        advice: note.advice,
      })
  }
}

const withSource = (document: ConfigDocument, before: readonly ConfigDocument[]): ConfigDocument => {
  const { source: _, ...made } = document
  const same = before.find(one => identityOf(one) === identityOf(document) && sameValue(saying(one.root), saying(document.root)))
  return same ? document : made
}
