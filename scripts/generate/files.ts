// Files as values: what a generator makes, what is on disk, and the difference.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Paths relative to the repository, with their text. */
export type Files = ReadonlyMap<string, string>

export type Difference = { readonly path: string; readonly what: 'is missing' | 'differs' | 'is no longer generated' }

/** What would have to change on disk. In the folders that are named, every file belongs to the generator. */
export const differences = (root: string, files: Files, ownedFolders: readonly string[]): Difference[] => {
  const found: Difference[] = []
  for (const [path, text] of files) {
    const now = read(join(root, path))
    if (now === undefined) found.push({ path, what: 'is missing' })
    else if (now !== text) found.push({ path, what: 'differs' })
  }
  for (const folder of ownedFolders) {
    for (const name of list(join(root, folder))) {
      const path = `${folder}/${name}`
      if (!files.has(path)) found.push({ path, what: 'is no longer generated' })
    }
  }
  return found.sort((a, b) => a.path.localeCompare(b.path))
}

/** Makes the differences go away. */
export const settle = (root: string, files: Files, found: readonly Difference[]): void => {
  for (const { path } of found) {
    const text = files.get(path)
    const full = join(root, path)
    if (text === undefined) {
      rmSync(full)
    } else {
      mkdirSync(dirname(full), { recursive: true })
      writeFileSync(full, text)
    }
  }
}

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

const list = (folder: string): string[] => {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => entry.name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
