import semver from 'semver'
import { finalOf, minorOf, parseVersion, semverOf, type Version } from '../versions.ts'
import type { CiliumMinor, CiliumValue, CompatibilityTable, Condition, FaultRow, Finding, Pair, TalosMinor, When } from './table.ts'
import { compatibilityTable, inMinors, latestPatch, talosMinor } from './table.ts'

export type Combination = {
  /** With or without `v`. */
  readonly talos: string
  readonly kubernetes: string
  /** Absent where Cilium does not run. `config` is the ConfigMap cilium-config; undefined where it cannot be read. */
  readonly cilium?: { readonly version: string; readonly config: Readonly<Record<string, string>> | undefined }
  /** As a Node names it (`6.18.44-talos`), or what the target release brings; undefined where unknown: then the kernel line of the Talos minor counts. */
  readonly kernel: string | undefined
  /** Cilium itself is being installed or changed: also asks what a running Cilium has already proved. */
  readonly ciliumChanges?: boolean
}

/**
 * Judges one state of a cluster. Known-bad beats supported, which beats nothing: a pair without any row is untested. Judge every state that a
 * plan passes through, not only its end.
 */
export const verdict = (state: Combination, table: CompatibilityTable = compatibilityTable): readonly Finding[] => {
  const talos = parseVersion(state.talos)
  const kubernetes = parseVersion(state.kubernetes)
  const cilium = state.cilium === undefined ? undefined : parseVersion(state.cilium.version)
  const findings = [talosWithKubernetes(state, talos, kubernetes, table)]
  if (state.cilium !== undefined) {
    const minor = cilium && table.ciliumMinors.find(m => m.minor === minorOf(cilium))
    const line = talos && talosMinor(talos, table)?.kernelLine
    findings.push(ciliumWithKubernetes(state, minor, kubernetes), ...ciliumWithKernel(state, minor, line))
    findings.push(...table.faults.flatMap(row => faultOf(row, state, { talos, kubernetes, cilium, line }, table)))
  }
  return knownBadFirst(findings)
}

/** A supported pair is not mentioned where the same pair is also known to be bad. */
const knownBadFirst = (findings: readonly Finding[]): readonly Finding[] => {
  const bad = new Set(findings.filter(f => f.verdict === 'known-bad').map(f => f.pair))
  return findings.filter(f => f.verdict !== 'supported' || !bad.has(f.pair))
}

const talosWithKubernetes = (
  state: Combination,
  talos: Version | undefined,
  kubernetes: Version | undefined,
  table: CompatibilityTable,
): Finding => {
  const pair: Pair = 'Talos × Kubernetes'
  const row = talos && talosMinor(talos, table)
  const found = `Kubernetes ${state.kubernetes} on Talos ${state.talos}`
  if (row === undefined || kubernetes === undefined) {
    const known = `${table.talosMinors[0]?.minor} to ${table.talosMinors.at(-1)?.minor}`
    return { id: 'talos-kubernetes', verdict: 'untested', pair, reason: `${found}: the table knows Talos ${known} only.`, sources: [] }
  }
  const id = `talos-${row.minor}-kubernetes`
  const bounds = `Talos ${row.minor} accepts Kubernetes ${row.kubernetes.from} to ${row.kubernetes.to}`
  if (!inMinors(kubernetes, row.kubernetes)) return { id, verdict: 'known-bad', pair, reason: `${found}: ${bounds}.`, sources: row.sources }
  if (!inMinors(kubernetes, row.kubernetesListed)) {
    const listed = `its support matrix lists ${row.kubernetesListed.from} to ${row.kubernetesListed.to} only`
    return { id, verdict: 'untested', pair, reason: `${found}: ${bounds}, but ${listed}.`, sources: row.sources }
  }
  return { id, verdict: 'supported', pair, reason: `${bounds}.`, sources: row.sources }
}

