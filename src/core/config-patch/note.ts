/** What is wrong with a patch, or what whoever wrote it may not expect. */
export type PatchNote = {
  /** How the patch is called: what the caller gave it as a name, such as `patch 1`. Empty where the configuration itself is meant. */
  readonly patch: string
  /** The document of the patch, by kind and name; `the main document` is the one with `machine` and `cluster`. */
  readonly document: string
  /** From 1, in the text of the patch. */
  readonly line?: number
  /** `machine.kubelet.image`, or a JSON pointer. */
  readonly path: string
  readonly code: PatchNoteCode
  /** What is the matter. Never quotes a value. */
  readonly problem: string
  /** What would be right. */
  readonly advice: string
}

export type PatchNoteCode =
  | 'unreadable'
  | 'unknownField'
  | 'unknownKind'
  | 'wrongType'
  /** It deletes or changes what is not there. */
  | 'noMatch'
  /** It touches what no patch may change. */
  | 'forbidden'
  /** Talos itself cannot merge the two. */
  | 'cannotMerge'
  /** As a warning: what is written may be read as something else. */
  | 'trap'
  /** As a warning: a list has it already, and gets it twice. */
  | 'repeats'
  /** As a warning: a value that does not override. */
  | 'noEffect'
  /** As a warning: something goes that the patch does not name. */
  | 'loss'

/** In one line. */
export const noteText = ({ patch, document, line, path, problem, advice }: PatchNote): string => {
  const place = [patch, line === undefined ? '' : `line ${line}`, document, path].filter(part => part !== '').join(', ')
  return `${place}: ${problem}${advice === '' ? '' : `; ${advice}`}`
}

export type Note = Pick<PatchNote, 'code' | 'problem' | 'advice'>

export const repeats: Note = {
  code: 'repeats',
  problem: 'the list has this entry already, and gets it once more',
  advice: 'leave it out, or the machines where it is',
}

/** Where one is in a patch, and where what is found there is written down. */
export type Place = {
  readonly path: readonly string[]
  readonly at: (key: string) => Place
  /** `node` has the line. */
  readonly fault: (note: Note, node?: unknown) => void
  readonly warn: (note: Note, node?: unknown) => void
}

export const pathText = (path: readonly string[]): string =>
  path.map((key, index) => (key.startsWith('[') ? key : /[.[\]]/.test(key) ? `["${key}"]` : index === 0 ? key : `.${key}`)).join('')

type Notes = { readonly faults: PatchNote[]; readonly warnings: PatchNote[] }

/** The root of a document of a patch. */
export const placeIn = (
  notes: Notes,
  where: { readonly patch: string; readonly document: string; readonly lineOf: (node: unknown) => number | undefined },
  path: readonly string[] = [],
): Place => {
  const written = (note: Note, node: unknown): PatchNote => {
    const line = where.lineOf(node)
    return { patch: where.patch, document: where.document, ...(line === undefined ? {} : { line }), path: pathText(path), ...note }
  }
  return {
    path,
    at: key => placeIn(notes, where, [...path, key]),
    fault: (note, node) => void notes.faults.push(written(note, node)),
    warn: (note, node) => void notes.warnings.push(written(note, node)),
  }
}
