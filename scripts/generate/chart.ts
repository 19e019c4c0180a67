import { stringify } from 'yaml'
import type { StartRight } from '../../src/api/start-rights.ts'
import { controllerObjects, DEFAULTS, type Settings, talosAccess } from '../../src/install/controller.ts'
import { dashboard } from '../../src/install/dashboard.ts'
import { marked } from '../../src/install/installation.ts'
import { monitoring } from '../../src/install/monitoring.ts'
import { type KubeObject, object } from '../../src/install/object.ts'
import { policies } from '../../src/install/policies.ts'
import { CONTROLLER_ACCOUNT, controllerRoles, peoplesRoles, userOf } from '../../src/install/roles.ts'
import type { Files } from './files.ts'

export const templateFolder = 'charts/ichor/templates'

// What helm fills in stands in the objects as a marked string, and is put into the text when the objects have become YAML.
const helm = (expression: string): string => `@{${expression}}@`
const value = <T>(path: string): T => helm(`toJson .Values.${path}`) as unknown as T
/** In a list: each of the values, beside what else is in it. */
const each = <T>(path: string): readonly T[] => [`@each{.Values.${path}}@` as unknown as T]

// Braces that are Prometheus' own, or Grafana's.
const literal = (text: string): string => text.replaceAll('{{', helm('`{{`'))
/** As an annotation or a label: all of those that the value has. */
const SPREAD = '@all'

const filled = (yaml: string): string =>
  yaml
    .replaceAll(/^( *)- ["']?@each\{(.+?)\}@["']?$/gm, '$1{{- range $2 }}\n$1- {{ toJson . }}\n$1{{- end }}')
    .replaceAll(/^( *)["']?@all["']?: (.+)$/gm, (_, indent: string, path: string) =>
      [`{{- with .Values.${path} }}`, `${indent}{{- toYaml . | nindent ${indent.length} }}`, `${indent}{{- end }}`]
        .map((line, at) => (at === 0 ? indent + line : line))
        .join('\n'),
    )
    .replaceAll(/["']@\{(.+?)\}@["']/g, '{{ $1 }}')
    .replaceAll(/@\{(.+?)\}@/g, '{{ $1 }}')

const textOf = (objects: readonly KubeObject[]): string =>
  filled(
    marked(objects, { manager: helm('.Release.Service'), instance: helm('.Release.Name') })
      .map(object => `---\n${stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })}`)
      .join(''),
  )

const NOTE = '{{- /* Generated from src/install by npm run generate; do not edit. */}}\n'

/** Only where the value is set. */
const where = (path: string, yes: string, no?: string): string =>
  `{{- if .Values.${path} }}\n${yes}${no === undefined ? '' : `{{- else }}\n${no}`}{{- end }}\n`

const DASHBOARD = 'dashboards/ichor.json'

/** What is only in the chart: each of it where its value says so. */
const optional = (controller: { readonly name: string; readonly namespace: string }): string => {
  const { name, namespace } = controller
  const objects = {
    ...monitoring(controller),
    dashboard: object(
      'v1',
      'ConfigMap',
      { name: `${name}-dashboard`, namespace },
      { data: { 'ichor.json': helm(`.Files.Get "${DASHBOARD}" | toJson`) } },
    ),
  }
  return Object.entries(objects)
    .map(([value, made]) => {
      const labels = { ...made.metadata.labels, [SPREAD]: `monitoring.${value}.labels` }
      const escaped = JSON.parse(JSON.stringify(made), (_, text: unknown) =>
        typeof text === 'string' && text.includes('{{ $') ? literal(text) : text,
      ) as KubeObject
      return where(`monitoring.${value}.enabled`, textOf([{ ...escaped, metadata: { ...made.metadata, labels } }]))
    })
    .join('')
}

/** The templates of the chart: the same objects that `ichor install` writes. */
export const chartFiles = (rights: readonly StartRight[]): Files => {
  const controller = { name: CONTROLLER_ACCOUNT, namespace: helm('.Release.Namespace') }
  const settings: Settings = {
    ...(Object.fromEntries(Object.keys(DEFAULTS).map(name => [name, value(name)])) as unknown as typeof DEFAULTS),
    imagePullSecrets: value('imagePullSecrets'),
    image: helm('include "ichor.image" . | quote'),
    namespace: helm('.Values.allNamespaces | ternary "" .Release.Namespace'),
    logLevel: helm('.Values.logLevel'),
    env: each('env'),
  }
  const templates: Readonly<Record<string, string>> = {
    roles: textOf(peoplesRoles(rights.map(right => right.subresource))),
    policies: where('policies', textOf(policies(rights, userOf(controller)))),
    'controller-roles': where(
      'allNamespaces',
      textOf(controllerRoles(controller, { allNamespaces: true })),
      textOf(controllerRoles(controller, { allNamespaces: false })),
    ),
    controller: textOf(controllerObjects(controller, settings)),
    monitoring: optional(controller),
    'talos-access': where('talosCluster', textOf(talosAccess(helm('.Values.talosCluster'), helm('.Release.Namespace')))),
  }
  return new Map([
    ...Object.entries(templates).map(([name, text]) => [`${templateFolder}/${name}.yaml`, NOTE + text] as const),
    [`charts/ichor/${DASHBOARD}`, `${JSON.stringify(dashboard(), undefined, 2)}\n`],
  ])
}