const ciliumWithKubernetes = (state: Combination, row: CiliumMinor | undefined, kubernetes: Version | undefined): Finding => {
  const pair: Pair = 'Cilium × Kubernetes'
  const found = `Cilium ${state.cilium?.version} with Kubernetes ${state.kubernetes}`
  if (row === undefined)
    return { id: 'cilium-kubernetes', verdict: 'untested', pair, reason: `${found}: the table does not know this Cilium.`, sources: [] }
  const id = `cilium-${row.minor}-kubernetes`
  const { from, to } = row.kubernetes
  const listed = `Cilium ${row.minor} lists Kubernetes ${from === to ? from : `${from} to ${to}`}${row.note === undefined ? '' : ` (${row.note})`}`
  const supported = kubernetes !== undefined && inMinors(kubernetes, row.kubernetes)
  return {
    id,
    verdict: supported ? 'supported' : 'untested',
    pair,
    reason: supported ? `${listed}.` : `${found}: ${listed}.`,
    sources: row.sources,
  }
}

const ciliumWithKernel = (state: Combination, row: CiliumMinor | undefined, line: string | undefined): readonly Finding[] => {
  if (row === undefined) return []
  const pair: Pair = 'Cilium × kernel'
  const enough = kernelIn(`>=${row.kernel}`, state.kernel, line)
  const reason = `Cilium ${row.minor} needs kernel ${row.kernel} or newer; found ${state.kernel ?? (line === undefined ? 'none' : `${line}.x`)}.`
  return [
    {
      id: `cilium-${row.minor}-kernel`,
      verdict: enough === undefined ? 'untested' : enough ? 'supported' : 'known-bad',
      pair,
      reason,
      sources: row.sources,
    },
  ]
}

/** Whether the kernel lies in a range; by its line where only that is known, undefined where not even that. */
const kernelIn = (range: string, kernel: string | undefined, line: string | undefined): boolean | undefined => {
  // A Node's kernel carries the builder's tail (6.18.44-talos), which is no pre-release.
  const numbers = semver.coerce(kernel)
  if (numbers) return semver.satisfies(numbers, range)
  return line === undefined ? undefined : semver.intersects(range, `${line}.x`)
}

type Parts = {
  readonly talos: Version | undefined
  readonly kubernetes: Version | undefined
  readonly cilium: Version | undefined
  readonly line: string | undefined
}

const faultOf = (row: FaultRow, state: Combination, parts: Parts, table: CompatibilityTable): readonly Finding[] => {
  if (row.concerns === 'cilium-change' && state.ciliumChanges !== true) return []
  const { match } = row
  // What cannot be read counts as matching: better one refusal too many, which an operator can pass, than a cluster without network.
  const matches =
    within(match.talos, parts.talos) &&
    within(match.kubernetes, parts.kubernetes) &&
    within(match.cilium, parts.cilium) &&
    (match.kernel === undefined || (kernelIn(match.kernel, state.kernel, parts.line) ?? true)) &&
    (match.kernelText === undefined || kernelNamed(match.kernelText, state.kernel, parts.line))
  if (!matches || !holds(row.when, state.cilium?.config, table.ciliumValues)) return []
  const pair: Pair = match.kernel !== undefined || match.kernelText !== undefined ? 'Cilium × kernel' : 'Cilium × Talos'
  return [
    {
      id: row.id,
      verdict: row.verdict,
      pair,
      reason: [row.reason, ...unread(row.when, state.cilium?.config), ...(row.advice === undefined ? [] : [row.advice])].join(' '),
      ...(row.fixedIn === undefined ? {} : { fixedIn: row.fixedIn }),
      sources: row.sources,
    },
  ]
}

/** Pre-releases are compared as such: some faults came and went between two of them. */
const within = (range: string | undefined, version: Version | undefined): boolean =>
  range === undefined || version === undefined || semver.satisfies(semverOf(version), range, { includePrerelease: true })

