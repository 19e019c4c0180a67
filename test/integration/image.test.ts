// What the container image holds, without a container engine: Node, its libraries and the bundle, and nothing else; as the user that is nobody; with the
// ServiceAccount and the roles that are installed and not one right more. It carries out a whole upgrade and the reset of a machine so.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { API_VERSION } from '../../src/api/names.ts'
import { RESOURCE } from '../../src/adapters/kube/resource.ts'
import { type Child, startChild } from '../../src/app/child.ts'
import { versionOf } from '../../src/world/machine.ts'
import type { Sbom } from '../../scripts/sbom.ts'
import { type ClusterOnTheWire, startCluster } from '../cluster-on-the-wire.ts'
import { realParts } from '../real/parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')
const missing = 'missing' in servers ? servers.missing : process.getuid?.() === 0 ? undefined : 'root, for chroot'
const root = join(import.meta.dirname, '..', '..')
const NAMESPACE = 'ichor-system'
const LONG = 300_000
const CANARY = 'a-canary-that-must-not-sing'
const eventually = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { timeout: LONG, interval: 200 })
const exec = promisify(execFile)

const build = async (folder: string): Promise<string> => {
  await exec(process.execPath, [join(root, 'scripts', 'build.ts'), folder], { cwd: root })
  return folder
}
/** Of every file, by its path. */
const hashes = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    globSync('**/*', { cwd: folder })
      .filter(path => statSync(join(folder, path)).isFile())
      .toSorted()
      .map(path => [
        path,
        createHash('sha256')
          .update(readFileSync(join(folder, path)))
          .digest('hex'),
      ]),
  )
const freePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

