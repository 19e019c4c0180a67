import type { Plan, Strike } from './plan.ts'
import type { Setting } from './setting.ts'

/** Whether a plan still shows what is looked for. */
type Shows = (plan: Plan) => Promise<boolean>

const withStrikes = (plan: Plan, strikes: readonly Strike[]): Plan => ({ ...plan, strikes })

const settingOf = ({ marks, image, bloated, ownPod, ...others }: Setting, controlPlanes: number, count: number): Setting => ({
  ...others,
  ...(ownPod !== undefined && ownPod < count ? { ownPod } : {}),
  ...(marks ? { marks: marks.map(m => ({ ...m, machine: m.machine % count })) } : {}),
  ...(image ? { image: { ...image, machine: image.machine % count } } : {}),
  ...(bloated === undefined ? {} : { bloated: bloated % controlPlanes }),
})

const withoutSetting = (plan: Plan): Plan => {
  const { setting: _setting, ...shape } = plan.shape
  return { ...plan, shape }
}

/** On fewer machines a strike falls on one that is left. */
const withMachines = (plan: Plan, controlPlanes: number, workers: number): Plan => {
  const count = controlPlanes + workers
  const { setting, ...rest } = plan.shape
  const shape = { ...rest, controlPlanes, workers, ...(setting ? { setting: settingOf(setting, controlPlanes, count) } : {}) }
  return { ...plan, shape, strikes: plan.strikes.map(s => (s.machine === undefined ? s : { ...s, machine: s.machine % count })) }
}

/** The same with less, one thing at a time, the biggest first. */
const smaller = (plan: Plan): readonly Plan[] => {
  const { shape, strikes } = plan
  const half = Math.ceil(strikes.length / 2)
  return [
    ...(strikes.length > 2 ? [withStrikes(plan, strikes.slice(0, half)), withStrikes(plan, strikes.slice(half))] : []),
    ...(shape.setting ? [withoutSetting(plan)] : []),
    ...(plan.isPlanned ? [{ ...plan, isPlanned: false }] : []),
    ...(plan.considered?.length ? [{ ...plan, considered: [] }] : []),
    ...strikes.map((_, i) =>
      withStrikes(
        plan,
        strikes.filter((_s, j) => j !== i),
      ),
    ),
    ...(shape.controlPlanes > 3 ? [withMachines(plan, 3, shape.workers)] : []),
    ...(shape.controlPlanes > 1 ? [withMachines(plan, 1, Math.max(1, shape.workers))] : []),
    ...(shape.workers > 1 ? [withMachines(plan, shape.controlPlanes, 1)] : []),
    ...(shape.workers > 0 ? [withMachines(plan, shape.controlPlanes, shape.workers - 1)] : []),
    ...(shape.replicas > 1 ? [{ ...plan, shape: { ...shape, replicas: shape.replicas - 1 } }] : []),
    ...(shape.workloads.length > 0 ? [{ ...plan, shape: { ...shape, workloads: [] } }] : []),
  ]
}

/** The smallest plan that still shows it, as far as taking away one thing at a time leads. Plays at most `budget` plans. */
export const shrinkPlan = async (plan: Plan, shows: Shows, budget = 80): Promise<Plan> => {
  let best = plan
  let left = budget
  for (;;) {
    let found: Plan | undefined
    for (const candidate of smaller(best)) {
      if (left-- <= 0) return best
      if (!(await shows(candidate))) continue
      found = candidate
      break
    }
    if (!found) return best
    best = found
  }
}
