/** The waits that are ours to choose, in milliseconds. `pace` divides them; it is 1 except in demonstrations and tests on fast machines. */
export type Timing = {
  /** Between two looks at a machine that is on its way. */
  readonly pollMs: number
  /** Between two looks at something that changes slowly, or that a watch tells us about anyway. */
  readonly idleMs: number
  /** etcd must pass its gate for so long, in sight, before the next machine is touched: longer than one health period (20 s) of Talos. */
  readonly etcdStableMs: number
  /** Two samples of etcd's lag before a disruptive call. */
  readonly etcdSampleMs: number
  /** How long a reboot call may take to show before it is taken for lost: longer than any stop of pods shows a sign of life. */
  readonly rebootSettleMs: number
}

export const timing = (pace = 1): Timing => ({
  pollMs: 2_000 / pace,
  idleMs: 15_000 / pace,
  etcdStableMs: 20_000 / pace,
  etcdSampleMs: 2_000 / pace,
  rebootSettleMs: 300_000 / pace,
})