describe.skipIf(missing)(`the image${missing ? ` (${missing})` : ''}`, () => {
  let folder: string
  let image: string
  let cluster: ClusterOnTheWire
  let controller: Child | undefined
  let metrics: string
  const said: string[] = []

  const ichor = async (...args: readonly string[]): Promise<string> => {
    const env = { ...process.env, KUBECONFIG: cluster.kubernetes.kubeconfigPath, ICHOR_SOURCE: '1' }
    const { stdout, stderr } = await exec(join(root, 'bin', 'ichor'), [...args, '-n', NAMESPACE], { env })
    said.push(stdout, stderr)
    return stdout
  }
  const log = (): string => readFileSync(join(folder, 'controller.log'), 'utf8')

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ichor-image-'))
    image = join(folder, 'root')
    cluster = await startCluster({ controlPlanes: 3, workers: 2, from: 'v1.13.5', speed: 100, realApiServer: true })
  }, LONG)
  afterAll(async () => {
    await controller?.kill()
    await cluster?.close()
    if (folder) rmSync(folder, { recursive: true })
  })

  /** A rollout of configuration whose patch lies in a Secret. */
  const roll = async (patch: string): Promise<void> => {
    const must = async (answer: Promise<{ readonly ok: boolean }>): Promise<void> => expect(await answer).toMatchObject({ ok: true })
    await must(
      cluster.client.create(
        RESOURCE.secret,
        { namespace: NAMESPACE },
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'patch' }, stringData: { 'patch.yaml': patch } },
      ),
    )
    const spec = {
      clusterRef: { name: 'home' },
      kind: 'config',
      config: { mode: 'no-reboot', patches: [{ secretKeyRef: { name: 'patch', key: 'patch.yaml' } }] },
    }
    await must(
      cluster.client.create(
        RESOURCE.talosOperation,
        { namespace: NAMESPACE },
        { apiVersion: API_VERSION, kind: 'TalosOperation', metadata: { name: 'registry' }, spec },
      ),
    )
    await ichor('operation', 'watch', 'registry')
    await ichor('operation', 'logs', 'registry')
  }

  it(
    'is the same whenever it is built',
    async () => {
      const [one, two] = [await build(join(image, 'ichor')), await build(join(folder, 'again'))]
      expect(hashes(one)).toEqual(hashes(two))
      expect(Object.keys(hashes(one)).filter(path => !/\.(cjs|mjs|LEGAL\.txt)$/.test(path))).toEqual(['ichor.cdx.json'])
    },
    LONG,
  )

  it(
    'says which packages are in it',
    () => {
      const { components } = JSON.parse(readFileSync(join(image, 'ichor', 'ichor.cdx.json'), 'utf8')) as Sbom
      // Each of these leaves words of its own in the bundle, and what is used of tests and builds leaves none.
      const code = globSync('ichor/**/*.{cjs,mjs}', { cwd: image }).map(path => readFileSync(join(image, path), 'utf8'))
      const words = {
        commander: 'commander.invalidArgument',
        pino: 'pino-std-serializers',
        zod: 'ZodError',
        '@grpc/grpc-js': 'GRPC_VERBOSITY',
      }
      for (const [name, word] of Object.entries(words)) {
        expect(
          code.some(text => text.includes(word)),
          name,
        ).toBe(true)
        expect(components.map(component => component.name)).toContain(name)
      }
      for (const name of ['vitest', 'esbuild', 'fast-check']) expect(components.map(component => component.name)).not.toContain(name)
    },
    LONG,
  )

  it(
    'works as nobody, where nothing can be written, with the rights that are installed',
    async () => {
      await ichor('install', '--image', 'registry.example.org/ichor:0.1.0', '--no-wait')
      await cluster.register()
      const node = process.execPath
      const { stdout } = await exec('ldd', [node])
      const libraries = [...stdout.matchAll(/(\/\S+\.so[.\d]*)/g)].map(([, path]) => path!)
      for (const [from, to] of [[node, '/nodejs/bin/node'], ...libraries.map(path => [path, path])] as const) {
        mkdirSync(dirname(join(image, to)), { recursive: true })
        copyFileSync(from, join(image, to))
      }
      const account = join(image, 'var/run/secrets/kubernetes.io/serviceaccount')
      mkdirSync(account, { recursive: true })
      const token = await cluster.client.create(
        { group: '', version: 'v1', plural: 'serviceaccounts', kind: 'TokenRequest' },
        { namespace: NAMESPACE, name: 'ichor-controller', subresource: 'token' },
        { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      )
      if (!token.ok) throw new Error(token.fault.message)
      const kubeconfig = parse(readFileSync(cluster.kubernetes.kubeconfigPath, 'utf8')) as {
        clusters: [{ cluster: { server: string; 'certificate-authority-data': string } }]
      }
      const { server, 'certificate-authority-data': ca } = kubeconfig.clusters[0].cluster
      for (const [name, text] of Object.entries({
        namespace: NAMESPACE,
        token: (token.value['status'] as { token: string }).token,
        'ca.crt': Buffer.from(ca, 'base64').toString(),
      }))
        writeFileSync(join(account, name), text)
      for (const path of ['.', ...globSync('**/*', { cwd: image })]) chmodSync(join(image, path), 0o555)

      const deployment = await cluster.client.get({ ...RESOURCE.deployment }, { namespace: NAMESPACE, name: 'ichor-controller' })
      if (!deployment.ok) throw new Error(deployment.fault.message)
      const [container] = (deployment.value['spec'] as { template: { spec: { containers: [{ args: string[] }] } } }).template.spec
        .containers
      const port = await freePort()
      const args = container.args.map(arg => (arg.startsWith('--listen=') ? `--listen=127.0.0.1:${port}` : arg))
      const { hostname, port: apiPort } = new URL(server)
      controller = await startChild({
        command: 'env',
        args: [
          ...['-i', `KUBERNETES_SERVICE_HOST=${hostname}`, `KUBERNETES_SERVICE_PORT=${apiPort}`, `POD_NAMESPACE=${NAMESPACE}`],
          ...['POD_NAME=ichor-controller-0', 'NODE_NAME=elsewhere', '/usr/sbin/chroot', '--userspec=65532:65532', image],
          ...['/nodejs/bin/node', '/ichor/ichor.cjs', ...args, '--pace=100'],
        ],
        logPath: join(folder, 'controller.log'),
      })
      const ask = async (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`)
      await eventually(async () => expect((await ask('/readyz')).status).toBe(200))
      await eventually(async () => expect(await ichor('cluster', 'list')).toContain('5/5'))

      await ichor('upgrade', 'talos', 'v1.13.9', '--yes', '--wait')
      await ichor('node', 'reset', 'wk-2', '--reboot-after', '--confirm', 'home', '--wait')
      for (const machine of cluster.world.machines.filter(({ name }) => name !== 'wk-2')) expect(versionOf(machine)).toBe('v1.13.9')
      await roll(`machine: {registries: {config: {registry.example.org: {auth: {username: ichor, password: ${CANARY}}}}}}`)
      for (const machine of cluster.world.machines.filter(({ name }) => name !== 'wk-2')) expect(machine.config).toContain(CANARY)
      metrics = await (await ask('/metrics')).text()
      expect(metrics).toContain('ichor_kubernetes_requests_total{')
      expect(metrics.split('\n').filter(line => /code="40[13]"/.test(line))).toEqual([])
      expect(log()).not.toMatch(/forbidden|EACCES|EROFS/)
      expect(cluster.faults).toEqual([])
    },
    LONG,
  )

  it('tells no secret: not in a status, an Event, a log, a metric, on the command line or in the bundle', async () => {
    const talosconfig = parse(readFileSync(cluster.talosconfigPath, 'utf8')) as { contexts: Record<string, { key: string; crt: string }> }
    const secrets = [
      ...Object.values(talosconfig.contexts).map(({ key }) => key),
      CANARY,
      parse(readFileSync(cluster.kubernetes.kubeconfigPath, 'utf8')).users[0].user.token as string,
      readFileSync(join(image, 'var/run/secrets/kubernetes.io/serviceaccount/token'), 'utf8'),
    ]
    const spoken = new Map<string, string>([
      ['log', log()],
      ['metrics', metrics],
      ['command line', said.join('\n')],
    ])
    for (const type of [
      RESOURCE.talosOperation,
      RESOURCE.talosCluster,
      RESOURCE.talosMachine,
      RESOURCE.event,
      RESOURCE.lease,
      RESOURCE.node,
    ]) {
      const listed = await cluster.client.list(type)
      if (!listed.ok) throw new Error(listed.fault.message)
      expect(listed.value.items.length).toBeGreaterThan(0)
      spoken.set(type.plural, JSON.stringify(listed.value.items))
    }
    for (const path of Object.keys(hashes(join(image, 'ichor')))) spoken.set(path, readFileSync(join(image, 'ichor', path), 'utf8'))
    for (const secret of new Set(secrets)) {
      // Also what it is when it is decoded or encoded once more.
      const forms = [secret, Buffer.from(secret).toString('base64'), Buffer.from(secret, 'base64').toString('utf8')].filter(
        form => form.length >= 8,
      )
      for (const [where, text] of spoken)
        expect(
          forms.some(form => text.includes(form)),
          `a secret is told in ${where}`,
        ).toBe(false)
    }
    expect(existsSync(join(image, 'ichor', 'package.json'))).toBe(false)
  })
})
