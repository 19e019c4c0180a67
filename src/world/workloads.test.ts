import { describe, expect, it } from 'vitest'
import type { WorldOptions } from './cluster.ts'
import { createWorld } from './cluster.ts'
import { RESOURCE, conditionOf } from './objects.ts'
import { requestReboot } from './reboot.ts'
import type { KubeObject } from './store.ts'

const MINUTE = 60_000
const world = (options: Partial<WorldOptions> = {}) => createWorld({ seed: 21, controlPlanes: 3, workers: 3, ...options })
type World = ReturnType<typeof world>
const pass = (w: World, ms: number) => w.schedule.advanceTo(w.schedule.now() + ms)
/** Event by event, for an hour at most. */
const stepUntil = (w: World, condition: () => boolean) => {
  const until = w.schedule.now() + 60 * MINUTE
  while (!condition()) if (!w.schedule.step(until)) throw new Error('it never came to that')
}
const pods = (w: World, app: string) => w.store.list(RESOURCE.pods).items.filter(pod => pod.metadata.labels?.app === app)
const nodeOf = (pod: KubeObject | undefined) => (pod?.spec as { nodeName?: string } | undefined)?.nodeName
const nodeInfo = (w: World, name: string) =>
  (w.store.get(RESOURCE.nodes, '', name)?.status as { nodeInfo: Record<string, string> } | undefined)?.nodeInfo
const ready = (w: World, name: string) => conditionOf(w.store.get(RESOURCE.nodes, '', name), 'Ready')?.status
const evict = (w: World, pod: { metadata: { namespace?: string; name: string; uid: string } } | undefined) => {
  if (!pod) throw new Error('no pod')
  return w.evict(pod.metadata.namespace ?? '', pod.metadata.name, pod.metadata.uid)
}

describe('Nodes', () => {
  it('stay Ready for 40 to 50 seconds after their machine vanished', () => {
    const w = world()
    w.powerOff('wk-1')
    pass(w, 39_000)
    expect(ready(w, 'wk-1')).toBe('True')
    pass(w, 12_000)
    expect(ready(w, 'wk-1')).toBe('Unknown')
    expect(ready(w, 'wk-2')).toBe('True')
  })

  it('say the old boot id until the kubelet runs again, though Talos already says the new one', () => {
    const w = world()
    const machine = w.machine('wk-1')
    const old = machine.bootID
    expect(nodeInfo(w, 'wk-1')).toMatchObject({
      bootID: old,
      systemUUID: machine.uuid,
      osImage: 'Talos (v1.13.5)',
      kubeletVersion: 'v1.36.2',
    })
    requestReboot(w.site, machine, 'default')
    stepUntil(w, () => machine.bootID !== old && machine.apid)
    expect(nodeInfo(w, 'wk-1')?.bootID).toBe(old)
    pass(w, 2 * MINUTE)
    expect(nodeInfo(w, 'wk-1')?.bootID).toBe(machine.bootID)
    expect(ready(w, 'wk-1')).toBe('True')
  })

  it('keep the cordon of a person over a reboot', () => {
    const w = world()
    w.userCordon('wk-1')
    requestReboot(w.site, w.machine('wk-1'), 'default')
    pass(w, 10 * MINUTE)
    expect(w.isUp(w.machine('wk-1'))).toBe(true)
    expect(w.nodes.isSchedulable('wk-1')).toBe(false)
    w.userUncordon('wk-1')
    expect(w.nodes.isSchedulable('wk-1')).toBe(true)
  })

  it('that were deleted come back with the next start of the kubelet, without a cordon', () => {
    const w = world()
    w.userCordon('wk-1')
    w.userDeleteNode('wk-1')
    pass(w, MINUTE)
    expect(w.store.list(RESOURCE.pods).items.filter(pod => nodeOf(pod) === 'wk-1')).toEqual([])
    requestReboot(w.site, w.machine('wk-1'), 'default')
    pass(w, 10 * MINUTE)
    expect(ready(w, 'wk-1')).toBe('True')
    expect(w.nodes.isSchedulable('wk-1')).toBe(true)
  })

  it('of a machine that is only cut off come back with the network, on the same boot', () => {
    const w = world()
    const { bootID } = w.machine('wk-1')
    w.blackHole('wk-1', true)
    pass(w, MINUTE)
    expect(ready(w, 'wk-1')).toBe('Unknown')
    w.blackHole('wk-1', false)
    pass(w, MINUTE)
    expect(ready(w, 'wk-1')).toBe('True')
    expect(w.machine('wk-1').bootID).toBe(bootID)
  })

  it('of a single control plane: the API is away while it reboots, and nobody is called missing meanwhile', () => {
    const w = world({ controlPlanes: 1 })
    requestReboot(w.site, w.machine('cp-1'), 'default')
    pass(w, 40_000)
    expect(w.api.available()).toBe(false)
    pass(w, 10 * MINUTE)
    expect(w.api.available()).toBe(true)
    expect(w.away()).toEqual([])
    expect(w.journal.of('node').some(e => e.detail === 'Unknown')).toBe(false)
  })
})

