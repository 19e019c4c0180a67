// `npm run test:talos`: builds real Talos machines once, starts three control planes and a worker in a network namespace, runs the tests of
// test/realtalos against them, and ends them without a trace; then once more with an older Kubernetes, for the test that upgrades it. The last
// line is "N passed, N failed, N skipped".
// `--record` writes the answers of the machines down anew (test/realtalos/recorded). Other arguments pick tests, as for vitest.
// Where this machine cannot run them, that is one skip; ICHOR_REQUIRE_REAL_PARTS=1 makes it a failure, unless it is the kernel that refuses.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { realParts } from '../test/real/parts.ts'
import { finish, type Summary } from './summary.ts'
import { agreement, readVitestReport, type VitestReport } from './vitest-report.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'test', 'realtalos')
const config = 'vitest.talos.config.ts'
const cache = process.env.REALTALOS_CACHE ?? join(root, '.cache', 'realtalos')
const isRecording = process.argv.includes('--record')
const filters = process.argv.slice(2).filter(argument => argument !== '--record')
const env = {
  ...process.env,
  REALTALOS_CACHE: cache,
  PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
  ...(isRecording ? { RECORD_TALOS: '1' } : {}),
}
const nothing: Summary = { passed: 0, failed: [], skipped: 0, skips: [], agreements: [] }
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

const obstacle = whyNot()
if (!obstacle) finish('test:talos', await main().catch(failed))
else if (obstacle.canBeMended && process.env.ICHOR_REQUIRE_REAL_PARTS === '1') finish('test:talos', failed(obstacle.reason))
else finish('test:talos', { ...nothing, skipped: 1, skips: [`real Talos machines: ${obstacle.reason}`] })
if (stoppedBy) process.exitCode = stoppedBy === 'SIGTERM' ? 143 : stoppedBy === 'SIGHUP' ? 129 : 130

function failed(why: unknown): Summary {
  const reason = why instanceof Stopped ? `stopped by ${stoppedBy}` : why instanceof Error ? why.message : String(why)
  return { ...nothing, failed: [`real Talos machines: ${reason}`] }
}

/** How long it took. */
function seconds(since: number): string {
  return `${Math.round((Date.now() - since) / 1000)} s`
}

async function main(): Promise<Summary> {
  const begin = Date.now()
  // Only our own versions fit together; envtest has others.
  delete process.env.KUBEBUILDER_ASSETS
  const parts = await realParts('etcd', 'kube-apiserver', 'kubectl', 'talosctl')
  if ('missing' in parts) throw new Error(`real Talos machines need ${parts.missing}`)
  const rounds = roundsOf(await testFiles())
  const needsOlder = rounds.some(({ machines }) => machines.includes('older'))
  if ((await run('bash', [join(folder, 'build.sh'), ...(needsOlder ? ['older'] : []), ...Object.values(parts.paths)])) !== 0)
    throw new Error('the machines could not be built')
  console.error(`machines are built, ${seconds(begin)}`)
  const sum = { ...nothing }
  const metas: VitestReport['metas'] = []
  for (const round of rounds) {
    // What the others found is to be told all the same.
    const told = await play(round).catch((error: unknown) => {
      if (error instanceof Stopped) throw error
      return { ...failed(error), metas: [] }
    })
    sum.passed += told.passed
    sum.skipped += told.skipped
    sum.failed = [...sum.failed, ...told.failed]
    sum.skips = [...sum.skips, ...told.skips]
    metas.push(...told.metas)
  }
  return { ...sum, agreements: agreement(metas) }
}

/** Machines, by the arguments of up.sh, and the files whose tests are not for them. */
type Round = { readonly machines: readonly string[]; readonly others: readonly string[] }

function roundsOf(files: readonly string[]): readonly Round[] {
  const upgrades = files.filter(file => file.endsWith('/realtalos/kubernetes.test.ts'))
  const rounds: readonly Round[] = [
    { machines: ['3', '1'], others: upgrades },
    { machines: ['3', '1', 'older'], others: files.filter(file => !upgrades.includes(file)) },
  ]
  return rounds.filter(({ others }) => others.length < files.length)
}

/** The files that the arguments pick. */
async function testFiles(): Promise<readonly string[]> {
  const args = ['list', ...filters, '--config', config, '--filesOnly', '--json']
  const listing = spawnSync('vitest', args, { cwd: root, env, encoding: 'utf8' })
  if (listing.status !== 0) throw new Error(`vitest cannot list the tests: ${listing.stderr || listing.stdout}`)
  return (JSON.parse(listing.stdout) as readonly { readonly file: string }[]).map(({ file }) => relative(root, file))
}

async function play({ machines, others }: Round): Promise<VitestReport> {
  await nobodyElseIsUp()
  const starting = Date.now()
  const cluster = await startCluster(machines)
  const ready = Date.now()
  const reportPath = join(root, '.cache', 'vitest-talos.json')
  let code = 1
  try {
    console.error(`machines are up, ${seconds(starting)}`)
    mkdirSync(join(root, '.cache'), { recursive: true })
    rmSync(reportPath, { force: true })
    code = await run(join(folder, 'in.sh'), [
      ...['vitest', 'run', '--config', config, '--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`],
      ...[...filters, ...others.map(file => `--exclude=${file}`)],
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
  return report
}

/** Why these machines cannot run here, and whether a person (or a package) could mend it. */
function whyNot(): { reason: string; canBeMended: boolean } | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { reason: `they need Linux on amd64, this is ${process.platform} on ${process.arch}`, canBeMended: false }
  if (process.getuid?.() !== 0) return { reason: 'only root can start them (network namespaces, mounts, cgroups)', canBeMended: true }
  const tools = ['bash', 'ip', 'nsenter', 'unshare', 'setsid', 'ldd', 'dpkg-deb', 'apt-get', 'awk']
  const missing = tools.filter(tool => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0)
  if (missing.length > 0)
    return {
      reason: `missing programs: ${missing.join(', ')} (Debian: iproute2, util-linux, libc-bin, dpkg, apt, mawk)`,
      canBeMended: true,
    }
  const refusal = refusalOfKernel()
  return refusal === undefined ? undefined : { reason: `the kernel refuses ${refusal}`, canBeMended: false }
}

/** Tries in passing what the machines need of the kernel. */
function refusalOfKernel(): string | undefined {
  const trials: readonly (readonly [what: string, ...command: string[]])[] = [
    ['namespaces', 'unshare', '--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup', '--fork', 'true'],
    ['mounts', 'unshare', '--mount', '--pid', '--fork', '--mount-proc', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'],
    ['bridges', 'unshare', '--net', 'ip', 'link', 'add', 'name', 'br0', 'type', 'bridge'],
    ['pairs of network devices', 'unshare', '--net', 'ip', 'link', 'add', 'name', 'veth0', 'type', 'veth', 'peer', 'name', 'veth1'],
  ]
  for (const [what, command, ...args] of trials) {
    const trial = spawnSync(command!, args)
    if (trial.status !== 0) return `${what}: ${trial.stderr?.toString().trim() || `${command} fails`}`
  }
  const [group] = cgroups()
  if (group === undefined) return 'cgroups: no cgroup v2 file system is mounted'
  const own = join(group, `realtalos-trial-${process.pid}`)
  try {
    mkdirSync(own)
    rmdirSync(own)
  } catch (error) {
    return `cgroups: ${String(error)}`
  }
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
async function startCluster(machines: readonly string[]): Promise<{ end: () => Promise<void> }> {
  const holder = spawn(join(folder, 'hold.sh'), machines, { cwd: root, env, detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
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
