import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { ListRequest_Type, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { StreamHandler } from '../call.ts'
import { streaming } from '../dispatch.ts'
import { type Entry, type FileTree, filesOn } from './file-tree.ts'
import { type TarEntry, tarOf } from './tar.ts'

const methods = MachineService.method

/** Absolute, and without a slash at the end. */
const absolute = (path: string): string => `/${path}`.replaceAll(/\/+/g, '/').replace(/(?<=.)\/$/, '')

/** Where the path leads after links. */
const resolved = (tree: FileTree, path: string): string => {
  const entry = tree.get(path)
  if (entry?.kind !== 'link') return path
  return new URL(entry.target, `file://${path}`).pathname
}

const read: StreamHandler<typeof methods.read> = async ({ site, machine }, { path }, send, drained) => {
  const tree = filesOn(site, machine)
  const entry = tree.get(resolved(tree, absolute(path)))
  if (!entry) return refuse('NotFound', `stat ${path}: no such file or directory`)
  if (entry.kind !== 'file') return refuse('Unknown', 'path must be a regular file')
  for (const bytes of entry.content()) {
    send({ bytes })
    await drained()
  }
  return answer(undefined)
}

/** Go's bits for a folder and a link. */
const MODES: Readonly<Record<Entry['kind'], number>> = { file: 0o644, folder: 0o20_000_000_755, link: 0o1_000_000_777 }
const TYPES: Readonly<Record<Entry['kind'], ListRequest_Type>> = {
  file: ListRequest_Type.REGULAR,
  folder: ListRequest_Type.DIRECTORY,
  link: ListRequest_Type.SYMLINK,
}

type Found = { readonly path: string; readonly relative: string; readonly depth: number; readonly entry: Entry }

/** What is at and below a path, folders before what is in them, down to a depth. */
const walk = (tree: FileTree, root: string, depth: number): readonly Found[] => {
  const start = resolved(tree, root)
  const own = tree.get(start)
  if (!own) return []
  const base = start === '/' ? '/' : `${start}/`
  const found: Found[] = [
    { path: start, relative: own.kind === 'folder' ? '.' : start.slice(start.lastIndexOf('/') + 1), depth: 0, entry: own },
  ]
  for (const [path, entry] of tree) {
    if (path === '/' || !path.startsWith(base)) continue
    const relative = path.slice(base.length)
    const at = relative.split('/').length
    if (at <= depth) found.push({ path, relative, depth: at, entry })
  }
  const key = (path: string): string => path.replaceAll('/', '\0')
  return found.toSorted((a, b) => (key(a.path) < key(b.path) ? -1 : 1))
}

const list: StreamHandler<typeof methods.list> = async ({ site, machine }, request, send) => {
  const { root, recurse, recursionDepth, types } = request
  const start = absolute(root)
  const depth = recurse ? (recursionDepth > 0 ? recursionDepth : Infinity) : 1
  const found = walk(filesOn(site, machine), start, depth)
  if (found.length === 0) return refuse('Unknown', `lstat ${start}: no such file or directory`)
  for (const { path, relative, entry } of found) {
    if (types.length > 0 && !types.includes(TYPES[entry.kind])) continue
    send({
      ...{ name: path, relativeName: relative, mode: MODES[entry.kind], isDir: entry.kind === 'folder' },
      ...{ size: BigInt(entry.kind === 'file' ? entry.size : 0), link: entry.kind === 'link' ? entry.target : '' },
      modified: BigInt(Math.floor(machine.bootedAt / 1000)),
    })
  }
  return answer(undefined)
}

/** Files without a size are read to know how much there is. */
const archived = ({ relative, entry }: Found, modifiedMs: number): TarEntry => {
  if (entry.kind === 'folder') return { path: `${relative}/`, mode: 0o755, modifiedMs, size: 0, content: [] }
  if (entry.kind === 'link') return { path: relative, mode: 0o777, modifiedMs, size: 0, content: [], linkTo: entry.target }
  const content = entry.size > 0 ? entry.content() : [Buffer.concat([...entry.content()])]
  const size = entry.size > 0 ? entry.size : (content as readonly Buffer[])[0]!.length
  return { path: relative, mode: 0o644, modifiedMs, size, content }
}

const copy: StreamHandler<typeof methods.copy> = async ({ site, machine, over }, { rootPath }, send, drained) => {
  if (!rootPath.startsWith('/')) return refuse('Unknown', `path is not absolute ${rootPath}`)
  const root = absolute(rootPath)
  const found = walk(filesOn(site, machine), root, Infinity)
  if (found.length === 0) {
    send({ metadata: { error: `lstat ${root}: no such file or directory` } })
    return answer(undefined)
  }
  // The folder itself is not in its archive.
  const inside = found.filter(({ depth, entry }) => depth > 0 || entry.kind !== 'folder')
  const pieces = Readable.from(tarOf(inside.map(one => archived(one, machine.bootedAt))), { objectMode: false })
  for await (const bytes of pieces.pipe(createGzip())) {
    if (over.aborted) break
    send({ bytes: bytes as Buffer })
    await drained()
  }
  return answer(undefined)
}

/** Sizes of folders with everything in them; Talos looks at the first path that there is, and at no other. */
const diskUsage: StreamHandler<typeof methods.diskUsage> = async ({ site, machine }, request, send) => {
  const { paths, recursionDepth, all, threshold } = request
  const tree = filesOn(site, machine)
  for (const given of paths) {
    const root = absolute(given)
    const found = walk(tree, root, Infinity)
    if (found.length === 0) {
      send({ name: root, relativeName: root, error: `lstat ${root}: no such file or directory` })
      continue
    }
    const sizes = new Map(found.map(({ path, entry }) => [path, entry.kind === 'file' ? entry.size : FOLDER_BYTES]))
    // From the leaves up: a folder's size is told after that of what is in it.
    const upwards = found.toReversed()
    for (const { path, depth } of upwards) {
      const parent = path.slice(0, path.lastIndexOf('/')) || '/'
      if (depth > 0) sizes.set(parent, (sizes.get(parent) ?? 0) + (sizes.get(path) ?? 0))
    }
    for (const { path, relative, depth, entry } of upwards) {
      const size = sizes.get(path) ?? 0
      const isTooDeep = recursionDepth > 0 && depth >= recursionDepth
      const isOut = (threshold > 0n && BigInt(size) < threshold) || (threshold < 0n && BigInt(size) > -threshold)
      if (isTooDeep || isOut || (entry.kind !== 'folder' && !all)) continue
      send({ name: path, relativeName: relative, size: BigInt(size) })
    }
    return answer(undefined)
  }
  return answer(undefined)
}

const FOLDER_BYTES = 4096

/** The files that a machine has. */
export const fileMethods = {
  read: streaming(methods.read, read),
  list: streaming(methods.list, list),
  copy: streaming(methods.copy, copy),
  diskUsage: streaming(methods.diskUsage, diskUsage),
}
