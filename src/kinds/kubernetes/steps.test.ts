// What counts as evidence, and what does not. Two control planes are enough; a table says what differs.
import { describe, expect, it } from 'vitest'
import type { TalosMachine } from '../../api/talos-machine.ts'
import { talosOperation, type OperationSpec, type Target } from '../../api/talos-operation.ts'
import type { Step } from '../../core/kind.ts'
import { timing } from '../../core/timing.ts'
import { NO_FACTS, type Facts, type View } from '../../core/world.ts'
import type { MachineComponents, StaticPodFacts } from '../../ports/components.ts'
import type { ControlPlanePod } from '../../ports/control-plane.ts'
import { failed, ok, type Result } from '../../ports/fault.ts'
import type { ServiceFacts } from '../../ports/machine-actions.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import { kubernetes } from './kubernetes.ts'

const NOW = Date.UTC(2026, 8, 1, 12)
const ago = (ms: number): string => new Date(NOW - ms).toISOString()
const OLD = 'registry.k8s.io/kube-apiserver:v1.35.4'
const NEW = 'registry.k8s.io/kube-apiserver:v1.36.2'
const KUBELET = 'ghcr.io/siderolabs/kubelet:v1.36.2'

const meta = {
  namespace: 'n',
  uid: 'u',
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: ago(1e7),
  labels: {},
  annotations: {},
  finalizers: [],
}
const machine = (name: string): TalosMachine => ({
  metadata: { ...meta, name },
  spec: { clusterRef: { name: 'home' }, address: `10.5.0.${name.at(-1)}`, role: 'controlplane' },
  status: { hostname: name, nodeName: name, nodeID: name },
})
const pod = (node: string, over: Partial<ControlPlanePod> = {}): ControlPlanePod => ({
  ...{ component: 'kube-apiserver', node, image: NEW, configVersion: '2', ready: true, restarts: 0 },
  ...over,
})
const static2 = (over: Partial<StaticPodFacts> = {}): MachineComponents => ({
  kubelet: { image: KUBELET },
  staticPods: { 'kube-apiserver': { image: NEW, rendered: { image: NEW, configVersion: '2', isProbed: false }, ...over } },
})

type Given = {
  readonly components?: Result<MachineComponents>
  readonly pods?: readonly ControlPlanePod[] | 'away'
  readonly words?: readonly string[]
  readonly servedAt?: Readonly<Record<string, number>>
  readonly target?: Partial<Target>
  readonly status?: object
  readonly node?: Partial<NodeFacts>
  readonly service?: Partial<ServiceFacts>
}

const given = ({
  components = ok(static2()),
  pods = [pod('cp-1'), pod('cp-2')],
  words = [],
  servedAt = {},
  target,
  status,
  node,
  service,
}: Given = {}): View => {
  const spec = talosOperation([kubernetes]).spec.parse({
    clusterRef: { name: 'home' },
    kind: 'kubernetes',
    kubernetes: { version: 'v1.36.2' },
  }) as OperationSpec
  const facts: Facts = {
    ...NO_FACTS,
    machines: { 'cp-1': ok({ bootID: 'b', stage: 'running', ready: true, nodename: 'cp-1', nodeID: 'cp-1' } as MachineFacts) },
    nodes: ok([{ name: 'cp-1', kubeletVersion: 'v1.36.2', bootID: 'b', ready: true, ...node } as NodeFacts]),
    components: { 'cp-1': components },
    services: { 'cp-1/kubelet': ok({ id: 'kubelet', state: 'Running', health: 'healthy', ...service }) },
    etcd: Object.fromEntries(['cp-1', 'cp-2'].map(name => [name, failed('unreachable', 'nobody can tell of etcd')])),
    lastWords: { 'cp-1/kube-apiserver': ok(words) },
    controlPlane: pods === 'away' ? failed('unreachable', '503') : ok({ pods, servedAt }),
  }
  return {
    operation: { metadata: { ...meta, name: 'up' }, spec, status: { phase: 'Running', ...status } },
    target: {
      ...{ name: 'cp-1', hostname: 'cp-1', node: 'cp-1', role: 'controlplane', phase: 'Running', step: 'running' },
      ...{ startedAt: ago(300_000), stepStartedAt: ago(60_000), goal: { from: OLD, image: NEW, node: 'cp-1' } },
      ...target,
    },
    world: {
      ...{ now: NOW, watchedMs: Infinity, timing: timing(), lock: undefined, others: [], self: undefined, running: [], facts },
      cluster: { metadata: { ...meta, name: 'home' }, spec: { talosconfigSecretRef: { name: 's', key: 'k' } }, status: {} },
      machines: [machine('cp-1'), machine('cp-2')],
    },
  }
}

