// The lint's walls, as a plugin of oxlint: who may import whom (ARCHITECTURE.md), and no clock and no chance in the pure rooms.
// The compiler's wall is tsconfig.pure.json; test/walls.test.ts proves both.
import { basename, dirname, join, relative, sep } from 'node:path'

interface Room {
  /** Rooms under src/ it may import. */
  rooms: string[]
  /** Rooms of which it may import types only. */
  types?: string[]
  /** npm packages, and `node:` for Node's own modules. */
  packages?: string[]
  /** npm packages of which it may import types only. */
  packageTypes?: string[]
  /** Folders beside src/. */
  folders?: string[]
  /** Neither clock nor chance. */
  isPure?: true
}

const wire = ['@grpc/grpc-js', '@bufbuild/protobuf']
const certificates = ['@peculiar/x509', 'reflect-metadata']

const rooms: Record<string, Room> = {
  api: { rooms: [], packages: ['zod'], isPure: true },
  ports: { rooms: ['api'], isPure: true },
  core: { rooms: ['api'], types: ['ports'], packages: ['@bufbuild/cel', 'croner', 'semver', 'yaml'], packageTypes: ['zod'], isPure: true },
  kinds: { rooms: ['api', 'core', 'ports'], packages: ['zod'], isPure: true },
  engine: { rooms: ['api', 'core', 'ports'], isPure: true },
  world: { rooms: ['api', 'ports'], isPure: true },
  'adapters/kube': { rooms: ['api', 'ports'], packages: ['node:', '@kubernetes/client-node', 'yaml'] },
  'adapters/talos': { rooms: ['api', 'ports'], packages: ['node:', ...wire, 'yaml'], folders: ['proto'] },
  'adapters/pki': { rooms: ['api', 'ports'], packages: ['node:', ...certificates] },
  'adapters/s3': { rooms: ['api', 'ports'], packages: ['node:', '@aws-sdk/client-s3', '@aws-sdk/lib-storage'] },
  install: { rooms: ['api'], isPure: true },
  storm: {
    rooms: ['api', 'ports', 'core', 'kinds', 'engine', 'world', 'talossim', 'kubesim', 'storm'],
    packages: ['node:', 'fast-check', 'zod'],
  },
  talossim: { rooms: ['api', 'ports', 'world'], packages: ['node:', ...wire, ...certificates, 'yaml'], folders: ['proto'] },
  kubesim: { rooms: ['api', 'ports', 'world'], packages: ['node:', ...certificates, 'yaml'] },
}
const openRooms = new Set(['app'])

const root = dirname(import.meta.dirname)

/** Why `file` may not import `specifier`; undefined where it may. Paths are relative to the repository. */
export function wallBetween(file: string, specifier: string, isTypeOnly: boolean): string | undefined {
  const from = roomOf(file)
  if (!from || openRooms.has(from) || isTest(file)) return undefined
  const room = rooms[from]
  if (!room) return `src/${from} is a room that scripts/walls.ts does not know: say there what it may import`

  if (!specifier.startsWith('.')) {
    const allowed = [...(room.packages ?? []), ...(isTypeOnly ? (room.packageTypes ?? []) : [])]
    const isAllowed = allowed.some(name =>
      name === 'node:' ? specifier.startsWith('node:') : specifier === name || specifier.startsWith(`${name}/`),
    )
    return isAllowed ? undefined : `${from} may not import ${specifier} (it may: ${allowed.join(', ') || 'no package'})`
  }

  const target = join(dirname(file), specifier)
  const to = roomOf(target)
  if (!to) {
    const folder = target.split(sep)[0]!
    return room.folders?.includes(folder) ? undefined : `${from} may not import ${target}: it is outside src/`
  }
  if (to === from) {
    const [kind, otherKind] = [kindOf(file), kindOf(target)]
    return kind && otherKind && kind !== otherKind
      ? `kind ${kind} may not import kind ${otherKind}: what both need belongs to core`
      : undefined
  }
  if (room.rooms.includes(to)) return undefined
  if (room.types?.includes(to)) return isTypeOnly ? undefined : `${from} may import only types of ${to} (import type …)`
  return `${from} may not import ${to} (it may: ${[...room.rooms, ...(room.types ?? []).map(name => `types of ${name}`)].join(', ') || 'no other room'})`
}

