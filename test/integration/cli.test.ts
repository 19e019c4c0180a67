// `ichor` as a process of its own against API servers on the wire: the simulated one, and the real one with the real kubectl.
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { kubeClient, type KubeClient } from '../../src/adapters/kube/client.ts'
import { at } from '../../src/adapters/kube/json.ts'
import { loadKubeConfig } from '../../src/adapters/kube/kubeconfig.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { openTransport } from '../../src/adapters/kube/transport.ts'
import { makeKubernetesCredentials, makeTalosCredentials, writeKubeconfig } from '../../src/app/demo/credentials.ts'
import { resources } from '../../src/app/resources.ts'
import { serveKubernetes } from '../../src/kubesim/server.ts'
import { createStore } from '../../src/world/store.ts'
import { realClock } from '../kube/clocks.ts'
import { startKubeApiserver } from '../real/kube-apiserver.ts'
import { realPart, realParts } from '../real/parts.ts'

// Each command is a process of its own, on computers that do other things as well.
vi.setConfig({ testTimeout: 30_000 })

const root = join(import.meta.dirname, '..', '..')
const ichor = join(root, 'bin', 'ichor')
const namespace = 'ichor-system'
const home = mkdtempSync(join(tmpdir(), 'ichor-cli-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

type Run = { readonly code: number; readonly out: string; readonly err: string }
type Server = { readonly kubeconfig: string; readonly close: () => Promise<void> }

const environment = (kubeconfig: string) => ({
  ...process.env,
  PATH: [join(root, 'bin'), process.env['PATH']].join(delimiter),
  HOME: home,
  KUBECONFIG: kubeconfig,
  ICHOR_SOURCE: '1',
  NO_COLOR: '1',
})
const run = (kubeconfig: string, program: string, args: readonly string[]): Promise<Run> =>
  new Promise(resolve => {
    execFile(program, args, { env: environment(kubeconfig), cwd: home }, (error, out, err) => {
      resolve({ code: error ? Number(error.code) : 0, out, err })
    })
  })
const clientOf = async (kubeconfig: string): Promise<KubeClient & { close: () => void }> => {
  const config = await loadKubeConfig({ kubeconfigPath: kubeconfig })
  if (!config.ok) throw new Error(config.fault.message)
  const transport = openTransport({ config: config.value, clock: realClock, userAgent: 'ichor/test' })
  return { ...kubeClient(transport), close: transport.close }
}
const eventually = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { timeout: 20_000, interval: 20 })

const simulated = async (): Promise<Server> => {
  const host = '127.0.0.1'
  const credentials = await makeKubernetesCredentials(host)
  const store = createStore({ now: Date.now, random: Math.random })
  store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  const served = await serveKubernetes({
    store,
    resources: resources(),
    tls: { certPem: credentials.server.crt, keyPem: credentials.server.key, clientCaPem: credentials.ca },
    tokens: {},
    host,
    port: 0,
    version: () => 'v1.36.2',
  })
  const path = join(mkdtempSync(join(home, 'simulated-')), 'kubeconfig')
  writeKubeconfig({
    path,
    cluster: 'home',
    namespace,
    url: served.url,
    caPem: credentials.ca,
    user: { name: 'admin', certificate: credentials.admin },
  })
  return { kubeconfig: path, close: served.close }
}

const real = async (): Promise<Server> => {
  const server = await startKubeApiserver()
  await server.request({ path: '/api/v1/namespaces', method: 'POST', body: { metadata: { name: namespace } } })
  return { kubeconfig: server.kubeconfigPath('admin'), close: () => server.stop() }
}

const servers = await realParts('etcd', 'kube-apiserver')
const kubectl = await realPart('kubectl')
const missing = 'missing' in servers ? servers.missing : undefined

describe.each([
  { name: 'the simulated API server', start: simulated, isMissing: undefined },
  { name: `the real API server${missing ? ` (${missing})` : ''}`, start: real, isMissing: missing },
])('ichor and $name', ({ start, isMissing }) => {
  let server: Server
  let client: Awaited<ReturnType<typeof clientOf>>
  beforeAll(async () => {
    if (isMissing) return
    server = await start()
    client = await clientOf(server.kubeconfig)
  }, 120_000)
  afterAll(async () => {
    client?.close()
    await server?.close()
  })

  const cli = (...args: string[]) => run(server.kubeconfig, ichor, args)
  const place = { namespace, name: 'talos-1-13-9' }
  const operation = async () => {
    const found = await client.get(RESOURCE.talosOperation, place)
    if (!found.ok) throw new Error(found.fault.message)
    return found.value
  }
  const setStatus = async (status: object) => {
    const written = await client.patch(RESOURCE.talosOperation, { ...place, subresource: 'status' }, { status })
    if (!written.ok) throw new Error(written.fault.message)
  }
  const watch = () => {
    const child = spawn(ichor, ['operation', 'watch', place.name], { env: environment(server.kubeconfig), cwd: home })
    onTestFinished(() => void child.kill('SIGKILL'))
    const said = { out: '', err: '' }
    child.stdout.on('data', (data: Buffer) => (said.out += data.toString()))
    child.stderr.on('data', (data: Buffer) => (said.err += data.toString()))
    const end = new Promise<number | null>(resolve => child.once('close', resolve))
    return { child, said, end }
  }

  it.skipIf(isMissing)('installs the resource types, again without a change', async () => {
    const first = await cli('install', '--crds-only')
    expect([first.code, first.err]).toEqual([0, ''])
    const second = await cli('install', '--crds-only')
    expect(second.out.trim().split('\n')).toEqual(
      ['talosoperations', 'talosclusters', 'talosmachines', 'etcdsnapshots'].map(
        plural => `customresourcedefinition.apiextensions.k8s.io/${plural}.ichor.maesh.dev unchanged`,
      ),
    )
  })

  it.skipIf(isMissing)('adds a cluster, and not a second of the same name', async () => {
    const folder = mkdtempSync(join(home, 'talos-'))
    const { talosconfigPath } = await makeTalosCredentials({ cluster: 'home', machines: [], endpoints: ['127.77.0.1'], folder })
    const added = await cli('cluster', 'add', 'home', '--talosconfig', talosconfigPath)
    expect([added.code, added.out]).toEqual([0, 'secret/home-talosconfig created\ntaloscluster.ichor.maesh.dev/home created\n'])
    const secret = await client.get(RESOURCE.secret, { namespace, name: 'home-talosconfig' })
    expect(secret.ok && Buffer.from(String(at(secret.value, 'data', 'talosconfig')), 'base64').toString()).toContain('127.77.0.1')

    const again = await cli('cluster', 'add', 'home', '--talosconfig', talosconfigPath)
    expect([again.code, again.err]).toEqual([1, 'error: cluster home exists already in namespace ichor-system\n'])
    const kubeconfig = await cli('cluster', 'add', 'edge', '--talosconfig', server.kubeconfig)
    expect(kubeconfig.code).toBe(1)
    expect(kubeconfig.err).toContain(`error: ${server.kubeconfig}: `)
  })

  it.skipIf(isMissing)('starts an upgrade that the server takes, and shows it', async () => {
    const started = await cli('upgrade', 'talos', 'v1.13.9', '--no-plan', '--yes', '--max-unavailable', '50%')
    expect([started.code, started.out]).toEqual([0, 'talosoperation.ichor.maesh.dev/talos-1-13-9 created\n'])
    expect(at(await operation(), 'spec', 'drain', 'policy')).toBe('wait')
    expect(at(await operation(), 'metadata', 'annotations', 'ichor.maesh.dev/requested-by')).toBe('admin')

    const list = await cli('operation', 'list')
    expect(list.out).toMatch(/^NAME +CLUSTER +KIND +PHASE +REASON +DONE +AGE\ntalos-1-13-9 +home +talos +/)
    const yaml = await cli('operation', 'get', 'talos-1-13-9', '-o', 'yaml')
    expect(yaml.out).toMatch(/^apiVersion: ichor\.maesh\.dev\/v1alpha1\nkind: TalosOperation\n|\nkind: TalosOperation\n/)
    expect(yaml.out).not.toContain('managedFields')
  })

  it.skipIf(isMissing)('tells a refusal of the server field by field', async () => {
    const wrong = await cli(
      'upgrade',
      'talos',
      'v1.13.9',
      '--no-plan',
      '--yes',
      '--name',
      'twice',
      '--acknowledge',
      'api-outage,api-outage',
    )
    expect(wrong.code).toBe(1)
    expect(wrong.err).toMatch(/^error: cannot create operation twice: the API server refuses it\n {2}spec\.acknowledge\[1\]: /)
  })

  it.skipIf(isMissing)('pauses and resumes, a failure too', async () => {
    expect((await cli('operation', 'pause', 'talos-1-13-9')).code).toBe(0)
    expect(at(await operation(), 'spec', 'paused')).toBe(true)
    await setStatus({ phase: 'Paused', failureReason: 'InstallFailed', message: 'cp-1: no space left on device' })
    const resumed = await cli('operation', 'resume', 'talos-1-13-9')
    expect([resumed.code, resumed.out]).toEqual([0, 'talosoperation.ichor.maesh.dev/talos-1-13-9 resumed\n'])
    const after = await operation()
    expect([at(after, 'spec', 'paused'), at(after, 'metadata', 'annotations', 'ichor.maesh.dev/retry')]).toEqual([false, 'true'])
  })

  it.skipIf(isMissing)('stops watching on Ctrl-C, and the operation stays as it is', async () => {
    await setStatus({ phase: 'Running', failureReason: null, message: 'cp-1 is next' })
    const { child, said, end } = watch()
    await eventually(() => expect(said.out).toContain('Running: cp-1 is next'))
    const before = await operation()
    child.kill('SIGINT')
    expect(await end).toBe(130)
    expect(said.err).toBe('Stopped watching. The operation goes on; look again with: ichor operation watch talos-1-13-9 -n ichor-system\n')
    expect(at(await operation(), 'metadata', 'resourceVersion')).toBe(at(before, 'metadata', 'resourceVersion'))
  })

  it.skipIf(isMissing || 'missing' in kubectl)('is a plugin of the real kubectl', async () => {
    const { path } = kubectl as { path: string }
    const list = await run(server.kubeconfig, path, ['ichor', 'operation', 'list', '-o', 'name'])
    expect([list.code, list.out]).toEqual([0, 'talosoperation.ichor.maesh.dev/talos-1-13-9\n'])
    const help = await run(server.kubeconfig, path, ['ichor', 'lock', '--help'])
    expect(help.out).toContain('Usage: kubectl ichor lock')
  })

  it.skipIf(isMissing)('prints the table that kubectl prints', async ctx => {
    if ('missing' in kubectl) return ctx.skip()
    const ours = await cli('operation', 'list', '-o', 'wide')
    const theirs = await run(server.kubeconfig, kubectl.path, ['get', 'talosoperations', '-n', namespace, '-o', 'wide'])
    const ageless = (text: string) =>
      text
        // What is nine seconds old for one may be ten for the other, and then the column is wider.
        .replaceAll(/(?:\bAGE|\b(?:\d+[hms])+)(?= |$) */gm, 'AGE ')
        .split('\n')
        .map(line => line.trimEnd())
    expect(ageless(ours.out)).toEqual(ageless(theirs.out))
  })

  it.skipIf(isMissing)('watches until it is Completed', async () => {
    const { said, end } = watch()
    await eventually(() => expect(said.out).toContain('Running: cp-1 is next'))
    await setStatus({ phase: 'Completed', progress: { done: 6, skipped: 0, total: 6, summary: '6/6' } })
    expect(await end).toBe(0)
    expect(said.out).toContain('Completed: 6 of 6 machines done.')
    const over = await cli('operation', 'cancel', 'talos-1-13-9', '--yes')
    expect([over.code, over.err]).toEqual([1, 'error: operation talos-1-13-9 is Completed and cannot be cancelled\n'])
    expect((await cli('operation', 'delete', 'talos-1-13-9', '--yes')).code).toBe(0)
    expect((await cli('operation', 'list')).err).toBe('There are no operations in namespace ichor-system.\n')
  })
})

describe('without a server', () => {
  it('says in one line which server does not answer', async () => {
    const server = await simulated()
    await server.close()
    const list = await run(server.kubeconfig, ichor, ['operation', 'list'])
    expect(list.code).toBe(1)
    expect(list.err).toMatch(
      /^error: cannot reach the Kubernetes API server at https:\/\/127\.0\.0\.1:\d+: .*connection refused.*\n {2}Is it running/,
    )
    expect((await run(server.kubeconfig, ichor, ['version'])).code).toBe(0)
  })

  it('says that there is no kubeconfig', async () => {
    const list = await run(join(home, 'nothing'), ichor, ['operation', 'list'])
    expect([list.code, list.out]).toEqual([1, ''])
    expect(list.err).toMatch(/^error: kubeconfig not found: KUBECONFIG names .*nothing, and there is no such file\n$/)
  })
})

describe('the bundle', () => {
  it('runs from any folder, with what it loads late', async () => {
    const dist = mkdtempSync(join(home, 'dist-'))
    const built = await run('', process.execPath, [join(root, 'scripts', 'build.ts'), dist])
    expect([built.code, built.err.replaceAll(/^\(.*\n/gm, '')]).toEqual([0, ''])
    const bundle = (...args: string[]) => run('', process.execPath, [join(dist, 'ichor.cjs'), ...args])
    const version = await bundle('version', '--client')
    expect([version.code, version.out]).toEqual([0, 'Client      0.1.0\n'])
    expect((await bundle('upgrade', 'talos', '--help')).out).toContain('--schematic')
    expect((await bundle('controller', '--help')).out).toContain('Usage: ichor controller')

    // YAML that only a real parser reads, and YAML written: the package comes late.
    const server = await simulated()
    onTestFinished(server.close)
    const kubeconfig = join(dist, 'kubeconfig')
    writeFileSync(kubeconfig, `# a comment, then JSON\n${readFileSync(server.kubeconfig, 'utf8')}`)
    const list = await run(kubeconfig, process.execPath, [join(dist, 'ichor.cjs'), 'operation', 'list', '-o', 'yaml'])
    expect([list.code, list.out, list.err]).toEqual([0, 'apiVersion: v1\nkind: List\nmetadata: {}\nitems: []\n', ''])
  }, 60_000)
})
