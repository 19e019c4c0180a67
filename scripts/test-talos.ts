// `npm run test:talos`: builds real Talos machines once, starts three control planes and a worker in a network namespace, runs the tests of
// test/realtalos against them, and ends them without a trace. The last line is "N passed, N failed, N skipped".
// `--record` writes the answers of the machines down anew (test/realtalos/recorded). Other arguments pick tests, as for vitest.
// ICHOR_REQUIRE_REAL_PARTS=1 makes it a failure where this machine cannot run them.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { realParts } from '../test/real/parts.ts'
import { agreement, readVitestReport } from './vitest-report.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'test', 'realtalos')
const cache = process.env.REALTALOS_CACHE ?? join(root, '.cache', 'realtalos')
const reportPath = join(root, '.cache', 'vitest-talos.json')
const isRecording = process.argv.includes('--record')
const filters = process.argv.slice(2).filter(argument => argument !== '--record')
const env = {
  ...process.env,
  REALTALOS_CACHE: cache,
  PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
  ...(isRecording ? { RECORD_TALOS: '1' } : {}),
}
/** What would be left if the end of the machines failed. */
const traces = ['/run/netns/realtalos', join(cache, 'run'), ...cgroups().map(path => join(path, 'realtalos'))]

class Stopped extends Error {}
let running: ChildProcess | undefined
let stoppedBy: NodeJS.Signals | undefined
const stop = Promise.withResolvers<'stopped'>()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!stoppedBy) console.error(`\nstopped by ${signal}: ending the machines …`)
    stoppedBy ??= signal
    stop.resolve('stopped')
    running?.kill('SIGTERM')
  })
}

const reason = whyNot()
if (reason) {
  const isNeeded = process.env.ICHOR_REQUIRE_REAL_PARTS === '1'
  console.log(`${isNeeded ? 'Failed' : 'Skipped'}:\n  real Talos machines: ${reason}`)
  console.log(isNeeded ? '\n0 passed, 1 failed, 0 skipped' : '\n0 passed, 0 failed, 1 skipped')
  process.exitCode = isNeeded ? 1 : 0
} else {
  try {
    process.exitCode = await main()
  } catch (error) {
    const why = error instanceof Stopped ? `stopped by ${stoppedBy}` : error instanceof Error ? error.message : String(error)
    console.log(`\nFailed:\n  ${why}`)
    console.log('\n0 passed, 1 failed, 0 skipped')
    process.exitCode = 1
  }
  if (stoppedBy) process.exitCode = stoppedBy === 'SIGTERM' ? 143 : stoppedBy === 'SIGHUP' ? 129 : 130
}

async function main(): Promise<number> {
  const begin = Date.now()
  const seconds = (since: number) => `${Math.round((Date.now() - since) / 1000)} s`
  // Only our own versions fit together; envtest has others.
  delete process.env.KUBEBUILDER_ASSETS
  const parts = await realParts('etcd', 'kube-apiserver', 'kubectl', 'talosctl')
  if ('missing' in parts) throw new Error(`real Talos machines need ${parts.missing}`)
  if ((await run('bash', [join(folder, 'build.sh'), ...Object.values(parts.paths)])) !== 0)
    throw new Error('the machines could not be built')
  console.error(`machines are built, ${seconds(begin)}`)

  await nobodyElseIsUp()
  const starting = Date.now()
  const cluster = await startCluster()
  const ready = Date.now()
  let code = 1
  try {
    console.error(`machines are up, ${seconds(starting)}`)
    mkdirSync(join(root, '.cache'), { recursive: true })
    rmSync(reportPath, { force: true })
    code = await run(join(folder, 'in.sh'), [
      ...['vitest', 'run', '--config', 'vitest.talos.config.ts', '--reporter=default', '--reporter=json'],
      ...[`--outputFile.json=${reportPath}`, ...filters],
    ])
    console.error(`the tests took ${seconds(ready)}`)
  } finally {
    await cluster.end()
  }
  if (!existsSync(reportPath)) throw new Error('vitest ended without a report')
  const report = readVitestReport(reportPath, root)
  // Such as an unhandled rejection between two tests.
  if (code !== 0 && report.failed.length === 0) report.failed.push(`vitest ended with ${code}`)
  const left = traces.filter(existsSync)
  if (left.length > 0) report.failed.push(`the machines left something behind: ${left.join(', ')}`)

  console.log('')
  if (report.skips.length > 0) console.log(['Skipped:', ...report.skips.map(line => `  ${line}`), ''].join('\n'))
  if (report.failed.length > 0) console.log(['Failed:', ...report.failed.map(line => `  ${line}`), ''].join('\n'))
  for (const line of agreement(report.metas)) console.log(line)
  console.log(`\n${report.passed} passed, ${report.failed.length} failed, ${report.skipped} skipped`)
  return report.failed.length === 0 ? 0 : 1
}

