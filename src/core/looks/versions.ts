import { verdict } from '../compatibility/verdict.ts'
import { compatibilityTable, talosMinor } from '../compatibility/table.ts'
import { minorOf, parseVersion, versionSpan } from '../versions.ts'
import { nodeOf } from '../world.ts'
import type { ClusterSight } from './cluster-sight.ts'
import { answering, inNamespace, silence } from './cluster-sight.ts'
import { fine, type Finding, type Look, unseenFor, warning, wrong } from './look.ts'

/** Whether what runs is known to Ichor, and known to work together. */
export const versions: Look<ClusterSight> = {
  name: 'versions',
  look: sight => {
    const fault = silence(sight)
    if (fault) return [unseenFor('Talos versions', fault)]
    const { nodes, kubernetes, addons } = sight.world.facts
    const machines = answering(sight)
    const talos = [...new Set(machines.map(({ facts }) => facts.version))]
    const found: Finding[] = talos.flatMap(version => knownTalos(version))
    const server = kubernetes?.ok ? kubernetes.value : undefined
    const kubelets = nodes?.ok ? machines.flatMap(({ facts }) => nodeOf(nodes.value, facts.nodename)?.kubeletVersion || []) : []
    const running = versionSpan([...kubelets, ...(server === undefined ? [] : [server])].filter(version => parseVersion(version)))
    if (kubernetes && !kubernetes.ok) found.push(unseenFor('The version of Kubernetes', kubernetes.fault))
    const cilium = addons?.ok ? addons.value.cilium : undefined
    const reasons = new Set<string>()
    for (const version of talos)
      for (const each of running ? [...new Set([running.lowest, running.highest])] : [])
        for (const { verdict: judged, reason } of verdict({
          talos: version,
          kubernetes: each,
          kernel: undefined,
          ...(cilium ? { cilium } : {}),
        }))
          if (judged === 'known-bad') reasons.add(reason)
    found.push(
      ...[...reasons].map(reason => warning(reason, { remedy: 'Upgrade what is older first; docs/compatibility.md has what fits.' })),
    )
    const span = versionSpan(talos)
    const [low, high] = [span && parseVersion(span.lowest), span && parseVersion(span.highest)]
    if (low && high && minorOf(low) !== minorOf(high) && !isUpgrading(sight))
      found.push(
        warning(`Machines run Talos ${span?.lowest} to ${span?.highest}: an upgrade has not come to its end.`, {
          command: inNamespace(sight, `ichor upgrade talos ${span?.highest} --cluster ${sight.world.cluster.metadata.name} --plan`),
        }),
      )
    if (found.length > 0) return found
    const texts = [
      talos.toSorted().join(', '),
      ...(running ? [`Kubernetes ${[...new Set([running.lowest, running.highest])].join(' to ')}`] : []),
    ]
    return [fine(`Talos ${texts.join(', ')}.`)]
  },
}

/** Then there are two for as long as it takes. */
const isUpgrading = ({ operations }: ClusterSight): boolean =>
  operations.ok && operations.value.some(({ spec, status }) => spec.kind === 'talos' && status.phase === 'Running')

const knownTalos = (text: string): readonly Finding[] => {
  const version = parseVersion(text)
  const minors = compatibilityTable.talosMinors
  const [first, last] = [minors[0]?.minor ?? '', minors.at(-1)?.minor ?? '']
  if (version && talosMinor(version)) return []
  const isOlder = version !== undefined && version.major * 1000 + version.minor < 1000 + Number(first.split('.')[1])
  const message = `Talos ${text} is not one that this Ichor knows (${first} to ${last}).`
  return [
    isOlder
      ? wrong(`${message} It is too old for it.`, { remedy: `Upgrade to ${first} with talosctl first.` })
      : warning(message, { remedy: 'A newer Ichor may know it; this one refuses upgrades whose combinations it cannot judge.' }),
  ]
}
