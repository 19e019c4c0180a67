import { gzipSync } from 'node:zlib'
import { ListRequest_Type, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import type { StreamHandler } from '../call.ts'
import { streaming } from '../dispatch.ts'
import { tarOf } from './tar.ts'

const methods = MachineService.method

const FILES: Readonly<Record<string, (machine: Machine) => string>> = {
  '/etc/hostname': machine => `${machine.hostname}\n`,
  '/etc/os-release': machine => `NAME="Talos"\nID=talos\nVERSION_ID=${versionOf(machine)}\nPRETTY_NAME="Talos (${versionOf(machine)})"\n`,
  '/proc/sys/kernel/random/boot_id': machine => `${machine.bootID}\n`,
  '/proc/uptime': () => '1000.00 1000.00\n',
}

const noSuchFile = (path: string) => refuse('NotFound', `stat ${path}: no such file or directory`)

const trimmed = (path: string): string => path.replace(/\/+$/, '')

/** Files below a folder, or the file itself; folders are there where something is in them. */
const below = (path: string): readonly string[] => {
  const folder = trimmed(path)
  return Object.keys(FILES).filter(file => file === folder || file.startsWith(`${folder}/`))
}

const read: StreamHandler<typeof methods.read> = async ({ machine }, { path }, send) => {
  const file = FILES[path]
  if (file) {
    send({ bytes: new TextEncoder().encode(file(machine)) })
    return answer(undefined)
  }
  return below(path).length > 0 ? refuse('Unknown', 'path must be a regular file') : noSuchFile(path)
}

/** With Go's bit for a folder. */
const DIRECTORY_MODE = 0o20_000_000_755
const FILE_MODE = 0o644

/** Paths at and below a root, folders before what is in them, down to a depth. */
const walk = (root: string, depth: number): readonly string[] => {
  const start = trimmed(root)
  const paths = new Set<string>([start])
  for (const file of below(root)) {
    const parts = file.slice(start.length + 1).split('/')
    for (let at = 1; at <= Math.min(parts.length, depth); at++) if (file !== start) paths.add(`${start}/${parts.slice(0, at).join('/')}`)
  }
  return [...paths].toSorted()
}

const list: StreamHandler<typeof methods.list> = async ({ machine }, request, send) => {
  const { root, recurse, recursionDepth, types } = request
  const start = root === '' ? '/' : root
  if (below(start).length === 0) return noSuchFile(start)
  const depth = recurse ? (recursionDepth > 0 ? recursionDepth : Infinity) : 1
  for (const path of walk(start, depth)) {
    const file = FILES[path]
    if (types.length > 0 && !types.includes(file ? ListRequest_Type.REGULAR : ListRequest_Type.DIRECTORY)) continue
    send({
      ...{ name: path === '' ? '/' : path, relativeName: path === trimmed(start) ? '.' : path.slice(trimmed(start).length + 1) },
      ...{ size: BigInt(file ? file(machine).length : 0), mode: file ? FILE_MODE : DIRECTORY_MODE, isDir: !file },
      modified: BigInt(Math.floor(machine.bootedAt / 1000)),
    })
  }
  return answer(undefined)
}

const copy: StreamHandler<typeof methods.copy> = async ({ machine }, { rootPath }, send) => {
  const files = below(rootPath)
  if (files.length === 0) return noSuchFile(rootPath)
  const start = trimmed(rootPath)
  const entries = files.map(path => ({
    ...{ path: path === start ? path.slice(path.lastIndexOf('/') + 1) : path.slice(start.length + 1), mode: FILE_MODE },
    ...{ modifiedMs: machine.bootedAt, content: Buffer.from(FILES[path]?.(machine) ?? '') },
  }))
  send({ bytes: gzipSync(tarOf(entries)) })
  return answer(undefined)
}

/** The few files that a machine has. */
export const fileMethods = {
  read: streaming(methods.read, read),
  list: streaming(methods.list, list),
  copy: streaming(methods.copy, copy),
}
