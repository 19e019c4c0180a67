import { holderText } from '../../core/summary.ts'
import type { Plan } from '../../engine/plan.ts'
import { alignedLines } from './table.ts'
import type { Colors } from './terminal.ts'

/** Whether the operation would be refused as it is. */
export const isRefused = (plan: Plan, override: boolean): boolean => plan.refusals.some(refusal => !isPassed(refusal, override))

/** `title`: what would be done, as a command says it. */
export const planLines = (plan: Plan, title: string, { colors, override }: { colors: Colors; override: boolean }): string[] => {
  const { bold, dim, red, yellow } = colors
  const open = plan.refusals.filter(refusal => !isPassed(refusal, override))
  const touched = plan.order.filter(machine => machine.skip === undefined)
  const lines = [
    bold(
      `Plan: ${title} on cluster ${plan.cluster}, ${namesOf(touched)} of ${namesOf(plan.order)} machine${namesOf(plan.order) === 1 ? '' : 's'}`,
    ),
  ]

  const found = [
    ['Talos', rangeText(plan.found.talos)],
    ['Kubernetes', rangeText(plan.found.kubernetes)],
    ['etcd', rangeText(plan.found.etcd)],
    ['Cilium', plan.found.cilium],
  ].filter(([, text]) => text)
  if (found.length > 0) lines.push(`Found: ${found.map(pair => pair.join(' ')).join(', ')}`)

  if (plan.refusals.length > 0) lines.push('')
  for (const refusal of plan.refusals) {
    const passed = isPassed(refusal, override)
    lines.push((passed ? yellow : red)(`${passed ? 'Passed' : 'Refused'}: ${refusalText(refusal, override)}`))
  }

  // A refused plan ends there: a machine of which nothing is known adds nothing to that.
  const shown = open.length > 0 ? plan.order.filter(({ from, skip }) => skip !== undefined || from !== UNKNOWN) : plan.order
  if (plan.order.length > 0 && touched.length > 0 && touched.every(({ from }) => from === UNKNOWN))
    lines.push('', `Machines: ${plan.order.map(({ name }) => name).join(', ')}; what would change on them is not known.`)
  else if (shown.length > 0) {
    let turn = 0
    const images = [...new Set(touched.map(machine => machine.to).filter(to => to.includes('/')))]
    // A machine that comes in several stages is told apart by them.
    const hasStages = new Set(shown.map(machine => machine.stage)).size > 1
    const rows = shown.map(({ stage, name, role, from, to, skip, loses }) => [
      skip === undefined ? String(++turn) : '-',
      ...(hasStages ? [stage] : []),
      name,
      role,
      from,
      skip === undefined ? tagOf(to) : '',
      skip !== undefined
        ? `skipped: ${skip}`
        : from === UNKNOWN
          ? 'not known'
          : loses.map(loss => loss.replace(/\.$/, '')).join('; ') || 'nothing else',
    ])
    const [header = '', ...body] = alignedLines(
      ['#', ...(hasStages ? ['STAGE'] : []), 'MACHINE', 'ROLE', 'FROM', 'TO', 'GOES AWAY MEANWHILE'],
      rows,
    )
    lines.push('', header, ...body.map((line, index) => (shown[index]?.skip === undefined ? line : dim(line))))
    if (images.length > 0) lines.push('', ...images.map(image => `${image.includes('installer') ? 'Installer image' : 'Image'}: ${image}`))
  }
  for (const { names, diff } of diffsOf(touched)) lines.push('', bold(`What changes on ${names.join(', ')}:`), ...diffLines(diff, colors))
  if (plan.notes.length > 0) lines.push('', ...plan.notes.map(note => `Note: ${note}`))
  if (plan.holder) lines.push('', yellow(open.length > 0 ? `${heldText(plan)}.` : lockLine(plan)))

  lines.push('')
  if (open.length === 0 && isIdle(plan)) return [...lines, 'There is nothing to do. Nothing was written.']
  lines.push(open.length > 0 ? red(`It would be refused. Nothing was written.`) : 'No check refuses it. Nothing was written.')
  return lines
}

/** The same on several machines is shown once. */
const diffsOf = (order: Plan['order']): readonly { readonly names: readonly string[]; readonly diff: string }[] =>
  [...new Set(order.flatMap(({ diff }) => diff ?? []))].map(diff => ({
    diff,
    names: order.filter(one => one.diff === diff).map(({ name }) => name),
  }))

const diffLines = (diff: string, { dim, green, red }: Colors): readonly string[] =>
  diff
    .trimEnd()
    .split('\n')
    .map(line => {
      if (/^(?:---|\+\+\+|@@) /.test(line)) return dim(line)
      return line.startsWith('+') ? green(line) : line.startsWith('-') ? red(line) : line
    })

/** How many they are: a machine may come in several stages. */
const namesOf = (order: Plan['order']): number => new Set(order.map(({ name }) => name)).size

/** For a plan with a `holder`, that is not refused. */
export const lockLine = (plan: Plan): string => `${heldText(plan)}; it will wait and start by itself.`

const heldText = ({ cluster, holder = '' }: Plan): string => `The lock of cluster ${cluster} is held by ${holderText(holder)}`

/** The refusals that stand, a line each. */
export const refusalTexts = (plan: Plan, override: boolean): string[] =>
  plan.refusals.filter(refusal => !isPassed(refusal, override)).map(refusal => refusalText(refusal, override))

/** The message names the machine where the rule is about one. */
const refusalText = (refusal: Plan['refusals'][number], override: boolean): string => {
  const how = isPassed(refusal, override) ? ' (overridden)' : refusal.overridable ? ' (--override passes it)' : ''
  return `${refusal.rule}: ${refusal.message}${how}`
}

/** What a plan says of a machine that did not answer. */
const UNKNOWN = 'unknown'

/** Rules about what can be reached from here; the controller may stand better. */
const FROM_HERE = new Set(['MachineUnreachable', 'KubernetesUnreachable', 'HealthGateUnreadable'])

/** Whether the refusals may be due to the place where the plan was made. */
export const mayDifferElsewhere = (plan: Plan): boolean => plan.refusals.every(({ rule }) => FROM_HERE.has(rule))

/** Whether there is no machine that it would touch. */
export const isIdle = (plan: Plan): boolean => plan.order.every(machine => machine.skip !== undefined)

/** The tag of an image: the whole is too long for a table, and mostly the same in all rows. */
const tagOf = (image: string): string => (image.includes('/') && !image.includes('@') ? image.slice(image.lastIndexOf(':') + 1) : image)

const isPassed = (refusal: Plan['refusals'][number], override: boolean): boolean => override && refusal.overridable

const rangeText = (range: Plan['found']['talos']): string | undefined =>
  range && (range.lowest === range.highest ? range.lowest : `${range.lowest} to ${range.highest}`)
