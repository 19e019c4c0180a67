import type { Role } from '../../api/talos-machine.ts'
import { holderText } from '../../core/summary.ts'
import { alignedLines } from './table.ts'
import type { Colors } from './terminal.ts'

/** What an operation would do, from the same checks and the same order as the run. */
export type Plan = {
  readonly cluster: string
  readonly kind: string
  readonly found: {
    readonly talos?: VersionRange
    readonly kubernetes?: VersionRange
    readonly etcd?: VersionRange
    readonly cilium?: string
  }
  readonly refusals: readonly PlanRefusal[]
  readonly notes: readonly string[]
  readonly order: readonly PlannedMachine[]
  /** Who holds the cluster lock now. */
  readonly holder?: string
}

type VersionRange = { readonly lowest: string; readonly highest: string }
type PlanRefusal = {
  readonly rule: string
  readonly message: string
  readonly machine?: string
  readonly overridable: boolean
  readonly overridden?: boolean
}
type PlannedMachine = {
  readonly name: string
  readonly role: Role
  readonly node?: string
  readonly from: { readonly version: string; readonly schematic: string }
  readonly to: { readonly version: string; readonly schematic: string; readonly image: string }
  readonly action: 'upgrade' | 'skip'
  /** Why it is skipped. */
  readonly why?: string
  /** What goes away or moves while the machine is away. */
  readonly loses: readonly string[]
}

/** Whether the operation would be refused as it is. */
export const isRefused = (plan: Plan, override: boolean): boolean => plan.refusals.some(refusal => !isPassed(refusal, override))

export const planLines = (plan: Plan, { colors, override }: { colors: Colors; override: boolean }): string[] => {
  const { bold, dim, red, yellow } = colors
  const touched = plan.order.filter(machine => machine.action === 'upgrade')
  const lines = [
    bold(
      `Plan: ${plan.kind} on cluster ${plan.cluster}, ${touched.length} of ${plan.order.length} machine${plan.order.length === 1 ? '' : 's'}`,
    ),
  ]

  const found = [
    ['Talos', rangeText(plan.found.talos)],
    ['Kubernetes', rangeText(plan.found.kubernetes)],
    ['etcd', rangeText(plan.found.etcd)],
    ['Cilium', plan.found.cilium],
  ].filter(([, text]) => text)
  if (found.length > 0) lines.push(`Found: ${found.map(pair => pair.join(' ')).join(', ')}`)

  if (plan.order.length > 0) {
    const rows = plan.order.map((machine, index) => [
      machine.action === 'skip' ? '-' : String(index + 1),
      machine.name,
      machine.role,
      machineText(machine.from),
      machine.action === 'skip' ? '' : machineText(machine.to),
      machine.action === 'skip' ? `skipped${machine.why ? `: ${machine.why}` : ''}` : machine.loses.join('; ') || 'nothing else',
    ])
    const [header = '', ...body] = alignedLines(['#', 'MACHINE', 'ROLE', 'FROM', 'TO', 'GOES AWAY MEANWHILE'], rows)
    lines.push('', header, ...body.map((line, index) => (plan.order[index]?.action === 'skip' ? dim(line) : line)))
    const images = [...new Set(touched.map(machine => machine.to.image))]
    if (images.length > 0)
      lines.push(
        '',
        images.length === 1 ? `Installer image: ${images[0]}` : 'Installer images:',
        ...(images.length > 1 ? images.map(image => `  ${image}`) : []),
      )
  }
  if (plan.notes.length > 0) lines.push('', ...plan.notes.map(note => `Note: ${note}`))
  if (plan.holder)
    lines.push('', yellow(`The lock of cluster ${plan.cluster} is held by ${holderText(plan.holder)}: the operation would wait for it.`))

  lines.push('')
  const open = plan.refusals.filter(refusal => !isPassed(refusal, override))
  for (const refusal of plan.refusals) {
    const passed = isPassed(refusal, override)
    const how = passed ? ' (overridden)' : refusal.overridable ? ' (--override passes it)' : ''
    lines.push(
      (passed ? yellow : red)(
        `${passed ? 'Passed' : 'Refused'}: ${refusal.rule}${refusal.machine ? ` on ${refusal.machine}` : ''}: ${refusal.message}${how}`,
      ),
    )
  }
  lines.push(open.length > 0 ? red(`It would be refused. Nothing was written.`) : 'No check refuses it. Nothing was written.')
  return lines
}

const isPassed = (refusal: PlanRefusal, override: boolean): boolean => refusal.overridden === true || (override && refusal.overridable)

const rangeText = (range: VersionRange | undefined): string | undefined =>
  range && (range.lowest === range.highest ? range.lowest : `${range.lowest} to ${range.highest}`)

/** A schematic by its first digits, as git does it. */
const machineText = ({ version, schematic }: { version: string; schematic: string }): string =>
  schematic ? `${version} (${schematic.slice(0, 8)})` : version
