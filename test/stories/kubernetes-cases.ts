// Kubernetes is upgraded, component by component, and what comes between.
import { ANNOTATION } from '../../src/api/names.ts'
import { setConfig } from '../../src/world/configuration.ts'
import { ICHOR } from '../../src/world/ports/home.ts'
import type { Case, Run } from '../field-cases/play.ts'
import { rebootByHand, when } from './deeds.ts'

const MINUTE = 60_000
const before = { kubernetes: 'v1.35.4' }
const kubernetes = { version: 'v1.36.2' }

const again = async (run: Run, mend: () => void): Promise<void> => {
  await run.settled()
  mend()
  await run.resume()
  await run.settled()
}

export const hold = ({ world }: Run, name: string): void => {
  const machine = world.store.list(ICHOR.machines).items.find(m => m.metadata.name.startsWith(`${name}-`))
  if (!machine) throw new Error(`no TalosMachine of ${name}`)
  const annotations = { ...machine.metadata.annotations, [ANNOTATION.upgradeHold]: 'its database is moved first' }
  world.store.update(ICHOR.machines, { ...machine, metadata: { ...machine.metadata, annotations } })
}

/** As a cluster behind a mirror is configured, with another variant of the kubelet. */
export const mirrored = ({ world }: Run): void => {
  for (const machine of world.machines) {
    const text = machine.config
      .replaceAll('registry.k8s.io/', 'mirror.example:5000/k8s/')
      .replaceAll(/ghcr\.io\/siderolabs\/kubelet:(\S+)/g, 'mirror.example:5000/talos/kubelet:$1-fat')
    setConfig(world.site, machine, text)
  }
}

export const kubernetesStories: Readonly<Record<string, Case & { readonly title: string }>> = {
  'kubernetes-minor': {
    title: 'To the next minor: all images first, then the control plane component by component, kube-proxy, the kubelets, the manifests.',
    cluster: before,
    spec: { kubernetes },
  },
  'kubernetes-drained': {
    title: 'The same, but the machines are drained before their kubelets go to another minor.',
    cluster: { ...before, workloads: [{ name: 'web', replicas: 2, on: [3] }] },
    spec: { kubernetes: { ...kubernetes, drain: 'minor' } },
  },
  'kubernetes-image-missing': {
    title: 'The registry lacks one image: nothing is changed. It gets it, and a person resumes.',
    cluster: before,
    spec: { kubernetes },
    allowed: { attempts: 2 },
    arrange: ({ world }) => world.registry.remove('kube-scheduler:v1.36.2'),
    drive: run => again(run, () => run.world.registry.restore('kube-scheduler:v1.36.2')),
  },
  'kubernetes-rebooted-by-hand': {
    title: 'A person reboots wk-1 while its images are pulled: they are still there when it is back.',
    cluster: before,
    spec: { kubernetes },
    arrange: run => when(run, 'wk-1', 'pulled', () => rebootByHand(run, 'wk-1')),
  },
  'kubernetes-flag-gone': {
    title:
      'A flag is gone in the new kube-controller-manager: it stops at the first control plane, with its last words. A person mends it and resumes.',
    cluster: before,
    spec: { kubernetes },
    allowed: { attempts: 2 },
    arrange: ({ world }) => void world.site.faults.crashing.set('kube-controller-manager:v1.36.2', 'Error: unknown flag: --cloud-provider'),
    drive: run => again(run, () => run.world.site.faults.crashing.clear()),
  },
  'kubernetes-slow-kubelet': {
    title: "cp-2's kubelet takes nine minutes to start: it is waited for.",
    cluster: before,
    spec: { kubernetes },
    arrange: ({ world }) => world.fault('cp-2', { kubeletStartMs: 9 * MINUTE }),
  },
  'kubernetes-without-proxy': {
    title: 'kube-proxy is switched off on purpose, and stays away.',
    cluster: { ...before, kubeProxy: false },
    spec: { kubernetes },
  },
  'kubernetes-manifest-refused': {
    title: 'The API server does not take one manifest: all the rest is done, and a person makes them agree.',
    cluster: before,
    spec: { kubernetes },
    allowed: { attempts: 2 },
    arrange: ({ world }) =>
      void world.site.faults.refusedManifests.set('ConfigMap kube-system/kubeconfig-in-cluster', 'data: Forbidden: field is immutable'),
    drive: run => again(run, () => run.world.site.faults.refusedManifests.clear()),
  },
  'kubernetes-one-control-plane': {
    title: 'One control plane: the API goes away with its API server, as was accepted.',
    cluster: { ...before, controlPlanes: 1, workers: 1 },
    spec: { kubernetes, acknowledge: ['api-outage'] },
    allowed: { apiOutage: true },
  },
  'kubernetes-worker-held': {
    title: 'wk-1 is held: its kubelet stays, all else goes on.',
    cluster: before,
    spec: { kubernetes },
    allowed: { held: ['wk-1'] },
    arrange: run => hold(run, 'wk-1'),
  },
  'kubernetes-mirror': {
    title: 'Images of a mirror, and the fat variant of the kubelet: only the version changes.',
    cluster: before,
    spec: { kubernetes },
    // All API servers are configured at once before it begins.
    allowed: { apiOutage: true },
    arrange: async run => {
      run.byHand(() => mirrored(run))
      await run.pass(5 * MINUTE)
    },
  },
  'kubernetes-nothing-to-do': {
    title: 'Everything runs that version already.',
    cluster: { kubernetes: 'v1.36.2' },
    spec: { kubernetes },
  },
  'kubernetes-talos-too-old': {
    title: 'The Talos of wk-2 does not know that Kubernetes yet: refused, before anything is touched.',
    cluster: { ...before, talos: index => (index === 4 ? 'v1.12.5' : 'v1.13.5') },
    spec: { kubernetes },
  },
}
