import type { CompatibilityTable, Condition, EtcdStepRow, FaultRow, When } from '../../src/core/compatibility/table.ts'
import type { Files } from './files.ts'
import { code, generatedFrom, page, table } from './markdown.ts'

export const compatibilityPath = 'docs/compatibility.md'

/** The compatibility table for people, with where each row was read. */
export const compatibilityPage = (data: CompatibilityTable): Files =>
  new Map([
    [
      compatibilityPath,
      page(
        generatedFrom('src/core/compatibility/table.json'),
        '# What works together',
        `What Ichor knows of Talos, Kubernetes, Cilium and etcd; its sources were read on ${data.asOf}. The checks of an upgrade read the same table. What is not in it counts as untested, and an untested combination is refused unless ${code('spec.override')} is set.`,
        '## Talos and Kubernetes',
        table(
          [
            'Talos',
            'Kubernetes, as its code accepts',
            'Kubernetes, as its matrix lists',
            'Upgrade from',
            'Downgrade from below',
            'Kernel',
            'etcd',
            'Sources',
          ],
          data.talosMinors.map(row => [
            row.minor,
            range(row.kubernetes),
            range(row.kubernetesListed),
            row.hosts.from,
            row.hosts.below,
            row.kernelLine,
            row.etcdLine,
            sources(row.sources),
          ]),
        ),
        '## Cilium and Kubernetes',
        table(
          ['Cilium', 'Kubernetes', 'Oldest kernel', 'Grade', 'Note', 'Sources'],
          data.ciliumMinors.map(row => [row.minor, range(row.kubernetes), row.kernel, row.grade, row.note ?? '', sources(row.sources)]),
        ),
        '## Known faults',
        table(
          ['Row', 'Verdict', 'Applies to', 'When', 'Reason', 'Fixed in', 'What to do', 'Sources'],
          data.faults.map(row => [
            row.id,
            row.verdict + (row.concerns === 'cilium-change' ? ' (when Cilium changes)' : ''),
            matched(row.match),
            when(row.when),
            row.reason,
            row.fixedIn ?? '',
            row.advice ?? '',
            sources(row.sources),
          ]),
        ),
        '## Steps of etcd',
        table(
          ['Row', 'Verdict', 'From', 'To', 'Reason', 'What to do', 'Sources'],
          data.etcdSteps.map((row: EtcdStepRow) => [
            row.id,
            row.verdict,
            code(row.from),
            code(row.to),
            row.unseen ? `${row.reason} Ichor cannot see ${row.unseen}.` : row.reason,
            row.advice ?? '',
            sources(row.sources),
          ]),
        ),
        '## What Kubernetes does not know any more',
        'Flags, feature gates and admission plugins that a minor knew and the next does not. A program that is given one of them does not start, so an upgrade of Kubernetes is refused while a machine configuration has it.',
        table(
          ['Gone in', 'Feature gates', 'Flags', 'Admission plugins', 'Sources'],
          data.removedOptions.map(row => [
            row.kubernetes,
            row.featureGates.map(code).join(', '),
            Object.entries(row.flags)
              .map(([program, flags]) => `${program}: ${flags.map(flag => code(`--${flag}`)).join(', ')}`)
              .join('; '),
            row.admissionPlugins.map(code).join(', '),
            sources(row.sources),
          ]),
        ),
        '## What each Talos release brings',
        `From ${sources(data.talosReleasesSources)}. Kubernetes, etcd, CoreDNS and Flannel are defaults that a machine configuration may override.`,
        table(
          ['Talos', 'Date', 'Kernel', 'etcd', 'Kubernetes', 'containerd', 'CoreDNS', 'Flannel'],
          data.talosReleases.map(row => [
            row.version,
            row.date,
            row.kernel,
            row.etcd,
            row.kubernetes,
            row.containerd,
            row.coredns,
            row.flannel,
          ]),
        ),
      ),
    ],
  ])

const range = ({ from, to }: { from: string; to: string }): string => `${from} to ${to}`

/** A report, a file at a commit, or another word for where it was read. */
const sources = (all: readonly string[]): string => all.map(source).join(', ')

const source = (text: string): string => {
  if (URL.canParse(text)) return `[${new URL(text).host}](${text})`
  const [, repository, number] = /^([\w.-]+\/[\w.-]+)#(\d+)$/.exec(text) ?? []
  if (repository) return `[${text}](https://github.com/${repository}/issues/${number})`
  const [, home, path, commit] = /^([\w.-]+\/[\w.-]+)(?: (\S+))?@(\S+)$/.exec(text) ?? []
  if (!home || commit?.includes('<')) return code(text)
  return `[${text}](https://github.com/${home}/${path ? 'blob' : 'commit'}/${commit}${path ? `/${path}` : ''})`
}

const matched = (match: FaultRow['match']): string =>
  Object.entries(match)
    .map(([what, versions]) => `${what === 'kernelText' ? 'kernel name' : what} ${code(versions)}`)
    .join(', ')

const when = (conditions: When | undefined): string =>
  [
    ...(conditions?.all ?? []).map(condition),
    ...(conditions?.any && conditions.any.length > 0 ? [conditions.any.map(condition).join(' or ')] : []),
  ].join(' and ')

const condition = (one: Condition): string => {
  if ('unseen' in one) return one.unseen
  return 'is' in one ? `${code(one.value)} is ${code(one.is)}` : `${code(one.value)} is not ${code(one.isNot)}`
}
