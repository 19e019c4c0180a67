// Kubernetes is upgraded to the next minor on real machines with real static pods and kubelets, as people ask for it: an image that is missing, machines
// that are drained, a controller that is killed in the middle; and talosctl says what was done.
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openKube } from '../../src/adapters/kube/kube.ts'
import type { Kube } from '../../src/ports/kube.ts'
import { imageVersion } from '../../src/core/component-image.ts'
import { versionOrder } from '../../src/core/versions.ts'
import { openClient } from '../cluster-on-the-wire.ts'
import { addresses } from './cluster.ts'
import { applied, type Bench, CLUSTER, get, ichor, kubectl, lockHolder, operation, startIchor, talos } from './ichor.ts'
import { takenFrom } from './registry.ts'

vi.setConfig({ testTimeout: 1_200_000, hookTimeout: 300_000 })
const eventually = <T>(check: () => T | Promise<T>, timeout = 240_000) => vi.waitFor(check, { timeout, interval: 500 })
const names = ['cp-1', 'cp-2', 'cp-3', 'wk-1'] as const
const controlPlanes = ['cp-1', 'cp-2', 'cp-3'] as const
const components = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const
const to = /^require k8s\.io\/kubernetes (v\S+)$/m.exec(readFileSync(join(import.meta.dirname, '../real/kubernetes/go.mod'), 'utf8'))![1]!

type NodeObject = {
  readonly spec: { readonly unschedulable?: boolean }
  readonly status: { readonly nodeInfo: { readonly kubeletVersion: string } }
}
type Pod = {
  readonly metadata: { readonly uid: string; readonly annotations: Readonly<Record<string, string>> }
  readonly spec: { readonly nodeName: string; readonly containers: readonly { readonly image: string }[] }
}

/** The images that the configuration of a machine names, by talosctl. */
async function configured(name: (typeof names)[number]): Promise<readonly string[]> {
  const text = await talos('-n', addresses[name], 'get', 'mc', 'v1alpha1', '-o', 'yaml')
  return [...text.matchAll(/image: (\S*(?:kubelet|kube-[a-z-]+):\S+)/g)].map(([, image]) => image!).toSorted()
}

/** Whether the API server of a machine says anything at all. */
const answers = (name: (typeof controlPlanes)[number]): Promise<boolean> =>
  new Promise(resolve => {
    const asked = request({ host: addresses[name], port: 6443, path: '/livez', rejectUnauthorized: false, timeout: 2000 }, answer => {
      answer.resume()
      resolve(true)
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(false))
    asked.end()
  })

/** Looks, twice a second, at what must hold at every moment of the upgrade. `end` tells what did not. */
function onlooker(kube: Kube): { readonly end: () => readonly string[] } {
  const wrong = new Set<string>()
  const look = async (): Promise<void> => {
    const there = await Promise.all(controlPlanes.map(answers))
    const away = controlPlanes.filter((_, at) => !there[at])
    if (away.length > 1) wrong.add(`no API server on ${away.join(' and ')} at once`)
    const [nodes, known] = await Promise.all([kube.nodes(), kube.controlPlane()])
    if (!nodes.ok || !known.ok) return
    const versions = (component: string): readonly string[] =>
      known.value.pods.filter(pod => pod.component === component).map(pod => imageVersion(pod.image) ?? pod.image)
    const oldest = versions('kube-apiserver').toSorted((a, b) => versionOrder(a, b) ?? 0)[0] ?? ''
    const isNewer = (version: string): boolean => (versionOrder(version, oldest) ?? 1) > 0
    for (const component of components.slice(1))
      for (const version of versions(component)) if (isNewer(version)) wrong.add(`${component} ${version} beside kube-apiserver ${oldest}`)
    for (const { name, kubeletVersion } of nodes.value)
      if (isNewer(kubeletVersion)) wrong.add(`kubelet ${kubeletVersion} of ${name} beside kube-apiserver ${oldest}`)
    const aside = nodes.value.filter(node => node.unschedulable)
    if (aside.length > 1) wrong.add(`${aside.map(({ name }) => name).join(' and ')} are set aside at once`)
  }
  let looking: Promise<void> | undefined
  const timer = setInterval(() => {
    looking ??= look().finally(() => (looking = undefined))
  }, 500)
  return {
    end: () => {
      clearInterval(timer)
      return [...wrong]
    },
  }
}

let bench: Bench
let from = ''
beforeAll(async () => {
  bench = await startIchor()
  await eventually(async () => {
    const { status } = await get<{ status: { machines?: { summary?: string } } }>('taloscluster', CLUSTER)
    expect(status.machines?.summary).toBe('4/4')
  })
  from = (await get<NodeObject>('node', 'wk-1')).status.nodeInfo.kubeletVersion
})
afterAll(() => bench?.close())

/** What talosctl would update yet, like `kube-apiserver: 1.34.4 -> 1.35.4`: one line for each program of each machine. */
async function dueByTalosctl(): Promise<readonly string[]> {
  const told = await talos('-n', addresses['cp-1'], 'upgrade-k8s', '--dry-run', '--to', to.slice(1), '--pre-pull-images=false')
  return [...told.matchAll(/^ > update (\S+: )v?(\S+ -> \S+)$/gm)].map(([, program, step]) => `${program}${step}`)
}

/** A pod that wants to run on wk-1, and can run elsewhere. */
async function homebody(): Promise<void> {
  const labels = { app: 'homebody' }
  const preference = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['wk-1'] }] }
  await applied({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'homebody', namespace: 'default' },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'pause', image: 'registry.k8s.io/pause:3.10' }],
          affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] } },
        },
      },
    },
  })
  await kubectl('rollout', 'status', 'deployment/homebody', '-n', 'default', '--timeout=120s', '--request-timeout=0')
}
const podsOf = async (...selector: readonly string[]): Promise<readonly Pod[]> =>
  (JSON.parse(await kubectl('get', 'pods', ...selector, '-o', 'json')) as { items: readonly Pod[] }).items