const step = (stage: string, name: string): Step => {
  const found = kubernetes.stages.find(s => s.name === stage)?.steps.find(s => s.name === name)
  if (!found) throw new Error(`no step ${name} in ${stage}`)
  return found
}
const told = (answer: ReturnType<Step['done']>): string =>
  answer.is === 'yes' ? 'yes' : answer.is === 'failed' ? `failed ${answer.reason}: ${answer.message}` : `${answer.is}: ${answer.why}`

describe('a static pod runs as wanted', () => {
  const done = (over?: Given): string => told(step('kube-apiserver', 'running').done(given(over)))
  const crashing = { reason: 'CrashLoopBackOff', message: 'back-off 80s restarting failed container' }

  it.each<[string, Given, RegExp]>([
    ['it does', {}, /^yes$/],
    [
      'the shadow of the pod before is Ready as ever',
      { pods: [pod('cp-1', { image: OLD, configVersion: '1' })] },
      /^no: .*does not show the new/,
    ],
    ['the image is new, and the rendering another', { pods: [pod('cp-1', { configVersion: '1' })] }, /^no: .*does not show the new/],
    ['only that of another machine is', { pods: [pod('cp-2')] }, /^no: .*does not show the new/],
    [
      'Talos has not rendered it',
      { components: ok(static2({ rendered: { image: OLD, configVersion: '1', isProbed: false } })) },
      /^no: Talos still renders/,
    ],
    [
      'Talos has nothing, because its etcd is not well',
      { components: ok({ kubelet: { image: KUBELET }, staticPods: { 'kube-apiserver': { image: NEW } } }) },
      /^no: Talos has no kube-apiserver/,
    ],
    ['it is not Ready, and nobody says why', { pods: [pod('cp-1', { ready: false })] }, /^no: .*is not Ready$/],
    [
      'its image is on the way',
      { pods: [pod('cp-1', { ready: false, waiting: { reason: 'ContainerCreating', message: '' } })] },
      /^no: .*ContainerCreating$/,
    ],
    ['the machine does not answer', { components: failed('unreachable', 'no route') }, /^unknown: .*no route/],
    ['the API does not answer', { pods: 'away' }, /^unknown: the Kubernetes API does not answer/],
  ])('%s', (_, over, wanted) => expect(done(over)).toMatch(wanted))

  it.each<[string, Given, RegExp]>([
    [
      'its process ends again and again: with its last words, and the way back',
      { pods: [pod('cp-1', { ready: false, restarts: 4, waiting: crashing })], words: ['Error: unknown flag: --gone'] },
      /^failed StaticPodTimeout: cp-1: kube-apiserver v1\.36\.2 does not stay up \(4 restarts\).*It wrote last: Error: unknown flag: --gone\..*patch machineconfig.*kube-apiserver:v1\.35\.4/,
    ],
    [
      'the only API server is the one that ends: the machine tells',
      { pods: 'away', components: ok(static2({ told: { ready: false, restarts: 5, waiting: crashing } })) },
      /^failed StaticPodTimeout/,
    ],
    [
      'no registry has its image',
      { pods: [pod('cp-1', { ready: false, waiting: { reason: 'ImagePullBackOff', message: `${NEW}: not found` } })] },
      /^failed ImageNotFound/,
    ],
  ])('never: %s', (_, over, wanted) => expect(done(over)).toMatch(wanted))

  it.each<[string, Given]>([
    ['it ended only twice', { pods: [pod('cp-1', { ready: false, restarts: 2, waiting: crashing })] }],
    [
      'a registry does not answer',
      { pods: [pod('cp-1', { ready: false, waiting: { reason: 'ErrImagePull', message: 'dial tcp: i/o timeout' } })] },
    ],
    [
      'what Talos tells may still be about the pod before',
      {
        pods: 'away',
        target: { stepStartedAt: ago(10_000) },
        components: ok(static2({ told: { ready: false, restarts: 5, waiting: crashing } })),
      },
    ],
    [
      'somebody mended it and resumed: the kubelet tries again within its back-off',
      {
        pods: [pod('cp-1', { ready: false, restarts: 9, waiting: crashing })],
        target: { failure: { reason: 'StaticPodTimeout', at: ago(120_000) } },
        status: { lastRetry: ago(60_000) },
      },
    ],
  ])('not given up: %s', (_, over) => expect(done(over)).not.toMatch(/^failed/))

  const startedAt = NOW - 5000
  const started = [pod('cp-1', { startedAt }), pod('cp-2')]
  it.each<[string, Given, RegExp]>([
    ['it said so since its process began', { pods: started, servedAt: { 'cp-1': NOW - 2000, 'cp-2': NOW } }, /^yes$/],
    [
      'it said so last when its process was another',
      { pods: started, servedAt: { 'cp-1': NOW - 9000, 'cp-2': NOW } },
      /^no: .*does not serve yet/,
    ],
    ['its name is not among those that say so', { pods: started, servedAt: { 'cp-1.example': NOW, 'cp-2': NOW } }, /^yes$/],
  ])('an API server serves: %s', (_, over, wanted) => expect(done(over)).toMatch(wanted))

  it.each<[string, Given, number | undefined]>([
    ['nothing else proves that it works', {}, 6000],
    ['it said itself that it serves', { pods: started, servedAt: { 'cp-1': NOW } }, undefined],
    ['it answers probes', { components: ok(static2({ rendered: { image: NEW, configVersion: '2', isProbed: true } })) }, undefined],
  ])('has to stay Ready for a few looks where %s', (_, over, wanted) =>
    expect(step('kube-apiserver', 'running').stableMs?.(given(over))).toBe(wanted),
  )

  it('a scheduler is there when the API server of its machine is, too, which begins anew with it', () => {
    const image = NEW.replace('apiserver', 'scheduler')
    const scheduler = pod('cp-1', { component: 'kube-scheduler', image })
    const rendered = (name: 'kube-apiserver' | 'kube-scheduler', version: string) => ({
      image: name === 'kube-apiserver' ? NEW : image,
      rendered: { image: name === 'kube-apiserver' ? NEW : image, configVersion: version, isProbed: false },
    })
    const components = ok<MachineComponents>({
      kubelet: { image: KUBELET },
      staticPods: { 'kube-scheduler': rendered('kube-scheduler', '2'), 'kube-apiserver': rendered('kube-apiserver', '2/1/1112') },
    })
    const answer = (version: string) =>
      told(
        step('kube-scheduler', 'running').done(
          given({
            target: { goal: { from: OLD, image, node: 'cp-1' } },
            components,
            pods: [scheduler, pod('cp-1', { configVersion: version })],
          }),
        ),
      )
    expect(answer('2/1/1111')).toMatch(/^no: its kubelet does not show the new kube-apiserver yet/)
    expect(answer('2/1/1112')).toBe('yes')
  })

  it('asks for its last words only when it is broken', () => {
    const needs = (over?: Given) => step('kube-apiserver', 'running').needs?.(given(over))
    expect(needs()).not.toContainEqual(expect.objectContaining({ what: 'lastWords' }))
    expect(needs({ pods: [pod('cp-1', { ready: false, restarts: 4, waiting: crashing })] })).toContainEqual(
      expect.objectContaining({ what: 'lastWords', component: 'kube-apiserver' }),
    )
  })
})

