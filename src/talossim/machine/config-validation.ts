import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { isAtLeast, kubernetesObjection } from '../../world/releases.ts'
import { isInstalled } from '../../world/slots.ts'
import { conflictsIn } from './config-conflicts.ts'
import type { Configuration, Mapping } from './config-documents.ts'
import { mappingOf, textOf } from './config-documents.ts'

/** As Go's package for several errors in one prints them. */
const errorsIn = (errors: readonly string[]): string =>
  `${errors.length} error${errors.length === 1 ? '' : 's'} occurred:\n${errors.map(text => `\t* ${text}\n`).join('')}\n`

const TYPES: Readonly<Record<string, string>> = {
  controlplane: 'controlplane',
  init: 'init',
  worker: 'worker',
  join: 'worker',
  '': 'worker',
}
const typeOf = (config: Mapping): string => textOf(mappingOf(config['machine'])['type'])
const isControlPlane = (config: Mapping): boolean => ['controlplane', 'init'].includes(typeOf(config))

const ofCluster = (config: Mapping): readonly string[] => {
  if (config['cluster'] === undefined) return ['cluster instructions are required']
  const cluster = mappingOf(config['cluster'])
  const endpoint = mappingOf(cluster['controlPlane'])['endpoint']
  if (endpoint === undefined || endpoint === null) return ['cluster controlplane endpoint is required']
  const errors: string[] = []
  if (endpoint === '') errors.push('invalid controlplane endpoint: hostname must not be blank')
  if (isControlPlane(config)) return errors
  if (cluster['etcd'] !== undefined) errors.push('etcd config is only allowed on control plane machines')
  if (mappingOf(cluster['ca'])['key']) errors.push('cluster CA key is not allowed on non-controlplane nodes (.cluster.ca)')
  return errors
}

const ofInstall = (machine: Machine, install: unknown): readonly string[] => {
  if (machine.platform !== 'metal' || isInstalled(machine.disk) || isAtLeast(versionOf(machine), 1, 14)) return []
  if (install === undefined) return ['install instructions are required in "metal" mode']
  const { disk, diskSelector } = mappingOf(install)
  return disk || diskSelector ? [] : ['either install disk or diskSelector should be defined']
}

const ofMain = (machine: Machine, config: Mapping): readonly string[] => {
  if (config['machine'] === undefined) return ['machine instructions are required']
  const section = mappingOf(config['machine'])
  const errors = [...ofCluster(config), ...ofInstall(machine, section['install'])]
  if (TYPES[typeOf(config)] === undefined) errors.push(`unknown machine type ${JSON.stringify(typeOf(config))}`)
  if (!isControlPlane(config) && mappingOf(section['ca'])['key'])
    errors.push('issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)')
  if (!isControlPlane(config) && mappingOf(mappingOf(config['cluster'])['ca'])['key'] && isAtLeast(versionOf(machine), 1, 12))
    errors.push('issuing Kubernetes API CA key is not allowed on non-controlplane nodes (.cluster.ca)')
  return errors
}

const inFirst = (errors: readonly string[]): readonly string[] => (errors.length > 0 ? [`v1alpha1.Config: ${errorsIn(errors)}`] : [])

/** What is wrong with a configuration whatever the machine runs, as Talos says it. Undefined: nothing that the simulation looks at. */
export const validationError = (machine: Machine, configuration: Configuration): string | undefined => {
  const { main } = configuration
  const errors = main ? [...inFirst(ofMain(machine, main)), ...conflictsIn(configuration)] : []
  return errors.length > 0 ? errorsIn(errors) : undefined
}

/** What is merely unusual. */
export const warningsOf = ({ main }: Configuration): readonly string[] => {
  const type = main && mappingOf(main['machine'])['type']
  const usual = typeof type === 'string' ? TYPES[type] : undefined
  return usual === undefined || usual === type ? [] : [`use ${JSON.stringify(usual)} instead of ${JSON.stringify(type)} for machine type`]
}

/** Images that a configuration names, by what Talos calls them. Only control planes look at more than the kubelet's. */
const imagesIn = ({ main, others }: Configuration): readonly (readonly [name: string, image: unknown])[] => {
  const config = main ?? {}
  const cluster = mappingOf(config['cluster'])
  const image = (kind: string, legacy: unknown): unknown =>
    others.find(other => other.kind === kind)?.['image'] ?? mappingOf(legacy)['image']
  return [
    ['kubelet', image('KubeletConfig', mappingOf(config['machine'])['kubelet'])],
    ...(isControlPlane(config)
      ? [
          ['kube-apiserver', image('KubeAPIServerConfig', cluster['apiServer'])] as const,
          ['kube-controller-manager', image('KubeControllerManagerConfig', cluster['controllerManager'])] as const,
          ['kube-scheduler', image('KubeSchedulerConfig', cluster['scheduler'])] as const,
        ]
      : []),
  ]
}

/** What the Talos that runs cannot carry: images of a Kubernetes that it does not know. Undefined where there are none. */
export const runtimeError = (machine: Machine, configuration: Configuration): string | undefined => {
  const errors = imagesIn(configuration).flatMap(([name, image]) => {
    if (typeof image !== 'string' || image === '') return []
    const version = /:v(\d+\.\d+\.\d+[^:@]*)(?:@.*)?$/.exec(image)?.[1]
    const objection =
      version === undefined ? `invalid image reference: ${JSON.stringify(image)}` : kubernetesObjection(versionOf(machine), version)
    return objection === undefined ? [] : [`${name} image is not valid: ${objection}`]
  })
  return errors.length > 0 ? errorsIn(inFirst(errors)) : undefined
}