const renderings = async (): Promise<Readonly<Record<string, number>>> => {
  const pods = await podsOf('-n', 'kube-system', '-l', 'tier=control-plane')
  const number = ({ metadata }: Pod): number => Number(metadata.annotations['talos.dev/config-version'])
  return Object.fromEntries(pods.map(pod => [`${pod.spec.nodeName} ${imageOf(pod).split(':')[0]}`, number(pod)]))
}
const imageOf = ({ spec }: Pod): string => (spec.containers[0]?.image ?? '').split('/').at(-1) ?? ''

test('the plan is that of talosctl', async () => {
  const due = await dueByTalosctl()
  expect(due.toSorted()).toEqual(
    [...components.flatMap(component => controlPlanes.map(() => component)), ...names.map(() => 'kubelet')]
      .map(component => `${component}: ${from.slice(1)} -> ${to.slice(1)}`)
      .toSorted(),
  )
  const { stdout } = await ichor('upgrade', 'kubernetes', to, '--plan')
  for (const component of components)
    for (const name of controlPlanes) expect(stdout).toMatch(new RegExp(`${component} +${name} +controlplane +${from} +${to}`))
  for (const name of names) expect(stdout).toMatch(new RegExp(`kubelet +${name} +\\S+ +${from} +${to}`))
})

test('[B135] [B137] [B169] one missing image stops it before anything is changed; then it needs neither a registry nor DNS, and survives a kill -9', async () => {
  const [configs, rendered] = [await Promise.all(names.map(configured)), await renderings()]
  await homebody()
  const [pod] = await podsOf('-n', 'default', '-l', 'app=homebody')
  expect(pod?.spec.nodeName).toBe('wk-1')

  const bringBack = await takenFrom(`kube-scheduler:${to}`)
  try {
    await ichor('upgrade', 'kubernetes', to, '--drain', 'minor', '--name', 'minor', '--yes', '--no-plan')
    await eventually(async () => {
      const { status } = await operation('minor')
      expect(status).toMatchObject({ phase: 'Paused', failureReason: 'ImageNotFound', stage: 'pull' })
      expect(status.message).toMatch(
        new RegExp(`^cp-\\d: .*registry\\.k8s\\.io/kube-scheduler:${to}: not found.*Check .* the registry, then resume`),
      )
    })
    expect(await Promise.all(names.map(configured))).toEqual(configs)
  } finally {
    await bringBack()
  }

  const client = await openClient(process.env.KUBECONFIG!)
  const looking = onlooker(openKube(client))
  try {
    const ended = ichor('operation', 'resume', 'minor', '--wait')
    await eventually(async () => {
      const { status } = await operation('minor')
      expect(status.stage).toBe('kube-apiserver')
      expect(status.machines?.find(({ name }) => name.startsWith('cp-2'))).toMatchObject({ step: 'running' })
    }, 600_000)
    // All was pulled before anything was changed.
    for (const image of [...components, 'siderolabs/kubelet']) await takenFrom(`${image}:${to}`)
    await bench.kill()
    await bench.start()
    await ended
  } finally {
    expect(looking.end()).toEqual([])
    client.close()
  }
  expect((await operation('minor')).status).toMatchObject({ phase: 'Completed' })
  expect(await lockHolder()).toBe('')

  // kube-proxy is switched off, and stays as it is.
  const become = (image: string): string => (image.includes('kube-proxy') ? image : image.replace(from, to))
  expect(await Promise.all(names.map(configured))).toEqual(configs.map(images => images.map(become)))
  for (const name of names) {
    const { spec, status } = await get<NodeObject>('node', name)
    expect(spec.unschedulable).toBeUndefined()
    expect(status.nodeInfo.kubeletVersion).toBe(to)
  }
  const pods = await podsOf('-n', 'kube-system', '-l', 'tier=control-plane')
  expect(pods.map(imageOf).toSorted()).toEqual(components.flatMap(component => controlPlanes.map(() => `${component}:${to}`)))
  // Each was rendered anew once, also that of the machine at which the controller was killed.
  expect(await renderings()).toEqual(Object.fromEntries(Object.entries(rendered).map(([which, version]) => [which, version + 1])))
  const [after, ...more] = await podsOf('-n', 'default', '-l', 'app=homebody')
  expect(more).toEqual([])
  expect(after?.metadata.uid).not.toBe(pod?.metadata.uid)
})

test('talosctl finds nothing left to do, and neither does Ichor', async () => {
  expect(await dueByTalosctl()).toEqual([])
  // A busy machine's API server misses a probe now and then, and then the checks refuse before anything is compared.
  await eventually(() =>
    expect(ichor('upgrade', 'kubernetes', to, '--yes')).rejects.toMatchObject({
      code: 3,
      stderr: expect.stringContaining('there is nothing to do on cluster') as string,
    }),
  )
})
