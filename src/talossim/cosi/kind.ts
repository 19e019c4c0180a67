import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf'
import { create, toBinary } from '@bufbuild/protobuf'
import type { Machine } from '../../world/machine.ts'
import { isAtLeast } from '../../world/releases.ts'
import type { Site } from '../../world/site.ts'
import type { Authorities } from '../call.ts'
import { yamlOf } from './go-yaml.ts'
import type { StaticPodReports } from './static-pod-reports.ts'

/** A resource as the machine's state says it now; versions and times are kept elsewhere. */
export type Drawn = {
  readonly id: string
  readonly proto: Uint8Array
  /** Text of the spec in YAML. */
  readonly yaml: string
  readonly annotations: Readonly<Record<string, string>>
}

/** What resources are drawn from besides the world. */
export type Beside = {
  readonly authorities: Authorities | undefined
  readonly staticPods: StaticPodReports
}

/** One type of resource that the simulated machines have. */
export type ResourceKind = {
  /** `MachineStatuses.runtime.talos.dev` */
  readonly type: string
  /** Singular: `MachineStatus`. */
  readonly display: string
  readonly namespace: string
  /** The controller that writes it; empty for the machine configuration. */
  readonly owner: string
  readonly aliases?: readonly string[]
  /** Name and JSONPath into the YAML of each column of `talosctl get`. */
  readonly columns?: (version: string) => readonly (readonly [name: string, path: string])[]
  /** First minor of Talos 1 in which only an administrator may read it. */
  readonly sensitiveSince?: number
  /** First minor of Talos 1 that has it. */
  readonly since: number
  readonly draw: (site: Site, machine: Machine, beside: Beside) => readonly Drawn[]
}

export const isSensitive = ({ sensitiveSince }: ResourceKind, version: string): boolean =>
  sensitiveSince !== undefined && isAtLeast(version, 1, sensitiveSince)

/** With the keys of all mappings in order, as Go prints its maps. */
export const inOrder = <T>(value: T): T => {
  if (Array.isArray(value)) return value.map(inOrder) as T
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, inOrder(inner) as unknown] as const)
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1))) as T
}

/** @param yaml The spec as `talosctl get -o yaml` shows it: a plain value. */
export const drawn = <S extends DescMessage>(id: string, schema: S, init: MessageInitShape<S>, yaml: unknown): Drawn => ({
  id,
  proto: toBinary(schema, create(schema, init)),
  yaml: yamlOf(yaml),
  annotations: {},
})

/** The raw bytes of an IP address, as `common.NetIP` carries them. */
export const ipBytes = (address: string): Uint8Array => {
  if (!address.includes(':')) return Uint8Array.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const groups = (text: string): number[] =>
    text === ''
      ? []
      : text
          .split(':')
          .flatMap(group =>
            group.includes('.') ? [...ipBytes(group)] : [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255],
          )
  const [left, right] = [groups(head), groups(tail ?? '')]
  return Uint8Array.from([...left, ...Array.from({ length: 16 - left.length - right.length }, () => 0), ...right])
}