/** Where these machines cannot run at all. */
function whyNot(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return `they need Linux on amd64, this is ${process.platform} on ${process.arch}`
  if (process.getuid?.() !== 0) return 'only root can start them (network namespaces, mounts, cgroups)'
  if (cgroups().length === 0) return 'no cgroup v2 file system is mounted'
  const tools = ['bash', 'ip', 'nsenter', 'unshare', 'setsid', 'ldd', 'dpkg-deb', 'apt-get', 'awk']
  const missing = tools.filter(tool => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0)
  if (missing.length > 0) return `missing programs: ${missing.join(', ')} (Debian: iproute2, util-linux, libc-bin, dpkg, apt, mawk)`
  const allowed = spawnSync('unshare', ['--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup', '--fork', 'true'])
  if (allowed.status !== 0) return `namespaces cannot be made here: ${allowed.stderr.toString().trim() || 'unshare fails'}`
  return undefined
}

function cgroups(): string[] {
  if (!existsSync('/proc/mounts')) return []
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
  return mounts.map(line => line.split(' ')).flatMap(([, path, type]) => (type === 'cgroup2' && path ? [path] : []))
}

/** One cluster at a time: the machines change settings of the whole host while they run. */
async function nobodyElseIsUp(): Promise<void> {
  for (let minutes = 0, told = false; existsSync('/run/netns/realtalos'); minutes += 1 / 30) {
    if (existsSync(join(cache, 'run'))) throw new Error('machines of this checkout are up already; end them with test/realtalos/down.sh')
    if (minutes > 20) throw new Error('machines of another checkout are up (network namespace realtalos)')
    if (!told) console.error('waiting for the machines of another checkout to end …')
    told = true
    await pause(2_000)
    if (stoppedBy) throw new Stopped()
  }
}

/** The machines end when we say so, and when we end in whatever way: then the input of their holder closes. */
async function startCluster(): Promise<{ end: () => Promise<void> }> {
  const holder = spawn(join(folder, 'hold.sh'), ['3', '1'], { cwd: root, env, detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<number>(resolve => {
    holder.once('error', error => {
      console.error(String(error))
      resolve(1)
    })
    holder.once('close', code => resolve(code ?? 1))
  })
  const up = new Promise<true>(resolve => {
    holder.stdout.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('up')) resolve(true)
    })
  })
  const end = async () => {
    holder.stdin.end()
    await ended
  }
  const first = await Promise.race([up, ended, stop.promise])
  if (first === true) return { end }
  await end()
  if (first === 'stopped') throw new Stopped()
  throw new Error(`the machines did not come up; what they said is in ${join(cache, 'failed')}`)
}

function run(command: string, args: readonly string[]): Promise<number> {
  if (stoppedBy) throw new Stopped()
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] })
    running = child
    child.once('error', error => {
      console.error(String(error))
      resolve(1)
    })
    child.once('close', (code, signal) => {
      running = undefined
      if (stoppedBy) reject(new Stopped())
      else resolve(signal ? 1 : (code ?? 1))
    })
  })
}
