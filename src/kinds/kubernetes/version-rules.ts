import type { TalosOperation } from '../../api/talos-operation.ts'
import { imageVersion, isPinned, withVersion, imageTitle } from '../../core/component-image.ts'
import { removedOptions } from '../../core/compatibility/removed-options.ts'
import type { Finding } from '../../core/compatibility/table.ts'
import { talosMinor } from '../../core/compatibility/table.ts'
import { told } from '../../core/compatibility/told.ts'
import { verdict } from '../../core/compatibility/verdict.ts'
import type { Refusal } from '../../core/kind.ts'
import type { Known } from '../../core/preflight.ts'
import { overridable, refuse } from '../../core/preflight.ts'
import { minorOf, minorSteps, parseVersion, versionOrder, versionSpan } from '../../core/versions.ts'
import type { Version } from '../../core/versions.ts'
import type { World } from '../../core/world.ts'
import { componentFacts, configurationFacts, controlPlaneFacts, deprecatedApiFacts } from '../../core/world.ts'
import type { NodeFacts } from '../../ports/kube.ts'
import { COMPONENTS, imageIn } from './set-image.ts'
import { specOf } from './view.ts'

/** The versions of everything that was found, and the rules that they have to keep at every moment of the upgrade. */

/** A program as it runs, or as a configuration names it. */
export type Running = { readonly what: string; readonly where: string; readonly version: string }

/** The control plane and kube-proxy, as the API shows them. One node tells nothing of the others, so all are looked at. */
export const runningOf = (world: World): readonly Running[] => {
  const known = controlPlaneFacts(world)
  if (!known.ok) return []
  const { pods, kubeProxy } = known.value
  return [
    ...pods.map(({ component, node, image }) => ({ what: component, where: node, version: imageTitle(image) })),
    ...(kubeProxy ? [{ what: 'kube-proxy', where: 'its DaemonSet', version: imageTitle(kubeProxy.image) }] : []),
  ]
}

export const kubeletsOf = (nodes: readonly NodeFacts[]): readonly Running[] =>
  nodes.filter(n => n.kubeletVersion !== '').map(n => ({ what: 'kubelet', where: n.name, version: n.kubeletVersion }))

/** What is the same for all is told once: `all 16 components (v1.35.4)`, else `kubelet v1.35.4 on wk-1, wk-2; kubelet v1.35.5 on wk-3`. */
const named = (running: readonly Running[], all: readonly Running[], what = 'components'): string => {
  const [first] = running
  if (first && all.length > 2 && running.length === all.length && all.every(r => r.version === first.version))
    return `all ${all.length} ${what} (${first.version})`
  const titles = [...new Set(running.map(titleOf))]
  return titles
    .map(title => {
      const where = running.filter(r => titleOf(r) === title).map(r => r.where)
      return `${title} on ${where.join(', ')}`
    })
    .join('; ')
}

const titleOf = ({ what, version }: Running): string => `${what} ${version}`

/** Kubernetes takes a control plane one minor further at a time, and never back. */
export const path = (running: readonly Running[], kubelets: readonly Running[], target: Version): readonly Refusal[] => {
  const all = [...running, ...kubelets]
  const unknown = all.filter(r => parseVersion(r.version) === undefined)
  const newer = all.filter(r => (versionOrder(r.version, target.text) ?? 0) > 0)
  const newerMinor = newer.filter(r => steps(r, target) < 0)
  const skipped = running.filter(r => steps(r, target) > 1)
  const lowest = versionSpan(skipped.map(r => r.version))?.lowest
  const lowestVersion = lowest === undefined ? undefined : parseVersion(lowest)
  const old = kubelets.filter(r => steps(r, target) > MOST_KUBELET_STEPS)
  return [
    ...(unknown.length > 0 ? [overridable('VersionUnknown', `Of these the version is not known: ${named(unknown, all)}.`)] : []),
    ...(newerMinor.length > 0
      ? [
          refuse(
            'DowngradeRefused',
            `${target.text} is of an older minor than what runs: ${named(newerMinor, all)}. Kubernetes cannot go back a minor: its objects may be stored in a form that the older one does not know.`,
          ),
        ]
      : newer.length > 0
        ? [
            overridable(
              'DowngradeRefused',
              `${target.text} is older than what runs: ${named(newer, all)}. Choose a version that is not older than any.`,
            ),
          ]
        : []),
    ...(lowestVersion
      ? [
          refuse(
            'MinorSkipped',
            `${named(skipped, running, 'components but the kubelets')}: to ${target.text} a minor would be skipped, which Kubernetes does not support. Go to ${lowestVersion.major}.${lowestVersion.minor + 1} first.`,
          ),
        ]
      : []),
    ...(old.length > 0
      ? [
          refuse(
            'KubeletSkew',
            `${named(old, kubelets, 'kubelets')}: API servers of ${minorOf(target)} take kubelets of ${target.major}.${target.minor - MOST_KUBELET_STEPS} and newer. Upgrade these machines to the version that the API servers have now first.`,
          ),
        ]
      : []),
  ]
}

const MOST_KUBELET_STEPS = 3
const steps = (running: Running, target: Version): number => {
  const version = parseVersion(running.version)
  return version ? (minorSteps(version, target) ?? 0) : 0
}

