import { afterEach, expect, test } from 'vitest'
import { createWorld } from '../../world/cluster.ts'
import { setConfig } from '../../world/configuration.ts'
import { endKubelet, beginKubelet } from '../../world/kubelet.ts'
import { kubernetesKinds } from './kubernetes-kinds.ts'
import type { StaticPodReports } from './static-pod-reports.ts'
import { createStaticPodReports } from './static-pod-reports.ts'

let reports: StaticPodReports
afterEach(() => reports.close())

const kind = kubernetesKinds.find(({ display }) => display === 'StaticPodStatus')!

/** A control plane, the milliseconds that pass, and what Talos says of kube-apiserver: whether it is Ready, empty where it knows of no such condition. */
const start = () => {
  const world = createWorld({ seed: 7, controlPlanes: 3, workers: 1 })
  reports = createStaticPodReports(world.site, () => {})
  const machine = world.machine('cp-1')
  const statusOf = (component: string): string | undefined => {
    const drawn = kind
      .draw(world.site, machine, { authorities: undefined, staticPods: reports })
      .find(({ id }) => id === `kube-system/${component}-cp-1`)
    return drawn && (/status: "(\w+)"\n\s+type: Ready/.exec(drawn.yaml)?.[1] ?? '')
  }
  return { world, machine, statusOf, pass: (ms: number) => world.schedule.advanceTo(world.schedule.now() + ms) }
}

const seen = (pass: (ms: number) => void, look: () => string | undefined, forMs: number): (string | undefined)[] => {
  const all = [look()]
  for (let ms = 0; ms < forMs; ms += 500) {
    pass(500)
    const now = look()
    if (now !== all.at(-1)) all.push(now)
  }
  return all
}

test('a restart of a static pod is noticed late, and told as a pod of which nothing is known', () => {
  const { world, machine, statusOf, pass } = start()
  setConfig(world.site, machine, machine.config.replace(/( {4}apiServer:\n)/, '$1        extraArgs:\n            audit-log-maxage: "7"\n'))
  const isRunning = () => machine.pods.get('kube-apiserver')?.isRunning
  while (isRunning()) pass(100)
  expect(statusOf('kube-apiserver')).toBe('True')
  pass(15_000)
  expect([isRunning(), statusOf('kube-apiserver'), statusOf('kube-scheduler')]).toEqual([false, '', 'True'])
  while (!isRunning()) pass(100)
  expect(statusOf('kube-apiserver')).toBe('')
  pass(15_000)
  expect(statusOf('kube-apiserver')).toBe('True')
})

test('an image that does not exist is a pod that is not Ready', () => {
  const { world, machine, statusOf, pass } = start()
  setConfig(world.site, machine, machine.config.replace(/(kube-scheduler:)v[\d.]+/, '$1nosuch'))
  expect(seen(pass, () => statusOf('kube-scheduler'), 60_000)).toContain('False')
  expect(statusOf('kube-scheduler')).toBe('False')
})

test('without its kubelet a machine has none, and gets them some time after it is back', () => {
  const { world, machine, statusOf, pass } = start()
  endKubelet(world.site, machine)
  expect(statusOf('kube-apiserver')).toBeUndefined()
  beginKubelet(world.site, machine)
  while (!machine.kubelet) pass(100)
  expect(seen(pass, () => statusOf('kube-apiserver'), 30_000)).toEqual([undefined, 'True'])
})
