import { nearestAdvice } from '../nearest.ts'
import { checkValue, warnOfTrap } from './check.ts'
import { takeDeletions, type Deletion } from './deletions.ts'
import { documentOf, identityOf, readText, titleOf, type ConfigDocument } from './documents.ts'
import { readOperations, type Operation } from './json-patch.ts'
import { kindSince, knownKinds } from './kinds.ts'
import { placeIn, type PatchNote, type Place } from './note.ts'
import { refuseProtected } from './protected.ts'
import { documentShape, schemaMinor } from './shape.ts'
import { entriesOf, isListing, isMapping, itemsOf, textOf, valueAt, type Node } from './yaml-nodes.ts'

/** A patch as somebody wrote it. */
export type PatchText = {
  /** How it is called where something is wrong with it. */
  readonly name: string
  readonly text: string
}

/** A patch of which is known that it can be meant: one step after another, in the order in which Talos takes them. */
export type Patch = { readonly name: string; readonly steps: readonly Step[] }
export type Step = Strategic | { readonly does: 'operate'; readonly operations: readonly Operation[]; readonly place: Place }

/** Of a strategic merge patch. */
type Strategic =
  | { readonly does: 'delete'; readonly in: Target; readonly deletion: Deletion; readonly place: Place }
  | { readonly does: 'merge'; readonly document: ConfigDocument; readonly place: Place }

type Target = Pick<ConfigDocument, 'kind' | 'apiVersion' | 'name'>

export type Notes = { readonly faults: PatchNote[]; readonly warnings: PatchNote[] }

/**
 * Reads a patch and checks all that can be without a machine: fields, kinds of documents that a machine of version `talos` knows, and that
 * it touches no secret of the cluster. What is wrong is written into `notes`. Strategic merge and JSON patches are told apart by their form:
 * the latter is a list.
 */
export const readPatch = ({ name, text }: PatchText, talos: string, notes: Notes): Patch => {
  const read = readText(text)
  if (!read.ok) {
    notes.faults.push({ patch: name, document: '', line: read.line, path: '', code: 'unreadable', problem: read.problem, advice: '' })
    return { name, steps: [] }
  }
  const placeOf = (document: string): Place => placeIn(notes, { patch: name, document, lineOf: read.lineOf })
  const [first] = read.roots
  if (first && isListing(first.node)) return { name, steps: readJson(first.node, read.roots.length, placeOf('')) }
  const before = notes.faults.length
  const steps = read.roots.flatMap(({ node }) => readStrategic(node, placeOf, talos))
  if (steps.length === 0 && notes.faults.length === before)
    placeOf('').fault({ code: 'unreadable', problem: 'it says nothing', advice: 'give a strategic merge patch, or a JSON patch' })
  return { name, steps: ordered(steps, placeOf('')) }
}

const readJson = (root: Node, documents: number, place: Place): readonly Step[] => {
  if (documents > 1)
    place.fault({
      code: 'unreadable',
      problem: 'a JSON patch is one document, and there is more',
      advice: 'give the others as patches of their own',
    })
  if (itemsOf(root).length === 0) place.fault({ code: 'unreadable', problem: 'a JSON patch without an operation', advice: '' }, root)
  const operations = readOperations(root, place)
  for (const { path, from, verb, node, value } of operations) {
    refuseProtected('', path, true, place, node)
    if (verb === 'move' || verb === 'copy') refuseProtected('', from, true, place, node)
    if (value) warnOfTrapsIn(value, place.at(`/${path.join('/')}`))
  }
  return [{ does: 'operate', operations, place }]
}

/** A value of a JSON patch is read before anybody knows where it goes. */
const warnOfTrapsIn = (node: Node, place: Place): void => {
  if (isMapping(node) || isListing(node))
    for (const inner of [...entriesOf(node).map(({ value }) => value), ...itemsOf(node)]) warnOfTrapsIn(inner, place)
  else warnOfTrap(node, place, 'any')
}

