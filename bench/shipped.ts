import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Shipped = {
  /** The command, on the bundle. */
  readonly ichor: string
  /** The controller's module of the bundle. */
  readonly controller: string
  /** All that is built. */
  readonly dist: string
  readonly remove: () => void
}

const root = join(import.meta.dirname, '..')

/** Builds what users get in a folder of its own, so that what is in dist/ stays what it is. */
export const buildShipped = (): Shipped => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-shipped-'))
  execFileSync(process.execPath, [join(root, 'scripts', 'build.ts'), join(folder, 'dist')], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  mkdirSync(join(folder, 'bin'))
  cpSync(join(root, 'bin', 'ichor'), join(folder, 'bin', 'ichor'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return {
    ichor: join(folder, 'bin', 'ichor'),
    controller: join(folder, 'dist', 'controller.mjs'),
    dist: join(folder, 'dist'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
