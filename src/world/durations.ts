import type { Random } from './random.ts'

/** A range in milliseconds. */
export type Range = readonly [lo: number, hi: number]

const s = (lo: number, hi: number): Range => [lo * 1000, hi * 1000]

/**
 * How long things take. Each is drawn anew from its range every time, so that no two machines are alike and no order of events can be relied
 * upon. Ranges follow what was measured on real machines or what Talos and Kubernetes set as their limits.
 */
export const DURATIONS = {
  /** Stopping kubelet and pod sandboxes at the begin of a reboot. */
  stopPods: s(3, 20),
  /** One of the short tasks of a sequence. */
  task: [50, 400],
  /** Services that go down in an orderly way. */
  stopServices: s(1, 5),
  /** From the last word of the Talos API to its first one after the boot. */
  reboot: s(40, 90),
  /** From the first word of the Talos API until services are started. */
  bootTasks: s(2, 8),
  etcdStart: s(2, 12),
  kubeletStart: s(3, 12),
  /** From all services up to stage RUNNING. */
  finishBoot: s(2, 5),
  /** After stage RUNNING until the kubelet reports static pods. */
  staticPods: s(10, 25),
  /** From the end of a kube-apiserver until another process runs. */
  startApiServer: s(12, 33),
  /** From that until it answers. */
  serveApiServer: s(4, 10),
  /** The same of the controller manager and the scheduler. */
  startComponent: s(3, 12),
  /** From kubelet's start until it has written the Node. */
  registerNode: s(3, 25),
  /** From that until the Node is Ready, where it was not. */
  nodeReady: s(1, 15),
  /** The node monitor's grace, counted from the last sign of life. */
  nodeMonitorGrace: s(40, 50),
  pull: s(5, 30),
  install: s(20, 60),
  validateInstaller: s(5, 20),
  /** From losing a leader to having one. */
  election: [800, 2500],
  transferLeadership: [100, 800],
  /** From a learner's start until it has caught up and is made a voter. */
  etcdPromotion: s(45, 60),
  etcdDefrag: [200, 2000],
  /** When etcd's health is probed next. */
  etcdProbe: s(1, 20),
  /** When a probe fails it takes its own time-out. */
  etcdProbeTimeout: s(15, 15),
  /** Scheduling, pulling and starting a pod. */
  startPod: s(2, 15),
  /** What a pod without any grace still takes. */
  killPod: s(1, 3),
  detachVolume: s(2, 15),
  /** A controller's reaction to a change. */
  react: [20, 400],
  /** From a watch event at the server to its reader. */
  watchDelay: [1, 80],
  /** A change of the machine configuration without a reboot. */
  applyConfig: [200, 1500],
  /** A machine that is switched on, until its Talos API answers. */
  powerOn: s(40, 120),
} as const satisfies Record<string, Range>

export type DurationName = keyof typeof DURATIONS
export type Durations = {
  /** Milliseconds, drawn and scaled. */
  readonly draw: (name: DurationName) => number
  /** A fixed time of the real thing, scaled. */
  readonly fixed: (ms: number) => number
}

/** @param options.scale Divides every duration: 10 makes the world ten times as fast. */
export const createDurations = (
  random: Random,
  options: { readonly overrides?: Partial<Record<DurationName, Range>>; readonly scale?: number } = {},
): Durations => {
  const scale = options.scale ?? 1
  return {
    draw: name => {
      const [lo, hi] = options.overrides?.[name] ?? DURATIONS[name]
      return Math.max(1, Math.round(random.between(lo, hi) / scale))
    },
    fixed: ms => Math.max(1, Math.round(ms / scale)),
  }
}