describe('another image may be set', () => {
  const guard = (stage: string, over?: Given): string => {
    const verdict = step(stage, 'set-image').guard?.(given(over))
    return verdict?.may === 'yes' ? 'yes' : `${verdict?.may}: ${verdict && 'why' in verdict ? verdict.why : ''}`
  }
  const UNKNOWN_ETCD = /^wait: .*nobody can tell of etcd/
  const podsWith = (component: ControlPlanePod['component']): readonly ControlPlanePod[] =>
    ['cp-1', 'cp-2'].flatMap(node => [pod(node), pod(node, { component })])
  it.each<[string, string, Given, RegExp]>([
    ['kubelet', 'when all API servers are there', { target: { role: 'worker' } }, /^yes$/],
    [
      'kubelet',
      'of a control plane not while the API server of another is away: its own may be begun anew',
      { pods: [pod('cp-1'), pod('cp-2', { ready: false })] },
      /^wait: kube-apiserver on cp-2 is not Ready/,
    ],
    [
      'kubelet',
      'not before the last API server',
      { pods: [pod('cp-1'), pod('cp-2', { image: OLD })] },
      /^wait: kube-apiserver on cp-2 is still v1\.35\.4/,
    ],
    ['kubelet', 'not where one is out of sight', { pods: [pod('cp-1')] }, /^wait: no kube-apiserver of cp-2 is in sight/],
    ['kube-proxy', 'not before the last API server', { pods: [pod('cp-1', { image: OLD }), pod('cp-2')] }, /^wait: kube-apiserver on cp-1/],
    [
      'kube-apiserver',
      'not while that of another is not Ready',
      { pods: [pod('cp-1'), pod('cp-2', { ready: false })] },
      /^wait: kube-apiserver on cp-2 is not Ready/,
    ],
    [
      'kube-apiserver',
      'not while that of another has not said that it serves since it began',
      { pods: [pod('cp-1'), pod('cp-2', { startedAt: NOW - 4000 })], servedAt: { 'cp-1': NOW, 'cp-2': NOW - 60_000 } },
      /^wait: kube-apiserver on cp-2 does not serve yet/,
    ],
    ['kube-apiserver', 'not before etcd is known to be well', {}, UNKNOWN_ETCD],
    ['kube-controller-manager', 'not before etcd is known to be well', { pods: podsWith('kube-controller-manager') }, UNKNOWN_ETCD],
    [
      'kube-scheduler',
      'not before etcd is known to be well: an API server begins anew with it',
      { pods: podsWith('kube-scheduler') },
      UNKNOWN_ETCD,
    ],
    ['kube-scheduler', 'not without the API', { pods: 'away' }, /^wait: the Kubernetes API does not answer/],
  ])('%s: %s', (stage, _, over, wanted) => expect(guard(stage, over)).toMatch(wanted))
})

