// kubectl itself against both servers: what it prints must be the same, ages and ids aside.
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toCrd } from '../../../src/api/structural.ts'
import type { RealKubeApiserver } from '../../real/kube-apiserver.ts'
import { startKubeApiserver } from '../../real/kube-apiserver.ts'
import { realPart, realParts } from '../../real/parts.ts'
import { ask, askUntil } from './client.ts'
import type { Server } from './client.ts'
import { resources } from './resources.ts'
import type { Simulated } from './simulated.ts'
import { startSimulated } from './simulated.ts'

const kubectl = await realPart('kubectl')
const parts = await realParts('etcd', 'kube-apiserver')
const program = 'path' in kubectl ? kubectl.path : ''
const recording = process.env.RECORD_GOLDEN === '1'
const golden = join(import.meta.dirname, 'golden', 'kubectl.json')
/** kubectl keeps what it learnt of a server; a folder for each run, so that nothing old is believed. */
const folder = mkdtempSync(join(tmpdir(), 'ichor-kubectl-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Said = { readonly code: number; readonly out: string; readonly err: string }
type Kubectl = { readonly server: Server; readonly kubeconfig: string; readonly cache: string }

const run = (to: Kubectl, args: readonly string[], input = ''): Promise<Said> =>
  new Promise(resolve => {
    const child = execFile(
      program,
      ['--kubeconfig', to.kubeconfig, '--cache-dir', to.cache, ...args],
      { timeout: 30_000, env: { HOME: folder, PATH: '/nonexistent' } },
      (error, out, err) => resolve({ code: error ? Number(error.code ?? 1) : 0, out, err }),
    )
    child.stdin?.end(input)
  })

const manifest = (object: object): string => JSON.stringify(object)
const operation = (name: string, spec: object = {}) => ({
  apiVersion: 'ichor.maesh.dev/v1alpha1',
  kind: 'TalosOperation',
  metadata: { name, labels: { team: 'a' } },
  spec: { clusterRef: { name: 'c' }, kind: 'talos', talos: { version: 'v1.13.9' }, ...spec },
})
const configMap = (name: string, data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })

/** What is there before kubectl comes: a node and pods, whose status it cannot write. */
const prepare = async (server: Server): Promise<void> => {
  const made = async (path: string, body: object) => {
    const reply = await ask(server, { method: 'POST', path, body })
    if (reply.status !== 201) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
  }
  const patched = async (path: string, body: object) => {
    const reply = await ask(server, { method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
    if (reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
  }
  await made('/api/v1/nodes', { metadata: { name: 'node-1', labels: { 'node-role.kubernetes.io/control-plane': '' } } })
  await patched('/api/v1/nodes/node-1', { spec: { taints: null } })
  const ready = { type: 'Ready', status: 'True', reason: 'R', message: 'M', lastTransitionTime: '2026-01-01T00:00:00Z' }
  const nodeInfo = {
    kubeletVersion: 'v1.35.0',
    osImage: 'Talos (v1.13.5)',
    kernelVersion: '6.18.0-talos',
    containerRuntimeVersion: 'containerd://2.1.4',
    bootID: 'b',
    machineID: '',
    systemUUID: '',
    kubeProxyVersion: '',
    operatingSystem: 'linux',
    architecture: 'amd64',
  }
  await patched('/api/v1/nodes/node-1/status', {
    status: { conditions: [ready], addresses: [{ type: 'InternalIP', address: '10.0.0.1' }], nodeInfo },
  })
  await made('/api/v1/namespaces', { metadata: { name: 'apps' } })
  for (const name of ['web-1', 'web-2']) {
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: '1', controller: true }]
    await made('/api/v1/namespaces/apps/pods', {
      metadata: { name, labels: { app: 'web' }, ownerReferences },
      spec: { nodeName: 'node-1', containers: [{ name: 'c', image: 'i' }] },
    })
    await patched(`/api/v1/namespaces/apps/pods/${name}/status`, {
      status: {
        phase: 'Running',
        podIP: '10.1.0.1',
        conditions: [ready],
        containerStatuses: [
          { name: 'c', ready: true, restartCount: 0, image: 'i', imageID: '', state: { running: { startedAt: '2026-01-01T00:00:00Z' } } },
        ],
      },
    })
  }
  await made('/apis/apps/v1/namespaces/apps/replicasets', {
    metadata: { name: 'web' },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  })
}

/** One after the other; each sees what those before it left. */
const COMMANDS: readonly (readonly [string, string?])[] = [
  ['version -o json'],
  ['get nodes'],
  ['get nodes -o wide'],
  ['get no node-1 -o name'],
  ['get pods -A -o wide --field-selector metadata.namespace=apps'],
  ['get pods -n apps -l app=web -o name'],
  ['get pods -n apps -o jsonpath={.items[*].status.phase}'],
  ['get pods -n nowhere'],
  ['get pods none'],
  ['get nonsense'],
  ['get ns apps'],
  ['create -f -', manifest(operation('one'))],
  ['create -f -', manifest(operation('one'))],
  ['create -f -', manifest(operation('two', { maxUnavailable: '150%', drain: { policy: 'maybe' } }))],
  ['create -f -', manifest(operation('two', { nonsense: 1 }))],
  ['create --validate=false -f -', manifest(operation('two', { nonsense: 1 }))],
  ['get top'],
  ['get top -o wide'],
  ['get top,tc,tm -A'],
  ['get talosoperation one -o yaml'],
  ['get top one -o json'],
  ['get talosoperations.ichor.maesh.dev -o name'],
  ['get ichor'],
  ['get top -l team=b'],
  ['get top --show-labels'],
  ['get top -o custom-columns=N:.metadata.name,V:.spec.talos.version'],
  ['get top --sort-by=.metadata.name --no-headers'],
  ['annotate top one ichor.maesh.dev/retry=true'],
  ['annotate top one ichor.maesh.dev/retry=false'],
  ['annotate top one ichor.maesh.dev/retry=again --overwrite'],
  ['annotate top one ichor.maesh.dev/retry-'],
  ['label top one stage=test'],
  ['label top --all stage-'],
  ['patch top one --type=merge -p {"spec":{"paused":true}}'],
  ['patch top one --type=merge -p {"spec":{"talos":{"version":"v1.13.10"}}}'],
  ['patch top one --type=json -p [{"op":"replace","path":"/spec/paused","value":false}]'],
  ['patch top one -p {"spec":{"paused":true}}'],
  [
    'patch top one --subresource=status --type=merge -p {"status":{"phase":"Running","observedGeneration":9,"conditions":[{"type":"Ready","status":"True","reason":"R","message":"M","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}',
  ],
  ['wait top/one --for=condition=Ready --timeout=10s'],
  ['wait top/one --for=jsonpath={.status.phase}=Running --timeout=10s'],
  ['wait top/one --for=condition=Nothing --timeout=1s'],
  ['cordon node-1'],
  ['cordon node-1'],
  ['get nodes'],
  ['uncordon node-1'],
  ['taint nodes node-1 key=value:NoSchedule'],
  ['taint nodes node-1 key2=value:NoExecute'],
  ['taint nodes node-1 key:NoSchedule-'],
  ['get node node-1 -o jsonpath={.spec.taints}'],
  ['label node node-1 zone=a'],
  ['patch node node-1 -p {"metadata":{"labels":{"zone":"b"}}}'],
  ['apply -f -', manifest(configMap('cm', { a: '1', b: '2' }))],
  ['apply -f -', manifest(configMap('cm', { a: '1', b: '2' }))],
  ['apply -f -', manifest(configMap('cm', { a: '2', c: '3' }))],
  ['get cm cm -o jsonpath={.data}'],
  ['diff -f -', manifest(configMap('cm', { a: '2', c: '3' }))],
  ['apply --server-side -f -', manifest(configMap('ss', { a: '1' }))],
  ['apply --server-side -f -', manifest(configMap('ss', { a: '2' }))],
  ['apply --server-side --field-manager=other -f -', manifest(configMap('ss', { a: '3' }))],
  ['apply --server-side --field-manager=other --force-conflicts -f -', manifest(configMap('ss', { a: '3' }))],
  ['apply -f -', manifest(operation('three'))],
  ['apply -f -', manifest(operation('three', { paused: true }))],
  ['apply --server-side -f -', manifest(operation('four'))],
  ['apply --dry-run=server -f -', manifest(operation('five'))],
  ['replace -f -', manifest(configMap('ss', { z: '1' }))],
  ['create secret generic s --from-literal=k=v'],
  ['create configmap made --from-literal=k=v'],
  ['create namespace extra'],
  ['describe top one'],
  ['explain talosoperation.spec.talos'],
  ['explain top.spec.drain.policy'],
  ['explain tc --recursive'],
  ['explain top.spec.nothing'],
  ['api-resources --api-group=ichor.maesh.dev -o wide'],
  ['api-resources --api-group=ichor.maesh.dev --no-headers -o name'],
  ['auth can-i override talosoperations'],
  ['get events -n apps'],
  ['drain node-1 --ignore-daemonsets --timeout=20s --grace-period=0 --disable-eviction=false'],
  ['get pods -n apps'],
  ['delete top two'],
  ['delete top one three --wait=false'],
  ['delete top none'],
  ['delete cm --all'],
  ['delete cm none --ignore-not-found'],
  ['delete pod none -n apps'],
  ['get all -n extra'],
]

const normal = (text: string, server: Server): string =>
  text
    .replaceAll(server.url, 'https://server')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uid>')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>')
    .replaceAll(/(resourceVersion"?: ")\d+"/g, '$1<version>"')
    .replaceAll(/(Resource Version: +)\d+/g, '$1<version>')
    .replaceAll(/\bsha256:[0-9a-f]+/g, '<digest>')
    // Ages, with the padding that their width leads to.
    .replaceAll(/ +\d+[smh](\d+s)?(?= |\n|$)/gm, ' <age>')
    .replaceAll(/ AGE +/g, ' AGE ')
    .replaceAll(/<age> +/g, '<age> ')
    .replaceAll(/in version "v1" cannot be handled.*?scheme\.go:\d+"/g, '<scheme>')

const known: Record<string, string> = {
  'version -o json': 'the simulated server was not built from Go',
  'explain tc --recursive': 'the real server knows every field of metadata, kubesim names four',
  'drain node-1 --ignore-daemonsets --timeout=20s --grace-period=0 --disable-eviction=false': 'pods are evicted in no fixed order',
}

const conversation = async (to: Kubectl): Promise<Record<string, unknown>[]> => {
  const said: Record<string, unknown>[] = []
  for (const [command, input] of COMMANDS) {
    const { code, out, err } = await run(to, command.split(' '), input)
    const lines = (text: string) => normal(text, to.server).split('\n')
    const errors = lines(err).filter(line => !/^[EIW]\d{4} /.test(line))
    said.push({ command, code, ...(known[command] === undefined ? { out: lines(out), err: errors } : {}) })
  }
  return said
}

const watching = async (to: Kubectl): Promise<string[]> => {
  const child = spawn(program, ['--kubeconfig', to.kubeconfig, '--cache-dir', to.cache, 'get', 'cm', '-w', '-o', 'name'], {
    env: { HOME: folder },
  })
  let text = ''
  const lines = (): string[] => text.split('\n').filter(line => line !== '')
  const until = (count: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`kubectl get -w said only: ${text}`)), 20_000)
      const look = (): void => {
        if (lines().length < count) return
        clearTimeout(late)
        resolve()
      }
      child.stdout.on('data', look)
      look()
    })
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  try {
    await run(to, ['create', 'configmap', 'watched-1', '--from-literal=a=b'])
    await until(1)
    await run(to, ['label', 'configmap', 'watched-1', 'a=b'])
    await until(2)
    await run(to, ['delete', 'configmap', 'watched-1'])
    await until(3)
    return lines().slice(0, 3)
  } finally {
    child.kill()
  }
}