/** What the release of Talos on each machine takes, and what Cilium does. What is as bad already is none of this upgrade's doing. */
export const combinations = (
  operation: TalosOperation,
  world: World,
  known: readonly Known[],
  lowest: string | undefined,
): { readonly refusals: readonly Refusal[]; readonly notes: readonly string[] } => {
  const { version } = specOf(operation)
  const { addons } = world.facts
  const cilium = addons?.ok ? addons.value.cilium : undefined
  const judged = [...new Set(known.map(k => k.facts.version))].flatMap(talos => {
    const judge = (kubernetes: string): readonly Finding[] =>
      verdict({ talos, kubernetes, kernel: undefined, ...(cilium ? { cilium } : {}) })
    const before = new Set((lowest === undefined ? [] : judge(lowest)).map(f => `${f.id} ${f.verdict}`))
    return judge(version)
      .filter(f => !before.has(`${f.id} ${f.verdict}`) || f.pair === 'Talos × Kubernetes')
      .map(finding => ({ finding, talos }))
  })
  const bad = judged.filter(({ finding }) => finding.verdict === 'known-bad' || finding.verdict === 'untested')
  return {
    refusals: bad.map(({ finding, talos }) =>
      finding.pair === 'Talos × Kubernetes'
        ? overridable('TalosSkew', `${told(finding)}${whereRuns(talos, known)}${firstTalos(talos)}`)
        : overridable('CiliumKubernetes', told(finding)),
    ),
    notes: judged.filter(({ finding }) => finding.verdict === 'warning').map(({ finding }) => told(finding)),
  }
}

const whereRuns = (talos: string, known: readonly Known[]): string =>
  ` It runs on ${known
    .filter(k => k.facts.version === talos)
    .map(k => k.name)
    .join(', ')}.`

const firstTalos = (talos: string): string => {
  const parsed = parseVersion(talos)
  const row = parsed && talosMinor(parsed)
  return row
    ? ` Upgrade Talos there first, or choose Kubernetes up to ${row.kubernetesListed.to}.`
    : ' Upgrade Talos there first, to a release that the table knows.'
}

/** The images as each machine is configured with, whose names have to be such that another version can be put into them. */
export const images = (
  world: World,
  known: readonly Known[],
  version: string,
): { readonly refusals: readonly Refusal[]; readonly notes: readonly string[] } => {
  const all = known.flatMap(k => {
    const components = componentFacts(world, k.machine.metadata.name)
    if (!components.ok) return []
    return COMPONENTS.flatMap(component => {
      const image = imageIn(components.value, component)
      return image === undefined ? [] : [{ k, component, image }]
    })
  })
  const unreadable = all.filter(({ image }) => withVersion(image, version) === undefined)
  const pinned = all.filter(({ image }) => isPinned(image) && imageVersion(image) !== version)
  return {
    refusals: unreadable.map(({ k, component, image }) =>
      refuse(
        'ImageUnreadable',
        `${k.name}: the image of ${component} is ${image}, and its tag tells no version that another could take the place of. Write it like registry.k8s.io/${component}:${version} into the machine configuration.`,
        k.machine.metadata.name,
      ),
    ),
    notes:
      pinned.length === 0
        ? []
        : [
            `Images are pinned by a digest, which is that of the old version and goes: ${pinned.map(({ k, component }) => `${component} on ${k.name}`).join(', ')}.`,
          ],
  }
}

/** What a configuration gives to a program that the new version does not know: with it, the program would not start. */
export const options = (
  world: World,
  known: readonly Known[],
  target: Version,
): { readonly refusals: readonly Refusal[]; readonly notes: readonly string[] } => {
  const read = known.map(k => ({ k, configuration: configurationFacts(world, k.machine.metadata.name) }))
  const unread = read.flatMap(({ k, configuration }) => (configuration.ok ? [] : [`${k.name} (${configuration.fault.message})`]))
  return {
    refusals: read.flatMap(({ k, configuration }) => {
      const gone = configuration.ok ? removedOptions(configuration.value.running, target) : []
      const list = gone.map(({ component, option, goneIn }) => `${component} ${option} (gone in ${goneIn})`).join(', ')
      return gone.length === 0
        ? []
        : [
            overridable(
              'RemovedOptions',
              `${k.name}: its configuration gives what ${target.text} does not know, and would not start with: ${list}. Take it out of the machine configuration first.`,
              k.machine.metadata.name,
            ),
          ]
    }),
    notes:
      unread.length === 0
        ? []
        : [`Whether flags and feature gates are given that ${target.text} does not know could not be read: ${unread.join(', ')}.`],
  }
}

/** What somebody still asks for, and the new version does not serve any more. */
export const deprecated = (world: World, target: Version): { readonly refusals: readonly Refusal[]; readonly notes: readonly string[] } => {
  const apis = deprecatedApiFacts(world)
  if (!apis.ok)
    return { refusals: [], notes: [`Whether somebody uses APIs that ${target.text} does not serve is not known: ${apis.fault.message}.`] }
  const gone = apis.value.filter(({ removedIn }) => {
    const [major, minor] = removedIn.split('.').map(Number)
    return major !== undefined && minor !== undefined && (major < target.major || (major === target.major && minor <= target.minor))
  })
  if (gone.length === 0) return { refusals: [], notes: [] }
  const list = gone.map(({ resource, removedIn }) => `${resource} (gone in ${removedIn})`).join(', ')
  return {
    refusals: [
      overridable(
        'DeprecatedApis',
        `Since the API server started somebody asked for APIs that ${target.text} does not serve: ${list}. Find out who with the audit log, and bring them to the newer ones first.`,
      ),
    ],
    notes: [],
  }
}