describe('a kubelet runs as wanted', () => {
  const target = { step: 'kubelet', goal: { from: 'ghcr.io/siderolabs/kubelet:v1.35.4', image: KUBELET, node: 'cp-1' } }
  const done = (over: Given = {}): string => told(step('kubelet', 'kubelet').done(given({ target, ...over })))
  it.each<[string, Given, RegExp]>([
    ['it does', {}, /^yes$/],
    ['a vendor put a tail behind its version', { node: { kubeletVersion: 'v1.36.2+acme.3' } }, /^yes$/],
    [
      'its Node still tells of a release candidate',
      { node: { kubeletVersion: 'v1.36.2-rc.1' } },
      /^no: its Node still tells of v1\.36\.2-rc\.1/,
    ],
    ['its Node still tells of the one before', { node: { kubeletVersion: 'v1.35.4' } }, /^no: its Node still tells of v1\.35\.4/],
    ['its Node is of the boot before', { node: { bootID: 'a' } }, /^no: its Node still tells of the boot before/],
    ['its Node is not Ready', { node: { ready: false } }, /^no: its Node is not Ready/],
    [
      'it is on its way, in the words of Talos',
      { service: { state: 'Preparing', health: 'unknown', lastEvent: 'Creating service runner' } },
      /^no: its kubelet is Preparing: Creating service runner/,
    ],
    ['its health is not known yet', { service: { health: 'unknown' } }, /^no: its kubelet is running, and unknown/],
    [
      'Talos knows what runs, and it is another',
      { components: ok({ kubelet: { image: KUBELET, running: 'ghcr.io/siderolabs/kubelet:v1.35.4' }, staticPods: {} }) },
      /^no: its kubelet still runs/,
    ],
    [
      'no registry has its image',
      { service: { state: 'Failed', health: 'unknown', lastEvent: `Failed to run pre stage: ${KUBELET}: not found` } },
      /^failed ImageNotFound: cp-1: its kubelet has no image.* to the registry, start it with `talosctl -n 10\.5\.0\.1 service kubelet start`, and resume/,
    ],
  ])('%s', (_, over, wanted) => expect(done(over)).toMatch(wanted))
})