describe('pods', () => {
  it('that are evicted end within their grace and are made anew on another node', () => {
    const w = world({ workloads: [{ name: 'web', graceSeconds: 20, on: [3] }] })
    const before = pods(w, 'web')
    expect(before.map(nodeOf)).toEqual(['wk-1'])
    w.userCordon('wk-1')
    expect(evict(w, before[0])).toEqual({ ok: true })
    expect(pods(w, 'web').some(pod => pod.metadata.deletionTimestamp)).toBe(true)
    pass(w, MINUTE)
    const after = pods(w, 'web')
    expect(after).toHaveLength(1)
    expect(after[0]?.metadata.uid).not.toBe(before[0]?.metadata.uid)
    expect(nodeOf(after[0])).not.toBe('wk-1')
    expect(conditionOf(after[0], 'Ready')?.status).toBe('True')
  })

  it('never land on a cordoned node, and wait when there is no other', () => {
    const w = world({ workers: 1, workloads: [{ name: 'web', on: [3] }] })
    w.userCordon('wk-1')
    evict(w, pods(w, 'web')[0])
    pass(w, 2 * MINUTE)
    expect(pods(w, 'web').map(nodeOf)).toEqual([undefined])
    w.userUncordon('wk-1')
    pass(w, MINUTE)
    expect(pods(w, 'web').map(nodeOf)).toEqual(['wk-1'])
  })

  it('land on a cordoned node all the same where they tolerate that', () => {
    const tolerations = [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }]
    const w = world({ workers: 2, workloads: [{ name: 'operator', replicas: 2, graceSeconds: 1, tolerations, on: [3, 4] }] })
    w.userCordon('wk-1')
    const [first] = pods(w, 'operator').filter(pod => nodeOf(pod) === 'wk-1')
    evict(w, first)
    pass(w, MINUTE)
    const [next] = pods(w, 'operator').filter(pod => nodeOf(pod) === 'wk-1')
    expect(next?.metadata.uid).not.toBe(first?.metadata.uid)
    expect(conditionOf(next, 'Ready')?.status).toBe('True')
  })

  it('without an owner are gone for good; those of DaemonSets come back on their node, cordon or not', () => {
    const w = world({ workloads: [{ name: 'bare', bare: true, on: [3] }] })
    w.userCordon('wk-1')
    evict(w, pods(w, 'bare')[0])
    evict(
      w,
      w.store.list(RESOURCE.pods).items.find(pod => nodeOf(pod) === 'wk-1' && pod.metadata.labels?.['k8s-app'] === 'kube-proxy'),
    )
    pass(w, 2 * MINUTE)
    expect(pods(w, 'bare')).toEqual([])
    const proxies = w.store
      .list(RESOURCE.pods)
      .items.filter(pod => nodeOf(pod) === 'wk-1' && pod.metadata.labels?.['k8s-app'] === 'kube-proxy')
    expect(proxies.map(pod => conditionOf(pod, 'Ready')?.status)).toEqual(['True'])
  })

  it('on a machine that is away go on terminating until it is back', () => {
    const w = world({ workloads: [{ name: 'bare', bare: true, on: [3] }] })
    w.powerOff('wk-1')
    pass(w, 2 * MINUTE)
    evict(w, pods(w, 'bare')[0])
    pass(w, 10 * MINUTE)
    expect(pods(w, 'bare')).toHaveLength(1)
    w.powerOn('wk-1')
    pass(w, 10 * MINUTE)
    expect(pods(w, 'bare')).toEqual([])
  })

  it('release their volume a while after they are gone', () => {
    const w = world({ workloads: [{ name: 'db', volume: true, on: [3] }] })
    const attached = () => w.store.list(RESOURCE.attachments).items.map(a => (a.spec as { nodeName: string }).nodeName)
    expect(attached()).toEqual(['wk-1'])
    w.userCordon('wk-1')
    evict(w, pods(w, 'db')[0])
    stepUntil(w, () => w.journal.of('pod-gone').length > 0)
    expect(attached()).toContain('wk-1')
    pass(w, MINUTE)
    expect(attached()).not.toContain('wk-1')
    expect(attached()).toHaveLength(1)
  })
})