export function isInPureRoom(file: string): boolean {
  const room = roomOf(file)
  return room !== undefined && rooms[room]?.isPure === true && !isTest(file)
}

function roomOf(file: string): string | undefined {
  const [src, room, inner] = file.split(sep)
  if (src !== 'src' || !room || !inner) return undefined
  return room === 'adapters' ? `adapters/${inner.replace(/\.ts$/, '')}` : room
}

// A kind is a file or folder of src/kinds; the registry, which knows them all, is none.
function kindOf(file: string): string | undefined {
  const [, room, inner] = file.split(sep)
  const name = inner?.replace(/\.ts$/, '')
  return room === 'kinds' && name !== 'registry' ? name : undefined
}

function isTest(file: string): boolean {
  return /\.(test|conformance)\.ts$/.test(basename(file))
}

// What oxlint hands to a rule, as far as these rules look.
interface Context {
  filename: string
  report(problem: { node: unknown; message: string }): void
}
interface Importing {
  source: { value: string } | null
  importKind?: 'type' | 'value'
  exportKind?: 'type' | 'value'
  specifiers?: { importKind?: 'type' | 'value'; exportKind?: 'type' | 'value' }[]
}
interface Expression {
  type: string
  name?: string
  computed?: boolean
  object?: Expression
  property?: Expression
  callee?: Expression
  arguments?: unknown[]
  source?: { type: string; value?: unknown }
  argument?: { type: string; value?: unknown; literal?: { value?: unknown } }
}

// The wrong files that prove the walls stand for files of the real tree.
const pathInTree = (context: Context) => relative(root, context.filename).replace('test/walls/bad/', '')

const roomsRule = {
  create(context: Context) {
    const check = (node: unknown, specifier: unknown, isTypeOnly: boolean) => {
      if (typeof specifier !== 'string') return
      const message = wallBetween(pathInTree(context), specifier, isTypeOnly)
      if (message) context.report({ node, message })
    }
    const checkDeclaration = (node: Importing) => {
      const specifiers = node.specifiers ?? []
      const isTypeOnly =
        (node.importKind ?? node.exportKind) === 'type' ||
        (specifiers.length > 0 && specifiers.every(specifier => (specifier.importKind ?? specifier.exportKind) === 'type'))
      if (node.source) check(node, node.source.value, isTypeOnly)
    }
    return {
      ImportDeclaration: checkDeclaration,
      ExportNamedDeclaration: checkDeclaration,
      ExportAllDeclaration: checkDeclaration,
      ImportExpression: (node: Expression) => check(node, node.source?.value, false),
      TSImportType: (node: Expression & { source?: { value?: unknown } }) =>
        check(node, node.source?.value ?? node.argument?.value ?? node.argument?.literal?.value, true),
    }
  },
}

const pureRule = {
  create(context: Context) {
    if (!isInPureRoom(pathInTree(context))) return {}
    const close = (node: unknown, what: string, instead: string) =>
      context.report({ node, message: `${what} is closed in the pure rooms: ${instead}` })
    const time = 'take the time from the world, or from the clock port'
    return {
      MemberExpression: (node: Expression) => {
        const name = `${node.object?.name}.${node.property?.name}`
        if (name === 'Date.now') close(node, name, time)
        if (name === 'Math.random') close(node, name, 'take chance from the seed, or from a port')
      },
      NewExpression: (node: Expression) => {
        if (node.callee?.name === 'Date' && node.arguments?.length === 0) close(node, 'new Date()', time)
      },
      CallExpression: (node: Expression) => {
        if (node.callee?.name === 'Date') close(node, 'Date()', time)
      },
    }
  },
}

export default { meta: { name: 'ichor' }, rules: { rooms: roomsRule, pure: pureRule } }