const readStrategic = (node: Node, placeOf: (document: string) => Place, talos: string): readonly Strategic[] => {
  if (!isMapping(node)) {
    placeOf('').fault(
      { code: 'unreadable', problem: 'a document of a patch is a mapping, or the patch is a list of operations', advice: '' },
      node,
    )
    return []
  }
  const document = documentOf(node)
  const place = placeOf(titleOf(document))
  if (!isKnownKind(document, talos, place)) return []
  const { deletions, isEmpty } = takeDeletions(document.root, place)
  const target: Target = { ...document, name: textOf(valueAt(node, 'name')) }
  const steps: Strategic[] = deletions.map(deletion => ({ does: 'delete', in: target, deletion, place }))
  for (const { path, node: at } of deletions) refuseDeletion(document.kind, path, place, at)
  if (isEmpty) return steps
  const shape = documentShape(document.kind)
  if (shape) checkValue(shape.shape, document.root, place, isNewerThanSchema(talos))
  if (shape?.named && document.name === '')
    place
      .at('name')
      .fault({ code: 'wrongType', problem: 'documents of this kind are told apart by a name, and it has none', advice: '' }, node)
  refuseMentioned(document.kind, document.root, [], place)
  return [...steps, { does: 'merge', document, place }]
}

const refuseDeletion = (kind: string, path: readonly string[], place: Place, node: Node): void => {
  if (kind === '' && path.length === 0)
    place.fault({ code: 'forbidden', problem: 'the main document cannot be deleted', advice: 'say what in it is to go' }, node)
  else refuseProtected(kind, path, true, place, node)
}

/** What the patch gives a value to. The mappings that only lead there touch nothing. */
const refuseMentioned = (kind: string, node: Node, path: readonly string[], place: Place): void => {
  if (refuseProtected(kind, path, false, place, node)) return
  for (const { key, value } of entriesOf(node)) refuseMentioned(kind, value, [...path, key], place)
}

const isKnownKind = ({ kind, apiVersion, root }: ConfigDocument, talos: string, place: Place): boolean => {
  const at = valueAt(root, 'kind') ?? root
  const unknown = (problem: string, advice: string): false => {
    place.fault({ code: 'unknownKind', problem, advice }, at)
    return false
  }
  if (kind === '' && valueAt(root, 'apiVersion'))
    return unknown('a document with an apiVersion has a kind', 'give the kind, or leave the apiVersion out')
  if (kind === '') return true
  const since = kindSince(kind)
  if (since === undefined)
    return unknown(
      `Talos knows no documents of kind ${kind}`,
      apiVersion === 'v1alpha1' || apiVersion === ''
        ? nearestAdvice(knownKinds, kind)
        : 'those of Talos have the apiVersion v1alpha1; an object of Kubernetes is for kubectl apply',
    )
  if (apiVersion !== 'v1alpha1') return unknown(`Talos knows no ${kind} of this apiVersion`, 'its apiVersion is v1alpha1')
  return (
    minorNumber(talos) >= minorNumber(since) ||
    unknown(`documents of kind ${kind} are known from Talos ${since} on, and the machine runs ${talos}`, 'upgrade Talos first')
  )
}

/** 13 of `v1.13.4` and of `1.13`. Of what is no version, none that is more or less than another. */
const minorNumber = (version: string): number => Number(/^v?\d+\.(\d+)/.exec(version)?.[1])

export const isNewerThanSchema = (talos: string): boolean => minorNumber(talos) > minorNumber(schemaMinor)

/** Talos takes what is about the main document first, and no document twice. */
const ordered = (steps: readonly Strategic[], place: Place): readonly Strategic[] => {
  const merges = steps.flatMap(step => (step.does === 'merge' ? [step.document] : []))
  for (const document of merges.filter((one, index) => merges.findIndex(other => identityOf(other) === identityOf(one)) < index))
    place.fault(
      { code: 'unreadable', problem: `it has ${titleOf(document)} twice`, advice: 'put both into one document, or into two patches' },
      document.root,
    )
  const isMain = (step: Strategic): boolean => (step.does === 'delete' ? step.in : step.document).kind === ''
  const rank = (step: Strategic): number => (isMain(step) ? (step.does === 'delete' ? 0 : 1) : 2)
  return steps.toSorted((a, b) => rank(a) - rank(b))
}
