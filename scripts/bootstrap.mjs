// The door to every script that must work in a fresh clone: `node scripts/bootstrap.mjs SCRIPT.ts [ARG…]`.
// Installs the packages when they are missing or not those of the lockfile, then runs SCRIPT on the Node that the packages bring.
// Runs on the machine's own Node (20 or newer), so: plain JavaScript, nothing imported but Node itself.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const ownNode = join(root, 'node_modules', '.bin', 'node')

const [script, ...args] = process.argv.slice(2)
if (!script) {
  console.error('usage: node scripts/bootstrap.mjs SCRIPT.ts [ARG…]')
  process.exit(2)
}

if (!packagesAreInstalled()) installPackages()

if (Number(process.versions.node.split('.')[0]) >= 24) {
  process.argv = [process.argv[0], resolve(script), ...args]
  await import(pathToFileURL(resolve(script)).href)
} else {
  runOnOwnNode()
}

// What npm wrote down after its last installation, compared with the lockfile. Packages of other platforms may be absent.
function packagesAreInstalled() {
  if (!existsSync(ownNode)) return false
  try {
    const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
    const installed = JSON.parse(readFileSync(join(root, 'node_modules', '.package-lock.json'), 'utf8')).packages
    return Object.keys(wanted).every(path => {
      if (path === '') return true
      const have = installed[path]
      if (!have) return Boolean(wanted[path].optional || wanted[path].peer)
      return have.version === wanted[path].version && have.integrity === wanted[path].integrity
    })
  } catch {
    return false
  }
}

function installPackages() {
  console.error('installing packages (npm ci), once, half a minute …')
  const begin = Date.now()
  // What npm passes down to scripts (a prefix, a dry run) is not meant for this installation.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_(config_(prefix|global|dry_run|local_prefix)|package_|lifecycle_)/i.test(name)),
  )
  const npm = spawnSync('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error'], { cwd: root, env, stdio: ['ignore', 2, 2] })
  if (npm.error) fail('npm cannot be started: ' + npm.error.message + '. Install npm (Debian: apt-get install npm).')
  if (npm.status !== 0) fail('npm ci failed; what it said is above.')
  if (!existsSync(ownNode)) fail('npm ci brought no Node: are install scripts switched off (npm config get ignore-scripts)?')
  console.error('packages installed in ' + Math.round((Date.now() - begin) / 1000) + ' s')
}

function runOnOwnNode() {
  const env = { ...process.env, PATH: join(root, 'node_modules', '.bin') + ':' + process.env.PATH }
  const child = spawn(ownNode, [fileURLToPath(import.meta.url), script, ...args], { env, stdio: 'inherit' })
  child.on('error', error => fail('cannot start ' + ownNode + ': ' + error.message))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // Ctrl-C in a terminal reaches the child by itself, and a second one would mean "at once".
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  }
}

function fail(message) {
  console.error('error: ' + message)
  process.exit(1)
}
