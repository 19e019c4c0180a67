import { digest, withoutDigest } from './images.ts'
import { RESOURCE, change } from './objects.ts'
import type { Component, KubernetesConfig } from './kubernetes-config.ts'
import { COMPONENTS, kubernetesConfigOf } from './kubernetes-config.ts'
import type { Machine } from './machine.ts'
import type { Site } from './site.ts'
import { later } from './site.ts'
import { unknownOption } from './unknown-options.ts'

/** What of a static pod Talos rendered: another one is another pod. */
export type Rendering = {
  readonly image: string
  readonly rendered: string
  /** Versions of what it was rendered from. All begin anew with each boot. */
  readonly configVersion: number
  readonly secretsVersion: number
  /** One number for each file. */
  readonly fileVersions: readonly number[]
}

/** One static pod, as its kubelet runs it. */
export type StaticPod = Rendering & {
  /** Its process runs. */
  readonly isRunning: boolean
  /** Its process does what it is for. The kubelet does not look for that at kube-apiserver, which is Ready before it answers. */
  readonly isServing: boolean
  /** Since when, milliseconds since 1970. */
  readonly startedAt: number
  /** How often its process ended and was begun again. */
  readonly restarts: number
  /** Why there is no process, in the kubelet's words, once it knows. */
  readonly waiting: { readonly reason: string; readonly message: string } | undefined
}

/** What Talos would render, whether or not the kubelet has fetched it yet. */
type Wanted = { readonly config: KubernetesConfig; readonly renderings: ReadonlyMap<Component, Rendering> }

const wanted = new WeakMap<Machine, Wanted>()

/** What Talos has for the kubelet of this machine, whether or not it has been fetched. */
export const renderingsOf = (machine: Machine): ReadonlyMap<Component, Rendering> =>
  (machine.staticPods ? wanted.get(machine)?.renderings : undefined) ?? new Map<Component, Rendering>()

/** How often a kubelet fetches its static pods from Talos. */
const POLL_MS = 20_000
/** How long it says why a pull failed, before it says that it waits. */
const BACKS_OFF_MS = 10_000
/** How long it then waits before it tries a missing image again. */
const PULL_AGAIN_MS = 10_000

/** The longest that it waits before it begins a process anew that ends again and again. */
const LONGEST_BACK_OFF_MS = 300_000

/** The machine pulled it, or some registry has it. */
export const hasProgram = (site: Site, machine: Machine, image: string): boolean =>
  machine.programs.has(withoutDigest(image)) || site.registry.hasProgram(image)

/** What the process of a static pod writes before it ends at once; undefined where it runs. */
export const lastWordsOf = (site: Site, machine: Machine, name: Component): string | undefined => {
  if (name === 'kube-apiserver' && site.faults.of(machine).apiServerCrashes) return 'panic: runtime error: invalid memory address'
  const image = withoutDigest(machine.pods.get(name)?.image ?? '')
  const config = kubernetesConfigOf(site, machine).components.get(name)
  return [...site.faults.crashing].find(([end]) => image.endsWith(end))?.[1] ?? (config && unknownOption(config))
}

/** kube-apiserver of this machine answers. */
export const isServing = (machine: Machine): boolean => machine.staticPods && machine.pods.get('kube-apiserver')?.isServing === true

/** An API server that serves says so in a Lease of its own. The world's does it once, and does not renew it every ten seconds. */
const sayThatItServes = (site: Site, machine: Machine): void => {
  const name = `apiserver-${digest(machine.name).slice(7, 33)}`
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace: 'kube-system',
      labels: { 'apiserver.kubernetes.io/identity': 'kube-apiserver', 'kubernetes.io/hostname': machine.name },
    },
    spec: {
      holderIdentity: `${name}_${digest(String(site.schedule.now())).slice(7, 15)}`,
      leaseDurationSeconds: 3600,
      renewTime: `${new Date(site.schedule.now()).toISOString().slice(0, -1)}000Z`,
    },
  }
  if (!change(site.store, RESOURCE.leases, 'kube-system', name, now => ({ ...now, spec: lease.spec })))
    site.store.create(RESOURCE.leases, lease)
}

const hashes = new WeakMap<Rendering, string>()

/** The one that a kubelet writes into annotations: the same for the same pod. */
export const hashOf = (pod: Rendering): string => {
  const known = hashes.get(pod)
  if (known !== undefined) return known
  const hash = digest(JSON.stringify([pod.rendered, pod.configVersion, pod.secretsVersion, pod.fileVersions])).slice(7, 39)
  hashes.set(pod, hash)
  return hash
}

