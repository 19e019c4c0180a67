import type { Result } from './fault.ts'
import type { LongCall } from './talos.ts'

/** The programs of a control plane that run as static pods. */
export type StaticComponent = 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler'
/** The programs of Kubernetes whose images a machine's configuration names. */
export type Component = StaticComponent | 'kube-proxy' | 'kubelet'

/** Why a container does not run, in the kubelet's words. */
export type Waiting = { readonly reason: string; readonly message: string }

/** A static pod: as the configuration wants it, as Talos renders it, and as the kubelet of its machine told of it last. */
export type StaticPodFacts = {
  /** Of the configuration, Talos' own default where that names none. */
  readonly image: string
  /**
   * What Talos has for the kubelet; absent while it has nothing (its etcd is not well). `configVersion` is that of the pod that the kubelet makes of it:
   * which rendering it is. `isProbed`: it is Ready only when its process has answered a probe, and not from its first moment.
   */
  readonly rendered?: { readonly image: string; readonly configVersion: string; readonly isProbed: boolean }
  /** Told without the API server, and up to a quarter of a minute old; absent where Talos has not asked yet. */
  readonly told?: { readonly ready: boolean; readonly restarts: number; readonly waiting?: Waiting }
}

/** What one machine is told to run of Kubernetes, and what it says of it. */
export type MachineComponents = {
  /** `running` is told by Talos 1.14 and newer only. */
  readonly kubelet: { readonly image: string; readonly running?: string }
  /** Of a control plane; one that is switched off is not in it. */
  readonly staticPods: Readonly<Partial<Record<StaticComponent, StaticPodFacts>>>
  /** The image that its bootstrap manifest of kube-proxy names; absent where kube-proxy is switched off, and on workers. */
  readonly kubeProxy?: string
}

/** A Kubernetes object that Talos brings into the cluster. It may be a Secret. */
export type Manifest = Readonly<Record<string, unknown>>

/** The programs of Kubernetes on one machine. */
export type ComponentCalls = {
  readonly components: (address: string) => Promise<Result<MachineComponents>>
  /** The bootstrap manifests as the configuration of this control plane makes them, inline and extra ones among them, in the order of Talos. */
  readonly manifests: (address: string) => Promise<Result<readonly Manifest[]>>
  /**
   * Sets the image of a component in the live configuration without a reboot; reads it anew first and changes nothing else. Talos follows by
   * itself: it renders the static pod anew, or restarts the kubelet.
   */
  readonly setComponentImage: (address: string, component: Component, image: string) => Promise<Result<void>>
  /** Pulls into the containerd that pods run from; `pull` is for what Talos itself runs, the kubelet among it. */
  readonly pullForPods: (address: string, image: string, call: LongCall) => Promise<Result<string>>
  /** The last lines that a container of a static pod wrote, oldest first; none where there is no such container. */
  readonly lastWords: (address: string, component: StaticComponent) => Promise<Result<readonly string[]>>
}
