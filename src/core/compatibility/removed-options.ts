import { parseAllDocuments } from 'yaml'
import type { Component } from '../../ports/components.ts'
import type { Version } from '../versions.ts'
import type { CompatibilityTable, RemovedOptionsRow } from './table.ts'
import { compatibilityTable } from './table.ts'

/** What a machine configuration gives to a program of Kubernetes beyond Talos' own, by name; no value of a flag is in it. */
type Options = {
  readonly component: Component
  readonly flags: readonly string[]
  readonly featureGates: readonly string[]
  readonly admissionPlugins: readonly string[]
}

/** One of them that a release does not know: `--cloud-config`, `feature gate X`, `admission plugin X`. */
export type RemovedOption = { readonly component: Component; readonly option: string; readonly goneIn: string }

/** Where each is configured: in the one document of old, and since Talos 1.14 perhaps in one of its own, which then says it all. */
export const CONFIG_PLACES: Readonly<Record<Component, { readonly section: readonly [string, string]; readonly kind: string }>> = {
  'kube-apiserver': { section: ['cluster', 'apiServer'], kind: 'KubeAPIServerConfig' },
  'kube-controller-manager': { section: ['cluster', 'controllerManager'], kind: 'KubeControllerManagerConfig' },
  'kube-scheduler': { section: ['cluster', 'scheduler'], kind: 'KubeSchedulerConfig' },
  'kube-proxy': { section: ['cluster', 'proxy'], kind: 'KubeProxyConfig' },
  kubelet: { section: ['machine', 'kubelet'], kind: 'KubeletConfig' },
}
const COMPONENTS = Object.keys(CONFIG_PLACES) as readonly Component[]

type Json = Readonly<Record<string, unknown>>
const record = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {})

/** The parts of a list with commas, or of several: since Talos 1.13 an argument may have more than one value. */
const parts = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value])
    .filter(one => typeof one === 'string')
    .flatMap(one => one.split(','))
    .map(one => one.trim())
    .filter(one => one !== '')

const optionsIn = (component: Component, section: Json): Options => {
  const extra = record(section['extraArgs'])
  // The kubelet and kube-proxy have a file of their own beside their flags: `extraConfig`, and `config` since Talos 1.14.
  const files = [record(section['extraConfig']), record(section['config'])]
  return {
    component,
    flags: Object.keys(extra),
    featureGates: [
      ...parts(extra['feature-gates']).map(gate => gate.replace(/=.*/s, '')),
      ...files.flatMap(file => Object.keys(record(file['featureGates']))),
    ],
    admissionPlugins: [...parts(extra['enable-admission-plugins']), ...parts(extra['disable-admission-plugins'])],
  }
}

/** Of a configuration that a machine runs with, so that it can be read. */
const optionsOf = (text: string): readonly Options[] => {
  const documents = [...parseAllDocuments(text, { prettyErrors: false, logLevel: 'error', merge: true })]
  const values = documents.map(document => record(document.toJS()))
  const main = record(values.find(value => value['kind'] === undefined))
  return COMPONENTS.map(component => {
    const { section, kind } = CONFIG_PLACES[component]
    const own = values.find(value => value['kind'] === kind)
    return optionsIn(component, own ?? record(record(main[section[0]])[section[1]]))
  })
}

const goneOf = (options: Options, row: RemovedOptionsRow): readonly string[] => [
  ...(row.flags[options.component] ?? []).filter(flag => options.flags.includes(flag)).map(flag => `--${flag}`),
  ...row.featureGates.filter(gate => options.featureGates.includes(gate)).map(gate => `feature gate ${gate}`),
  ...(options.component === 'kube-apiserver' ? row.admissionPlugins : [])
    .filter(plugin => options.admissionPlugins.includes(plugin))
    .map(plugin => `admission plugin ${plugin}`),
]

/** What the programs of a machine with this configuration would be given, and this version of Kubernetes does not know. */
export const removedOptions = (
  configuration: string,
  version: Version,
  table: CompatibilityTable = compatibilityTable,
): readonly RemovedOption[] => {
  const rows = table.removedOptions.filter(row => {
    const [major = 0, minor = 0] = row.kubernetes.split('.').map(Number)
    return major < version.major || (major === version.major && minor <= version.minor)
  })
  return optionsOf(configuration).flatMap(options =>
    rows.flatMap(row => goneOf(options, row).map(option => ({ component: options.component, option, goneIn: row.kubernetes }))),
  )
}