/** Its annotations as Talos renders it. */
export const renderedAnnotationsOf = (component: Component, pod: Rendering): Readonly<Record<string, string>> => ({
  ...(component === 'kube-apiserver' ? { 'talos.dev/config-file-version': pod.fileVersions.join('') } : {}),
  'talos.dev/config-version': String(pod.configVersion),
  'talos.dev/secrets-version': String(pod.secretsVersion),
})

/** The annotations of its shadow in the Kubernetes API. */
export const annotationsOf = (component: Component, pod: Rendering): Readonly<Record<string, string>> => {
  const hash = hashOf(pod)
  return {
    'kubernetes.io/config.hash': hash,
    'kubernetes.io/config.mirror': hash,
    'kubernetes.io/config.source': 'http',
    ...renderedAnnotationsOf(component, pod),
  }
}

const first = (config: KubernetesConfig): Wanted => ({
  config,
  renderings: new Map(
    [...config.components].map(([name, { image, rendered }]) => [
      name,
      { image, rendered, configVersion: 1, secretsVersion: 1, fileVersions: config.files.map(() => 1) },
    ]),
  ),
})

/** What is wanted after a change: the versions of what changed grow. */
const next = (before: Wanted, config: KubernetesConfig): Wanted => ({
  config,
  renderings: new Map(
    [...config.components].map(([name, { image, rendered }]) => {
      const old = before.renderings.get(name) ?? first(config).renderings.get(name)
      if (!old) throw new Error(`${name} has no rendering`)
      const files =
        name === 'kube-apiserver'
          ? old.fileVersions.map((n, at) => (config.files[at] === before.config.files[at] ? n : n + 1))
          : old.fileVersions
      return [
        name,
        {
          ...{ image, rendered, fileVersions: files },
          configVersion: old.rendered === rendered ? old.configVersion : old.configVersion + 1,
          secretsVersion: before.config.secrets === config.secrets ? old.secretsVersion : old.secretsVersion + 1,
        },
      ]
    }),
  ),
})

/** All of them run: the machine has booted, or its etcd is well again. */
export const runStaticPods = (site: Site, machine: Machine, startedAt: number): void => {
  const config = kubernetesConfigOf(site, machine)
  const known = wanted.get(machine)
  const now = known && machine.pods.size > 0 ? known : first(config)
  wanted.set(machine, now)
  machine.staticPods = true
  site.faults.of(machine).apiServerCrashes = false
  for (const [name, rendering] of now.renderings)
    machine.pods.set(name, { ...rendering, isRunning: true, isServing: true, startedAt, restarts: 0, waiting: undefined })
  sayThatItServes(site, machine)
}

const set = (site: Site, machine: Machine, name: Component, pod: StaticPod): void => {
  machine.pods.set(name, pod)
  site.tell(machine, 'static-pods')
}

/** Waits for the image, then for the process. Gives up when another rendering came. */
const startPod = (site: Site, machine: Machine, name: Component, rendering: Rendering): void => {
  const isCurrent = (): boolean => {
    const pod = machine.pods.get(name)
    return pod !== undefined && hashOf(pod) === hashOf(rendering) && !pod.isRunning
  }
  const { image } = rendering
  later(site, machine, site.durations.draw(name === 'kube-apiserver' ? 'startApiServer' : 'startComponent'), () => {
    if (!isCurrent()) return
    const { restarts = 0 } = machine.pods.get(name) ?? {}
    const wait = (reason: string, message: string): void =>
      set(site, machine, name, { ...rendering, isRunning: false, isServing: false, startedAt: 0, restarts, waiting: { reason, message } })
    if (!hasProgram(site, machine, image)) {
      const why = `failed to pull and unpack image "${image}": failed to resolve reference "${image}": ${image}: not found`
      site.journal.write(machine.name, 'pull-failed', image)
      wait('ErrImagePull', why)
      later(site, machine, site.durations.fixed(BACKS_OFF_MS), () => {
        if (!isCurrent()) return
        wait('ImagePullBackOff', `Back-off pulling image "${image}": ErrImagePull: ${why}`)
        later(site, machine, site.durations.fixed(PULL_AGAIN_MS), () => {
          if (isCurrent()) startPod(site, machine, name, rendering)
        })
      })
      return
    }
    if (lastWordsOf(site, machine, name) !== undefined) {
      const againMs = Math.min(PULL_AGAIN_MS * 2 ** restarts, LONGEST_BACK_OFF_MS)
      site.journal.write(machine.name, 'static-pod-crashed', `${name} ${image}`)
      const message = `back-off ${againMs / 1000}s restarting failed container=${name} pod=${name}-${machine.name}_kube-system`
      set(site, machine, name, {
        ...{ ...rendering, isRunning: false, isServing: false, startedAt: 0, restarts: restarts + 1 },
        waiting: { reason: 'CrashLoopBackOff', message },
      })
      later(site, machine, site.durations.fixed(againMs), () => {
        if (isCurrent()) startPod(site, machine, name, rendering)
      })
      return
    }
    site.journal.write(machine.name, 'static-pod', `${name} ${image}`)
    const isSlow = name === 'kube-apiserver'
    const process = { ...rendering, isRunning: true, isServing: !isSlow, startedAt: site.schedule.now(), restarts, waiting: undefined }
    set(site, machine, name, process)
    if (!isSlow) return
    later(site, machine, site.durations.draw('serveApiServer'), () => {
      if (machine.pods.get(name) !== process) return
      site.journal.write(machine.name, 'api-server')
      set(site, machine, name, { ...process, isServing: true })
      sayThatItServes(site, machine)
    })
  })
}

