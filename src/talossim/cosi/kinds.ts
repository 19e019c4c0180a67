import {
  NamespaceSpecSchema,
  ResourceDefinitionSpec_Sensitivity,
  ResourceDefinitionSpecSchema,
} from '../../../proto/gen/cosi/resource/meta/meta_pb.ts'
import { versionOf } from '../../world/machine.ts'
import { isAtLeast } from '../../world/releases.ts'
import { clusterKinds } from './cluster-kinds.ts'
import { controlPlaneKinds } from './control-plane-kinds.ts'
import type { Drawn, ResourceKind } from './kind.ts'
import { drawn, isSensitive } from './kind.ts'
import { kubernetesKinds } from './kubernetes-kinds.ts'
import { runtimeKinds } from './runtime-kinds.ts'
import { secretKinds } from './secret-kinds.ts'

const NAMESPACES: Readonly<Record<string, string>> = {
  cluster: 'Cluster configuration and discovery resources.',
  config: 'Talos node configuration.',
  controlplane: 'Kubernetes control plane resources.',
  cri: 'CRI support resources.',
  etcd: 'etcd resources.',
  hardware: 'Hardware resources.',
  k8s: 'Kubernetes all node types resources.',
  meta: 'Metadata namespace.',
  network: 'Networking resources.',
  runtime: 'Talos Runtime information.',
  secrets: 'Resources with secret material.',
}

const metaKinds: readonly ResourceKind[] = [
  {
    type: 'Namespaces.meta.cosi.dev',
    display: 'Namespace',
    namespace: 'meta',
    owner: '',
    aliases: ['ns'],
    since: 0,
    draw: () => Object.entries(NAMESPACES).map(([id, description]) => drawn(id, NamespaceSpecSchema, { description }, { description })),
  },
  {
    type: 'ResourceDefinitions.meta.cosi.dev',
    display: 'ResourceDefinition',
    namespace: 'meta',
    owner: '',
    aliases: ['api-resources'],
    columns: () => [['Aliases', '{.aliases[:]}']],
    since: 0,
    draw: (_, machine) => kindsOf(versionOf(machine)).map(kind => definitionOf(kind, versionOf(machine))),
  },
]

/** A type that is missing here is one that the world has nothing to say about. */
const KINDS: readonly ResourceKind[] = [
  ...metaKinds,
  ...runtimeKinds,
  ...clusterKinds,
  ...kubernetesKinds,
  ...controlPlaneKinds,
  ...secretKinds,
]

/** The types that a machine of this version has. */
export const kindsOf = (version: string): readonly ResourceKind[] => KINDS.filter(kind => isAtLeast(version, 1, kind.since))

export const isNamespace = (name: string): boolean => Object.hasOwn(NAMESPACES, name)

/** The names a type answers to in `talosctl get`, besides those that follow from its full name. */
const aliasesOf = (kind: ResourceKind): readonly string[] => {
  const plural = kind.type.slice(0, kind.type.indexOf('.'))
  const capitals = plural.replaceAll(/[^A-Z]/g, '').toLowerCase()
  const initials = capitals.length < 2 ? [] : capitals.endsWith('s') ? [capitals] : [capitals, `${capitals}s`]
  return [...(kind.aliases ?? []), kind.display.toLowerCase(), ...initials]
}

const definitionOf = (kind: ResourceKind, version: string): Drawn => {
  const parts = kind.type.toLowerCase().split('.')
  const prefixes = parts.slice(0, -1).map((_, at) => parts.slice(0, at + 1).join('.'))
  const aliases = [...aliasesOf(kind)]
  const allAliases = [...prefixes, ...aliases]
  const columns = (kind.columns?.(version) ?? []).map(([name, jsonPath]) => ({ name, jsonPath }))
  return drawn(
    kind.type.toLowerCase(),
    ResourceDefinitionSpecSchema,
    {
      resourceType: kind.type,
      displayType: kind.display,
      defaultNamespace: kind.namespace,
      aliases,
      allAliases,
      printColumns: columns,
      sensitivity: isSensitive(kind, version)
        ? ResourceDefinitionSpec_Sensitivity.SENSITIVE
        : ResourceDefinitionSpec_Sensitivity.NON_SENSITIVE,
    },
    {
      type: kind.type,
      displayType: kind.display,
      defaultNamespace: kind.namespace,
      aliases,
      allAliases,
      printColumns: columns,
      ...(isSensitive(kind, version) ? { sensitivity: 'sensitive' } : {}),
    },
  )
}
