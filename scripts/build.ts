// `npm run build` makes dist/ (or the folder that is named): ichor.cjs, one file with all that the quick commands need, and modules for what is loaded late (the schemas, the
// controller, authentication plugins). `ichor operation list` has to start about as fast as kubectl, and every file and every package loaded costs.
// ichor.cdx.json beside them says which packages are inside.
import { rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild'
import { bundleSbom, packageSbom, packagesOf, sbomText } from './sbom.ts'

const root = join(import.meta.dirname, '..')
const dist = resolve(process.argv[2] ?? join(root, 'dist'))

const common: BuildOptions = {
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  platform: 'node',
  target: 'node24',
  minifySyntax: true,
  // Not the names: they stay readable in a stack that somebody reports.
  minifyWhitespace: true,
  legalComments: 'linked',
  metafile: true,
  logLevel: 'warning',
}

// An `import` of one of Node's own modules reads every export that it has, and among those of node:http are some that load all of undici: 50 ms
// for nothing. Asked for by `getBuiltinModule` a module costs what is used of it.
const builtins: Plugin = {
  name: 'builtins',
  setup(esbuild) {
    esbuild.onResolve({ filter: /.*/ }, ({ path, kind }) => {
      const name = path.replace(/^node:/, '')
      const isOurs = kind === 'import-statement' && builtinModules.includes(name)
      return isOurs ? { path: name, namespace: 'builtin', sideEffects: false } : undefined
    })
    esbuild.onLoad({ filter: /.*/, namespace: 'builtin' }, async ({ path }) => {
      const names = Object.keys((await import(`node:${path}`)) as object).filter(name => name !== 'default' && name !== 'module.exports')
      return { contents: late.has(path) ? lateModule(path) : moduleOf(path, names), loader: 'js' }
    })
  },
}
const moduleOf = (path: string, names: readonly string[]) =>
  [
    // Asking for this one would start standard input and what else its getters do.
    path === 'process' ? 'const own = globalThis.process' : `const own = /* @__PURE__ */ process.getBuiltinModule('node:${path}')`,
    'export default own',
    ...names.map(name => `const of_${name} = /* @__PURE__ */ (() => own.${name})()\nexport { of_${name} as ${name} }`),
  ].join('\n')

// Commander imports it for subcommands that are programs of their own, which Ichor has none of.
const late = new Set(['child_process'])
const lateModule = (path: string) =>
  [
    `const own = () => process.getBuiltinModule('node:${path}')`,
    'export default new Proxy({}, { get: (_, name) => own()[name] })',
    ...['spawn', 'spawnSync', 'execFile', 'execFileSync', 'fork'].map(
      name => `export const ${name} = (...given) => own().${name}(...given)`,
    ),
  ].join('\n')

// What the quick file imports by `import()` becomes a module beside it.
const lateEntries = new Map<string, string>()
const outside: Plugin = {
  name: 'outside',
  setup(quick) {
    quick.onResolve({ filter: /.*/ }, async ({ path, kind, resolveDir, pluginData }) => {
      if (kind !== 'dynamic-import' || pluginData === 'asked' || builtinModules.includes(path.replace(/^node:/, ''))) return undefined
      const found = await quick.resolve(path, { kind, resolveDir, pluginData: 'asked' })
      if (found.errors.length > 0) return found
      const name = nameOf(path)
      const entry = path.startsWith('.') ? found.path : `package:${path}`
      if ((lateEntries.get(name) ?? entry) !== entry) throw new Error(`two late modules are called ${name}`)
      lateEntries.set(name, entry)
      return { path: `./${name}.mjs`, external: true }
    })
  },
}

// A main is called by its folder, a package by its name.
const nameOf = (path: string): string => {
  if (!path.startsWith('.')) return path.replaceAll(/[^a-z0-9]+/g, '-').replace(/^-/, '')
  const own = basename(path, '.ts')
  return own === 'main' ? basename(dirname(path)) : own
}

// Of a package in CommonJS a bundle exports but one default; by these its names are there, as Node itself finds them.
const packages: Plugin = {
  name: 'packages',
  setup(esbuild) {
    esbuild.onLoad({ filter: /.*/, namespace: 'package' }, async ({ path }) => {
      const names = Object.keys((await import(path)) as object).filter(name => name !== 'default' && name !== 'module.exports')
      const lines = [`import * as own from ${JSON.stringify(path)}`, ...names.map(name => `export const ${name} = own.${name}`)]
      return { contents: lines.join('\n'), resolveDir: root, loader: 'js' }
    })
    esbuild.onResolve({ filter: /^package:/ }, ({ path }) => ({ path: path.slice('package:'.length), namespace: 'package' }))
  },
}

rmSync(dist, { recursive: true, force: true })
const quick = await build({
  ...common,
  entryPoints: { ichor: 'src/app/cli/entry.ts' },
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  plugins: [outside, builtins],
})
const rest = await build({
  ...common,
  // In the order of their names: they are found in whatever order files are read, and the names of chunks follow from it.
  entryPoints: Object.fromEntries([...lateEntries].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  outExtension: { '.js': '.mjs' },
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  format: 'esm',
  plugins: [packages, builtins],
  // Packages in CommonJS ask for Node's own modules by require, which modules do not have.
  banner: { js: "import { createRequire as ichorCreateRequire } from 'node:module'; const require = ichorCreateRequire(import.meta.url);" },
})

// The bundle by its other name: as a module, for whoever starts it by hand or from another module.
writeFileSync(join(dist, 'ichor.mjs'), "import './ichor.cjs'\n")

const outputs = [quick, rest].map(({ metafile }) => metafile!.outputs)
// What was read and is not in the outcome (a part that nothing uses) is not inside.
const inside = outputs.flatMap(files =>
  Object.values(files).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  ),
)
const sbom = bundleSbom(packageSbom(root), packagesOf(root, inside))
writeFileSync(join(dist, 'ichor.cdx.json'), sbomText(sbom))

const kilobytes = (files: Metafile['outputs']) => Math.round(Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0) / 1024)
console.log(
  `dist/ichor.cjs, ${kilobytes(outputs[0]!)} kB, and ${lateEntries.size} modules loaded late, ${kilobytes(outputs[1]!)} kB; ${sbom.components.length} packages are inside`,
)