/** Its process ends, and each that is begun in its place, until that is over. */
export const crashApiServer = (site: Site, machine: Machine): (() => void) => {
  const faults = site.faults.of(machine)
  const pod = machine.pods.get('kube-apiserver')
  if (!machine.staticPods || !pod?.isRunning) return () => {}
  faults.apiServerCrashes = true
  site.journal.write(machine.name, 'static-pod-ended', 'kube-apiserver')
  set(site, machine, 'kube-apiserver', { ...pod, isRunning: false, isServing: false, startedAt: 0, waiting: undefined })
  startPod(site, machine, 'kube-apiserver', pod)
  return () => void (faults.apiServerCrashes = false)
}

/** The same pods, with other processes. */
export const beginStaticPodsAnew = (site: Site, machine: Machine): void => {
  if (!machine.staticPods || !machine.kubelet) return
  const running = [...machine.pods].filter(([, pod]) => pod.isRunning)
  if (running.length > 0) site.journal.write(machine.name, 'static-pods-anew')
  for (const [name, pod] of running) {
    site.journal.write(machine.name, 'static-pod-ended', name)
    set(site, machine, name, { ...pod, isRunning: false, isServing: false, startedAt: 0, restarts: 0, waiting: undefined })
    startPod(site, machine, name, pod)
  }
}

/** The kubelet looks what Talos has for it: what is another pod ends, and begins anew. */
export const fetchStaticPods = (site: Site, machine: Machine): void => {
  const { renderings } = wanted.get(machine) ?? {}
  if (!machine.staticPods || !machine.kubelet || !renderings) return
  for (const name of COMPONENTS) {
    const rendering = renderings.get(name)
    const pod = machine.pods.get(name)
    if (!rendering) {
      if (pod && machine.pods.delete(name)) site.tell(machine, 'static-pods')
      continue
    }
    if (pod && hashOf(pod) === hashOf(rendering)) continue
    site.journal.write(machine.name, 'static-pod-ended', name)
    set(site, machine, name, { ...rendering, isRunning: false, isServing: false, startedAt: 0, restarts: 0, waiting: undefined })
    startPod(site, machine, name, rendering)
  }
}

/**
 * Static pods follow the machine configuration. Talos renders at once; while an argument of any of them is one that it keeps for itself, it renders
 * none. The kubelet notices within its interval.
 */
export const followStaticPods = (site: Site): void => {
  site.listen((machine, change) => {
    if (change === 'kubelet-up') return fetchStaticPods(site, machine)
    const before = wanted.get(machine)
    if (change !== 'config' || !machine.staticPods || !before) return
    const config = kubernetesConfigOf(site, machine)
    const now = next(before, config)
    const denied = [...config.components].flatMap(([name, { denied: arg }]) => (arg === undefined ? [] : [`${name}: ${arg}`]))
    if (denied.length > 0) {
      // Versions grow, but no pod is rendered from them. The rest is seen again when the bad argument is gone.
      site.journal.write(machine.name, 'static-pods-denied', denied.join(', '))
      wanted.set(machine, { config, renderings: before.renderings })
      return
    }
    wanted.set(machine, now)
    const isAnother = COMPONENTS.some(name => {
      const [pod, rendering] = [machine.pods.get(name), now.renderings.get(name)]
      return (pod && hashOf(pod)) !== (rendering && hashOf(rendering))
    })
    if (!isAnother) return
    later(site, machine, site.durations.fixed(site.schedule.random.between(1000, POLL_MS)), () => fetchStaticPods(site, machine))
  })
}
