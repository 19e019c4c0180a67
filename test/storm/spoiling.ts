import type { Draft, Plan, Strike } from '../../src/storm/plan.ts'
import type { Workload } from '../../src/world/population.ts'
import type { Setting } from '../../src/storm/setting.ts'

type Spoiling = {
  readonly file: string
  /** Has to be in the file exactly once. */
  readonly find: string
  readonly replace: string
}

/** One line of the source spoiled, and who finds it out. */
export type Sabotage = Spoiling & {
  readonly name: string
  /** Where a second line of defence stands behind the first, it is spoiled too. */
  readonly also?: readonly Spoiling[]
  readonly caughtBy: string
  /** Another checker would find it first, and looks away. */
  readonly isAlone?: true
  /** What happens meanwhile; nothing where absent. */
  readonly strikes?: readonly Strike[]
  readonly replicas?: number
  readonly controlPlanes?: number
  readonly talos?: string
  /** What is asked for; an upgrade of Talos where absent. */
  readonly spec?: Draft['spec']
  readonly isPlanned?: boolean
  readonly setting?: Setting
  /** Besides a web server and a database. */
  readonly workloads?: readonly Workload[]
}

const UPGRADE: Draft['spec'] = { kind: 'talos', talos: { version: 'v1.13.9' } }

/** The run in which it is found: with 3+2 machines, where it does not want fewer. */
export const planOf = ({
  strikes = [],
  replicas = 1,
  controlPlanes = 3,
  talos = 'v1.13.5',
  spec = UPGRADE,
  isPlanned = false,
  setting,
  workloads = [],
}: Sabotage): Plan => ({
  seed: 1,
  kind: spec.kind,
  shape: {
    ...{ controlPlanes, workers: 2, talos, kubernetes: 'v1.36.2', haste: 8, homeOutside: true, replicas },
    workloads: [
      { name: 'web', replicas: 2, graceSeconds: 10, on: [controlPlanes, controlPlanes + 1] },
      { name: 'db', volume: true, graceSeconds: 10, on: [controlPlanes] },
      ...workloads,
    ],
    ...(setting ? { setting } : {}),
  },
  operations: [{ name: 'op', spec }],
  strikes,
  horizonMs: 600_000,
  resumes: false,
  isPlanned,
})
