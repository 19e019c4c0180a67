import { describe, expect, it } from 'vitest'
import type { WorldOptions } from './cluster.ts'
import { createWorld } from './cluster.ts'
import { setConfig } from './configuration.ts'
import { stopStaticPods } from './down.ts'
import { beginKubelet, endKubelet } from './kubelet.ts'
import { conditionOf } from './objects.ts'

const world = (options: Partial<WorldOptions> = {}) => createWorld({ seed: 7, controlPlanes: 3, workers: 1, ...options })
type World = ReturnType<typeof world>
const pass = (w: World, ms: number) => w.schedule.advanceTo(w.schedule.now() + ms)
const shadow = (w: World, name: string) => w.store.get('pods', 'kube-system', name)
const configure = (w: World, name: string, edit: (text: string) => string) => {
  const machine = w.machine(name)
  setConfig(w.site, machine, edit(machine.config))
}
const withFlag = (text: string, flag = 'audit-log-maxage'): string =>
  text.replace(/( {4}apiServer:\n)/, `$1        extraArgs:\n            ${flag}: "7"\n`)
const stateOf = (w: World, name: string) =>
  (shadow(w, name)?.status as { containerStatuses?: { state: { waiting?: { reason: string } } }[] } | undefined)?.containerStatuses?.[0]
    ?.state

describe('static pods', () => {
  it('have shadows with the versions that they were rendered from', () => {
    const w = world()
    const { annotations, labels } = shadow(w, 'kube-apiserver-cp-1')?.metadata ?? {}
    expect(annotations).toMatchObject({
      'kubernetes.io/config.source': 'http',
      'talos.dev/config-version': '1',
      'talos.dev/secrets-version': '1',
      'talos.dev/config-file-version': '1111',
    })
    expect(annotations?.['kubernetes.io/config.hash']).toMatch(/^[0-9a-f]{32}$/)
    expect(labels).toMatchObject({ 'k8s-app': 'kube-apiserver', tier: 'control-plane' })
    expect(shadow(w, 'kube-scheduler-cp-1')?.metadata.annotations).not.toHaveProperty('talos.dev/config-file-version')
  })

  it('another flag ends the process within the kubelet’s interval; the old shadow stays Ready until the new process runs', () => {
    const w = world()
    const before = shadow(w, 'kube-apiserver-cp-1')
    const others = ['kube-scheduler-cp-1', 'kube-apiserver-cp-2'].map(name => shadow(w, name)?.metadata.uid)
    configure(w, 'cp-1', withFlag)
    expect(w.machine('cp-1').pods.get('kube-apiserver')?.isRunning).toBe(true)
    pass(w, 20_000)
    expect(w.machine('cp-1').pods.get('kube-apiserver')?.isRunning).toBe(false)
    expect(shadow(w, 'kube-apiserver-cp-1')?.metadata.uid).toBe(before?.metadata.uid)
    expect(conditionOf(shadow(w, 'kube-apiserver-cp-1'), 'Ready')?.status).toBe('True')
    pass(w, 45_000)
    const after = shadow(w, 'kube-apiserver-cp-1')
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid)
    expect(after?.metadata.annotations?.['talos.dev/config-version']).toBe('2')
    expect(after?.metadata.annotations?.['kubernetes.io/config.hash']).not.toBe(before?.metadata.annotations?.['kubernetes.io/config.hash'])
    expect(conditionOf(after, 'Ready')?.status).toBe('True')
    expect(['kube-scheduler-cp-1', 'kube-apiserver-cp-2'].map(name => shadow(w, name)?.metadata.uid)).toEqual(others)
  })

  it('of the only control plane take the Kubernetes API away while they restart', () => {
    const w = world({ controlPlanes: 1 })
    configure(w, 'cp-1', withFlag)
    pass(w, 20_000)
    expect(w.api.available()).toBe(false)
    pass(w, 45_000)
    expect(w.api.available()).toBe(true)
  })

  it('that ended for want of etcd run again with a kubelet that starts after etcd is well', () => {
    const w = world({ controlPlanes: 1 })
    const cp1 = w.machine('cp-1')
    endKubelet(w.site, cp1)
    stopStaticPods(w.site, cp1)
    pass(w, 60_000)
    expect(w.api.available()).toBe(false)
    beginKubelet(w.site, cp1)
    pass(w, 60_000)
    expect(w.api.available()).toBe(true)
  })

  it('another image is another version', () => {
    const w = world()
    configure(w, 'cp-2', text => text.replace('kube-apiserver:v1.36.2', 'kube-apiserver:v1.36.3'))
    pass(w, 70_000)
    expect(shadow(w, 'kube-apiserver-cp-2')?.spec).toMatchObject({ containers: [{ image: 'registry.k8s.io/kube-apiserver:v1.36.3' }] })
    expect(shadow(w, 'kube-apiserver-cp-2')?.metadata.labels?.['app.kubernetes.io/version']).toBe('1.36.3')
  })

  it('an image that nobody has leaves a pod that waits for it; with the image it starts, and so it does with the old one', () => {
    const w = world()
    w.registry.remove('kube-apiserver:v1.36.3')
    for (const name of ['cp-1', 'cp-2']) configure(w, name, text => text.replace('kube-apiserver:v1.36.2', 'kube-apiserver:v1.36.3'))
    const reasons = new Set<string | undefined>()
    for (let second = 0; second < 120; second++) {
      pass(w, 1000)
      reasons.add(stateOf(w, 'kube-apiserver-cp-1')?.waiting?.reason)
    }
    expect([...reasons]).toEqual([undefined, 'ErrImagePull', 'ImagePullBackOff'])
    expect(conditionOf(shadow(w, 'kube-apiserver-cp-1'), 'Ready')?.status).toBe('False')
    expect(shadow(w, 'kube-apiserver-cp-1')?.status).toMatchObject({ phase: 'Pending' })
    pass(w, 600_000)
    expect(stateOf(w, 'kube-apiserver-cp-1')?.waiting?.reason).toMatch(/^(ErrImagePull|ImagePullBackOff)$/)
    configure(w, 'cp-2', text => text.replace('kube-apiserver:v1.36.3', 'kube-apiserver:v1.36.2'))
    w.registry.restore('kube-apiserver:v1.36.3')
    pass(w, 100_000)
    for (const name of ['kube-apiserver-cp-1', 'kube-apiserver-cp-2']) expect(conditionOf(shadow(w, name), 'Ready')?.status).toBe('True')
    expect(shadow(w, 'kube-apiserver-cp-2')?.spec).toMatchObject({ containers: [{ image: 'registry.k8s.io/kube-apiserver:v1.36.2' }] })
  })

  it('a flag that Talos keeps for itself stops every rendering of that machine, until it is gone', () => {
    const w = world()
    const uids = () => ['kube-apiserver-cp-1', 'kube-scheduler-cp-1'].map(name => shadow(w, name)?.metadata.uid)
    const before = uids()
    configure(w, 'cp-1', text => withFlag(text, 'etcd-servers'))
    configure(w, 'cp-1', text => `${text}    scheduler:\n        extraArgs:\n            v: "4"\n`)
    pass(w, 120_000)
    expect(uids()).toEqual(before)
    expect(w.unmet(w.machine('cp-1'))).toEqual([])
    configure(w, 'cp-1', text => text.replace(/ {8}extraArgs:\n {12}etcd-servers.*\n/, ''))
    pass(w, 120_000)
    expect(uids()[0]).toBe(before[0])
    expect(uids()[1]).not.toBe(before[1])
  })

  it('other keys begin all of a machine anew', () => {
    const w = world()
    configure(w, 'cp-3', text => `${text}    secretboxEncryptionSecret: xyz\n`)
    pass(w, 70_000)
    for (const name of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'])
      expect(shadow(w, `${name}-cp-3`)?.metadata.annotations?.['talos.dev/secrets-version']).toBe('2')
  })

  it('one that is switched off goes', () => {
    const w = world()
    configure(w, 'cp-1', text =>
      text.replace('cluster:\n', '    controlPlane:\n        scheduler:\n            disabled: true\ncluster:\n'),
    )
    pass(w, 30_000)
    expect(shadow(w, 'kube-scheduler-cp-1')).toBeUndefined()
    expect(shadow(w, 'kube-scheduler-cp-2')).toBeDefined()
  })
})