describe.skipIf('missing' in kubectl)('kubectl', () => {
  const suite = (name: string, start: () => Promise<{ to: Kubectl; stop: () => Promise<void> }>): void => {
    describe(name, () => {
      let to: Kubectl
      let stop: () => Promise<void>
      beforeAll(async () => {
        ;({ to, stop } = await start())
        await prepare(to.server)
      }, 120_000)
      afterAll(() => stop?.())
      it('holds the same conversation', async () => {
        const said = await conversation(to)
        if (recording && name.includes('real')) writeFileSync(golden, `${JSON.stringify(said, null, 1)}\n`)
        const expected = JSON.parse(readFileSync(golden, 'utf8')) as Record<string, unknown>[]
        expect(said.map(({ command }) => command)).toEqual(expected.map(({ command }) => command))
        for (const [at, each] of said.entries()) expect.soft(each).toEqual(expected[at])
      }, 120_000)
      it('watches', async () => {
        const seen = await watching(to)
        expect(seen).toEqual(['configmap/watched-1', 'configmap/watched-1', 'configmap/watched-1'])
      }, 60_000)
    })
  }

  describe.skipIf('missing' in parts)('with the real server', () => {
    suite('real', async () => {
      const server: RealKubeApiserver = await startKubeApiserver()
      for (const definition of resources) {
        await server.request({ path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', method: 'POST', body: toCrd(definition) })
        await askUntil(
          server,
          { path: '/apis/ichor.maesh.dev/v1alpha1' },
          reply => reply.status === 200 && reply.body.resources.some((each: any) => each.name === definition.plural),
        )
      }
      // Schemas appear a moment after their resources.
      await askUntil(
        server,
        { path: '/openapi/v3/apis/ichor.maesh.dev/v1alpha1' },
        reply => reply.status === 200 && JSON.stringify(reply.body).includes('EtcdSnapshot'),
      )
      return { to: { server, kubeconfig: server.kubeconfigPath('admin'), cache: join(folder, 'real') }, stop: () => server.stop() }
    })
  })

  suite('kubesim', async () => {
    const server: Simulated = await startSimulated(resources)
    return { to: { server, kubeconfig: server.kubeconfigPath('admin'), cache: join(folder, 'simulated') }, stop: () => server.stop() }
  })
})