describe('PodDisruptionBudgets', () => {
  const status = (w: World, name: string) => w.store.get(RESOURCE.budgets, 'default', name)?.status

  it('are counted, and let one pod go at a time', () => {
    const w = world({ workloads: [{ name: 'web', replicas: 3, budget: { minAvailable: 2 } }] })
    expect(status(w, 'web')).toMatchObject({ expectedPods: 3, desiredHealthy: 2, currentHealthy: 3, disruptionsAllowed: 1 })
    const [first, second] = pods(w, 'web')
    expect(evict(w, first)).toEqual({ ok: true })
    expect(evict(w, second)).toEqual({
      ok: false,
      code: 429,
      reason: 'TooManyRequests',
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      budget: 'web',
      cause: 'The disruption budget web needs 2 healthy pods and has 2 currently',
    })
    pass(w, 2 * MINUTE)
    expect(status(w, 'web')).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1 })
    expect(evict(w, second)).toEqual({ ok: true })
  })

  it('of a single replica never let it go', () => {
    const w = world({ workloads: [{ name: 'web', budget: { minAvailable: 1 } }] })
    for (let i = 0; i < 10; i++) {
      expect(evict(w, pods(w, 'web')[0])).toMatchObject({ code: 429 })
      pass(w, MINUTE)
    }
    expect(pods(w, 'web')).toHaveLength(1)
  })

  it('count in percent, round up, and follow the readiness of nodes', () => {
    const w = world({ workloads: [{ name: 'web', replicas: 3, budget: { minAvailable: '50%' } }] })
    expect(status(w, 'web')).toMatchObject({ desiredHealthy: 2, disruptionsAllowed: 1 })
    w.powerOff('wk-2')
    pass(w, 2 * MINUTE)
    expect(status(w, 'web')).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 0 })
  })

  it('can be closed by a scenario', () => {
    const w = world({ workloads: [{ name: 'web', replicas: 3, budget: { maxUnavailable: 1 } }] })
    w.faults.closedBudgets.add('default/web')
    expect(evict(w, pods(w, 'web')[0])).toMatchObject({ code: 429 })
    w.faults.closedBudgets.clear()
    expect(evict(w, pods(w, 'web')[0])).toEqual({ ok: true })
  })

  it('two over one pod are an error of the server', () => {
    const w = world({ workloads: [{ name: 'web', budget: { maxUnavailable: 1 } }] })
    w.store.create(RESOURCE.budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'other', namespace: 'default' },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } },
    })
    expect(evict(w, pods(w, 'web')[0])).toMatchObject({ code: 500, message: expect.stringContaining('more than one PodDisruptionBudget') })
  })

  it('an eviction is about this very pod', () => {
    const w = world({ workloads: [{ name: 'bare', bare: true }] })
    expect(w.evict('default', 'bare', 'another-uid')).toMatchObject({ code: 409 })
    expect(w.evict('default', 'nobody')).toMatchObject({ code: 404 })
  })
})