describe('the kubelet', () => {
  const toImage = (text: string) => text.replace('kubelet:v1.36.2', 'kubelet:v1.36.3')
  const versionOn = (w: World, name: string) =>
    (w.store.get('nodes', '', name)?.status as { nodeInfo: { kubeletVersion: string } } | undefined)?.nodeInfo.kubeletVersion

  it('restarts with another image; pods go on, the Node stays Ready and then tells the new version', () => {
    const w = world({ workloads: [{ name: 'web' }] })
    const pods = () => w.store.list('pods', 'default').items.map(({ metadata }) => metadata.uid)
    const before = pods()
    configure(w, 'wk-1', toImage)
    expect(w.machine('wk-1').services.get('kubelet')?.state).toBe('Preparing')
    expect(versionOn(w, 'wk-1')).toBe('v1.36.2')
    for (let second = 0; second < 45; second++) {
      pass(w, 1000)
      expect(w.nodes.isReady('wk-1')).toBe(true)
    }
    expect(versionOn(w, 'wk-1')).toBe('v1.36.3')
    expect(w.machine('wk-1').services.get('kubelet')?.health).toBe('healthy')
    expect(pods()).toEqual(before)
  })

  it('is not touched by a configuration that says nothing new of it', () => {
    const w = world()
    configure(w, 'wk-1', text => text.replace('debug: false', 'debug: true'))
    expect(w.machine('wk-1').services.get('kubelet')?.state).toBe('Running')
  })

  it('fails without its image, and the Node falls silent; the old image mends it', () => {
    const w = world()
    w.registry.remove('kubelet:v1.36.3')
    configure(w, 'wk-1', toImage)
    pass(w, 120_000)
    const service = w.machine('wk-1').services.get('kubelet')
    expect(service?.state).toBe('Failed')
    expect(service?.events.at(-1)?.message).toContain('kubelet:v1.36.3: not found')
    expect(w.nodes.isReady('wk-1')).toBe(false)
    expect(w.unmet(w.machine('wk-1'))).toContain('services: kubelet not running')
    configure(w, 'wk-1', text => text.replace('kubelet:v1.36.3', 'kubelet:v1.36.2'))
    pass(w, 60_000)
    expect(w.isUp(w.machine('wk-1'))).toBe(true)
    expect(versionOn(w, 'wk-1')).toBe('v1.36.2')
  })

  it('of a control plane fetches static pods as soon as it runs again', () => {
    const w = world({ durations: { kubeletStart: [1000, 1000] } })
    configure(w, 'cp-1', text => withFlag(toImage(text)))
    pass(w, 1500)
    expect(w.machine('cp-1').pods.get('kube-apiserver')?.isRunning).toBe(false)
  })
})
