import type { Component } from '../../ports/components.ts'
import { minorOf, parseVersion, semverOf, type Version } from '../versions.ts'
import data from './table.json' with { type: 'json' }

/**
 * What is known to work together, as data: a row is added to table.json and to no code. All ranges of rows are semver ranges in which
 * pre-releases count as such; the bounds that Talos itself sets (`talosMinors`) compare three numbers only, as Talos does.
 */
export type CompatibilityTable = {
  readonly schema: 1
  /** The day up to which the sources were read. */
  readonly asOf: string
  readonly talosMinors: readonly TalosMinor[]
  readonly talosReleases: readonly TalosRelease[]
  readonly talosReleasesSources: readonly string[]
  readonly ciliumMinors: readonly CiliumMinor[]
  readonly ciliumValues: readonly CiliumValue[]
  readonly faults: readonly FaultRow[]
  readonly etcdSteps: readonly EtcdStepRow[]
  readonly removedOptions: readonly RemovedOptionsRow[]
}

/** Both ends are minors and belong to the range. */
export type MinorRange = { readonly from: string; readonly to: string }

export type TalosMinor = {
  readonly minor: string
  /** What Talos' own code accepts. */
  readonly kubernetes: MinorRange
  /** What its support matrix lists, which may be less. */
  readonly kubernetesListed: MinorRange
  /** Running versions from which Talos lets itself be upgraded (`from`, inclusive) or downgraded (`below`, exclusive) to this minor. */
  readonly hosts: { readonly from: string; readonly below: string }
  readonly kernelLine: string
  readonly etcdLine: string
  readonly sources: readonly string[]
}

/** One release with what it brings. Kubernetes, etcd, CoreDNS and Flannel are defaults that a machine configuration may override. */
export type TalosRelease = {
  readonly version: string
  readonly date: string
  readonly kernel: string
  readonly etcd: string
  readonly kubernetes: string
  readonly coredns: string
  readonly containerd: string
  readonly flannel: string
}

export type CiliumMinor = {
  readonly minor: string
  /** What Cilium tests and lists. */
  readonly kubernetes: MinorRange
  /** The oldest kernel it takes. */
  readonly kernel: string
  /** First hand: Cilium's own text. Second hand: someone quoting it. */
  readonly grade: 'first hand' | 'second hand'
  readonly note?: string
  readonly sources: readonly string[]
}

/** Which key of the ConfigMap cilium-config stands for which Helm value. */
export type CiliumValue = {
  readonly helm: string
  /** Any of these keys; the name of some changed over time. */
  readonly config: readonly string[]
  /** What an absent key means. */
  readonly default: string
  /** Older spellings of true. */
  readonly alsoTrue?: readonly string[]
  readonly note?: string
}

export type Condition =
  | { readonly value: string; readonly is: string }
  | { readonly value: string; readonly isNot: string }
  /** Cannot be seen from outside, and therefore counts as true; the text begins with "whether". */
  | { readonly unseen: string }

/** All of `all` and, where present, at least one of `any`. */
export type When = { readonly all?: readonly Condition[]; readonly any?: readonly Condition[] }

export type FaultRow = {
  readonly id: string
  /** All that are named have to match. `kernelText` is a regular expression on the kernel's whole name. */
  readonly match: {
    readonly talos?: string
    readonly kubernetes?: string
    readonly cilium?: string
    readonly kernel?: string
    readonly kernelText?: string
  }
  /**
   * known-bad: refused. warning: told and let pass, because the fault is there before and after whatever happens to Talos and Kubernetes, or
   * because what it hangs on cannot be seen and is rare.
   */
  readonly verdict: 'known-bad' | 'warning'
  /** cilium-change: only asked when Cilium itself is installed or changed; a Cilium that runs has proved the opposite. */
  readonly concerns?: 'cilium-change'
  readonly when?: When
  readonly reason: string
  readonly fixedIn?: string
  readonly advice?: string
  readonly sources: readonly string[]
}

/** `from` and `to` are ranges of etcd versions: of any running member, and of what the target Talos brings. */
export type EtcdStepRow = {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly verdict: 'known-bad' | 'warning'
  readonly reason: string
  readonly advice?: string
  readonly unseen?: string
  readonly sources: readonly string[]
}

/**
 * What a minor of Kubernetes does not know any more, and the minor before it did: a program that is given it does not start. Found by comparing the
 * sources of two releases, so nothing is in it that was only announced.
 */
export type RemovedOptionsRow = {
  /** The minor in which they are gone. */
  readonly kubernetes: string
  /** Of all programs. */
  readonly featureGates: readonly string[]
  /** Without dashes, by program. */
  readonly flags: Readonly<Partial<Record<Component, readonly string[]>>>
  /** Of kube-apiserver. */
  readonly admissionPlugins: readonly string[]
  readonly sources: readonly string[]
}

/** The table that this Ichor carries. Its shape is proved by the test beside this file, so that reading it costs nothing at run time. */
export const compatibilityTable = data as unknown as CompatibilityTable

/** What a verdict is about. */
export type Pair = 'Talos × Kubernetes' | 'Talos step' | 'Cilium × Kubernetes' | 'Cilium × kernel' | 'Cilium × Talos' | 'etcd step'

export type Verdict = 'supported' | 'warning' | 'untested' | 'known-bad'

export type Finding = {
  /** The row; stable, so that people can refer to it. */
  readonly id: string
  readonly verdict: Verdict
  readonly pair: Pair
  /** What was found and why it is judged so; whole sentences. */
  readonly reason: string
  readonly fixedIn?: string
  readonly sources: readonly string[]
}

export const talosMinor = (version: Version, table: CompatibilityTable = compatibilityTable): TalosMinor | undefined =>
  table.talosMinors.find(m => m.minor === minorOf(version))

/** The release, as exactly this version; undefined where the table does not know it. */
export const talosRelease = (version: string, table: CompatibilityTable = compatibilityTable): TalosRelease | undefined => {
  const parsed = parseVersion(version)
  return parsed === undefined || parsed.development ? undefined : table.talosReleases.find(r => r.version === semverOf(parsed))
}

/** The kernel of a release as a Node names it (`6.18.44-talos`); undefined where the table does not know the release. */
export const talosKernel = (version: string, table: CompatibilityTable = compatibilityTable): string | undefined => {
  const release = talosRelease(version, table)
  return release === undefined ? undefined : `${release.kernel}-talos`
}

/** The latest release of a minor (`1.13`) that the table knows, with `v`. Pre-releases do not count. */
export const latestPatch = (minor: string, table: CompatibilityTable = compatibilityTable): string | undefined => {
  const patches = table.talosReleases
    .map(r => parseVersion(r.version))
    .filter(v => v !== undefined)
    .filter(v => v.prerelease === '' && minorOf(v) === minor)
    .map(v => v.patch)
  return patches.length === 0 ? undefined : `v${minor}.${Math.max(...patches)}`
}

/** Whether a version lies in a range of minors, by its numbers alone. */
export const inMinors = (version: Version, range: MinorRange): boolean => {
  const [from, to] = [ends(range.from), ends(range.to)]
  const at = version.major * 1000 + version.minor
  return at >= from && at <= to
}

const ends = (minor: string): number => {
  const [major = '0', number = '0'] = minor.split('.')
  return Number(major) * 1000 + Number(number)
}
