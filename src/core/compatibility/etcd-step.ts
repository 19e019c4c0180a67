import semver from 'semver'
import { parseVersion, semverOf } from '../versions.ts'
import type { CompatibilityTable, Finding } from './table.ts'
import { compatibilityTable, talosMinor, talosRelease } from './table.ts'

export type EtcdStep = {
  /** What the control planes run now. */
  readonly fromTalos: string
  readonly toTalos: string
  /** etcd versions of the running members; where none is known, what `fromTalos` brings counts. */
  readonly runningEtcd: readonly string[]
}

export type EtcdStepVerdict = {
  /** The etcd that the target brings by default: a version, or a line (`3.6.x`) where the release is not in the table. */
  readonly targetEtcd: string | undefined
  /** Members will run two minors for a while, and only until the last one is upgraded can a control plane go back. */
  readonly crossesMinor: boolean
  readonly findings: readonly Finding[]
}

/**
 * Judges what a Talos upgrade does to etcd. Every running member counts: one that is too old is enough to stop all. An etcd image pinned in
 * the machine configuration is not seen here; it shows as a running version.
 */
export const etcdStep = (step: EtcdStep, table: CompatibilityTable = compatibilityTable): EtcdStepVerdict => {
  const { line, target, running } = endsOf(step, table)
  const targetEtcd = target ?? (line === undefined ? undefined : `${line}.x`)
  const pair = 'etcd step' as const
  if (targetEtcd === undefined || running.length === 0) {
    const reason = `What going from Talos ${step.fromTalos} to ${step.toTalos} does to etcd is not known to the table.`
    return { targetEtcd, crossesMinor: false, findings: [{ id: 'etcd-step', verdict: 'untested', pair, reason, sources: [] }] }
  }
  // Of a release that the table does not know, its line alone decides: rows end at minors.
  const reached = target ?? `${line}.0`
  const findings = table.etcdSteps.flatMap((row): readonly Finding[] => {
    const members = [...new Set(running)].filter(version => {
      const parsed = parseVersion(version)
      return parsed === undefined || semver.satisfies(semverOf(parsed), row.from, { includePrerelease: true })
    })
    if (members.length === 0 || !semver.satisfies(reached, row.to, { includePrerelease: true })) return []
    const unseen = row.unseen === undefined ? [] : [`Ichor cannot see ${row.unseen}.`]
    const reason = [
      `etcd ${members.join(', ')} to ${targetEtcd}:`,
      row.reason,
      ...unseen,
      ...(row.advice === undefined ? [] : [row.advice]),
    ].join(' ')
    return [{ id: row.id, verdict: row.verdict, pair, reason, sources: row.sources }]
  })
  return { targetEtcd, crossesMinor: isMinorCrossed(running, reached), findings }
}

/** Whether members will run two minors for a while; false where the table does not tell. */
export const crossesMinor = (step: EtcdStep, table: CompatibilityTable = compatibilityTable): boolean => {
  const { line, target, running } = endsOf(step, table)
  const reached = target ?? line
  return reached !== undefined && isMinorCrossed(running, reached)
}

const isMinorCrossed = (running: readonly string[], reached: string): boolean =>
  running.some(version => etcdMinor(version) !== etcdMinor(reached))

const endsOf = ({ fromTalos, toTalos, runningEtcd }: EtcdStep, table: CompatibilityTable) => {
  const to = parseVersion(toTalos)
  const known = runningEtcd.filter(version => version !== '')
  return {
    line: to && talosMinor(to, table)?.etcdLine,
    target: talosRelease(toTalos, table)?.etcd,
    running: known.length > 0 ? known : [talosRelease(fromTalos, table)?.etcd].filter(v => v !== undefined),
  }
}

/** `3.6` of `3.6.12`. */
export const etcdMinor = (version: string): string => version.replace(/^v/, '').split('.').slice(0, 2).join('.')