/** A release of Talos that the table does not know still has Talos' own kernel. */
const kernelNamed = (pattern: string, kernel: string | undefined, line: string | undefined): boolean => {
  const name = kernel ?? (line === undefined ? undefined : `${line}.0-talos`)
  return name === undefined || new RegExp(pattern).test(name)
}

const holds = (when: When | undefined, config: Readonly<Record<string, string>> | undefined, values: readonly CiliumValue[]): boolean =>
  (when?.all ?? []).every(c => isTrue(c, config, values)) && (when?.any === undefined || when.any.some(c => isTrue(c, config, values)))

const isTrue = (condition: Condition, config: Readonly<Record<string, string>> | undefined, values: readonly CiliumValue[]): boolean => {
  if ('unseen' in condition || config === undefined) return true
  // One that the table does not tell how to read counts as matching, too.
  return values
    .filter(v => v.helm === condition.value)
    .every(value => {
      const found = value.config.map(key => config[key]).filter(v => v !== undefined)
      const read = (found.length === 0 ? [value.default] : found).map(v => (value.alsoTrue?.includes(v) ? 'true' : v))
      return 'is' in condition ? read.includes(condition.is) : !read.includes(condition.isNot)
    })
}

const unread = (when: When | undefined, config: Readonly<Record<string, string>> | undefined): readonly string[] => {
  const conditions = [...(when?.all ?? []), ...(when?.any ?? [])]
  const unseen = conditions.flatMap(c => ('unseen' in c ? [c.unseen] : []))
  const values = config === undefined ? conditions.flatMap(c => ('value' in c ? [c.value] : [])) : []
  return [
    ...(unseen.length === 0 ? [] : [`Ichor cannot see ${unseen.join(' and ')}.`]),
    ...(values.length === 0 ? [] : [`cilium-config could not be read, so it is assumed to matter here (${values.join(', ')}).`]),
  ]
}

/**
 * Judges a change of the Talos version: Talos' own bounds on the running version, and the minors in between. Only adjacent minors are tested
 * by Talos.
 */
export const talosStep = (from: string, to: string, table: CompatibilityTable = compatibilityTable): readonly Finding[] => {
  const pair: Pair = 'Talos step'
  const [a, b] = [parseVersion(from), parseVersion(to)]
  const row: TalosMinor | undefined = b && talosMinor(b, table)
  if (a === undefined || b === undefined || row === undefined) {
    return [
      {
        id: 'talos-step',
        verdict: 'untested',
        pair,
        reason: `From Talos ${from} to ${to}: the table does not know Talos ${to}.`,
        sources: [],
      },
    ]
  }
  const id = `talos-${row.minor}-hosts`
  const finding = (verdict: Finding['verdict'], reason: string): readonly Finding[] => [{ id, verdict, pair, reason, sources: row.sources }]
  const way = legalWay(a, b, table)
  if (semver.lt(finalOf(a), row.hosts.from))
    return finding('known-bad', `Talos ${from} is too old to be upgraded to ${to}, which takes v${row.hosts.from} and newer.${way}`)
  if (!semver.lt(finalOf(a), row.hosts.below))
    return finding('known-bad', `Talos ${from} is too new to be brought to ${to}, which takes versions below v${row.hosts.below}.`)
  // What the target takes is of its own major.
  if (Math.abs(b.minor - a.minor) > 1)
    return finding('untested', `From Talos ${from} to ${to} a minor is skipped; only adjacent minors are tested.${way}`)
  return finding('supported', `Talos ${row.minor} takes versions from v${row.hosts.from} on.`)
}

/** The latest patch of each minor on the way, as Talos documents it. */
const legalWay = (from: Version, to: Version, table: CompatibilityTable): string => {
  const steps: string[] = []
  for (let minor = from.minor; minor < to.minor; minor += 1) {
    const patch = latestPatch(`${to.major}.${minor}`, table)
    if (patch !== undefined && patch !== `v${finalOf(from)}`) steps.push(patch)
  }
  return steps.length === 0 ? '' : ` Go by ${[...steps, `v${finalOf(to)}`].join(', then ')}.`
}
