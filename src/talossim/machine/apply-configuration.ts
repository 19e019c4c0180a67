import { parseAllDocuments } from 'yaml'
import { ApplyConfigurationRequest_Mode as Mode, MachineService } from '../../../proto/gen/machine/machine_pb.ts'
import type { Answer } from '../../world/answer.ts'
import { answer, refuse } from '../../world/answer.ts'
import type { Machine } from '../../world/machine.ts'
import { versionOf } from '../../world/machine.ts'
import { INSTALL_IMAGE, readScalar } from '../../world/machine-config.ts'
import { requestReboot } from '../../world/reboot.ts'
import { isAtLeast } from '../../world/releases.ts'
import { later } from '../../world/site.ts'
import type { UnaryHandler } from '../call.ts'
import { unary } from '../dispatch.ts'

const methods = MachineService.method

const MODES: readonly number[] = Object.values(Mode)

type Mapping = { readonly [key: string]: unknown }
const mappingOf = (value: unknown): Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Mapping) : {}

/** The document of the first kind of configuration, which has neither `apiVersion` nor `kind`. */
const v1alpha1Of = (text: string): Answer<Mapping> => {
  const documents = parseAllDocuments(text)
  const parsed = Array.isArray(documents) ? documents : []
  const error = parsed.flatMap(document => document.errors)[0]
  if (error) return refuse('InvalidArgument', `yaml: ${error.message}`)
  const values = parsed.map(document => document.toJS() as unknown)
  if (values.some(value => value !== null && (typeof value !== 'object' || Array.isArray(value))))
    return refuse('InvalidArgument', 'recovered: expected a mapping node')
  const main = values.map(mappingOf).find(value => value['version'] === 'v1alpha1' && value['kind'] === undefined)
  if (main) return answer(main)
  return refuse(
    'InvalidArgument',
    "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?",
  )
}

const objectionTo = (machine: Machine, config: Mapping): string | undefined => {
  const type = mappingOf(config['machine'])['type']
  if (type !== machine.role)
    return `v1alpha1.Config: machine type ${JSON.stringify(type)}: the simulated machine is and remains a ${machine.role}`
  const endpoint = mappingOf(mappingOf(config['cluster'])['controlPlane'])['endpoint']
  return typeof endpoint === 'string' && endpoint !== ''
    ? undefined
    : 'v1alpha1.Config: invalid controlplane endpoint: hostname must not be blank'
}

/** Keys of `machine` that Talos up to 1.13 changes without a reboot. */
const IMMEDIATE: readonly string[] = [
  ...['time', 'certSANs', 'install', 'network', 'sysfs', 'sysctls', 'logging', 'controlPlane', 'kubelet', 'kernel', 'registries', 'pods'],
  ...['seccompProfiles', 'nodeLabels', 'ca', 'acceptedCAs', 'nodeTaints', 'nodeAnnotations'],
]
const IMMEDIATE_FEATURES: readonly string[] = ['kubernetesTalosAPIAccess', 'kubePrism', 'hostDNS', 'imageCache', 'nodeAddressSortAlgorithm']

/** What is empty says no more than what is absent; clients write one for the other. */
const meaning = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.length > 0 ? value.map(meaning) : undefined
  if (typeof value !== 'object' || value === null) return value === '' || value === false ? undefined : (value ?? undefined)
  const entries = Object.entries(value).flatMap(([key, inner]) => (meaning(inner) === undefined ? [] : [[key, meaning(inner)] as const]))
  return entries.length > 0 ? Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))) : undefined
}

const differs = (a: Mapping, b: Mapping, except: readonly string[]): boolean =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].some(
    key => !except.includes(key) && JSON.stringify(meaning(a[key])) !== JSON.stringify(meaning(b[key])),
  )

const needsReboot = (before: Mapping, after: Mapping): boolean => {
  const [was, is] = [mappingOf(before['machine']), mappingOf(after['machine'])]
  return (
    differs(before, after, ['debug', 'cluster', 'machine']) ||
    differs(was, is, [...IMMEDIATE, 'features']) ||
    differs(mappingOf(was['features']), mappingOf(is['features']), IMMEDIATE_FEATURES)
  )
}

/** The lines between the first and the last that differ; enough for a person to see what changes. */
const diff = (before: string, after: string): string => {
  if (before === after) return 'No changes.'
  const [a, b] = [before.split('\n'), after.split('\n')]
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++
  const [gone, come] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)]
  const range = `@@ -${head + 1},${gone.length} +${head + 1},${come.length} @@`
  return ['--- a', '+++ b', range, ...gone.map(line => `-${line}`), ...come.map(line => `+${line}`)].join('\n')
}

const applyConfiguration: UnaryHandler<typeof methods.applyConfiguration> = async (call, request) => {
  const { site, machine } = call
  const text = new TextDecoder().decode(request.data)
  const config = v1alpha1Of(text)
  if (!config.ok) return config
  const hasReboot = !isAtLeast(versionOf(machine), 1, 14)
  if (request.mode === Mode.REBOOT && !hasReboot)
    return refuse('Unimplemented', 'the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead')
  if (request.mode === Mode.STAGED || request.mode === Mode.TRY)
    return refuse('Unimplemented', `the simulation has no mode ${request.mode === Mode.TRY ? 'TRY' : 'STAGED'}`)
  if (!MODES.includes(request.mode))
    return refuse('InvalidArgument', `incorrect mode '${request.mode}' specified for the apply config call`)
  const objection = objectionTo(machine, config.value)
  if (objection !== undefined) return refuse('InvalidArgument', objection)

  const current = v1alpha1Of(machine.config)
  const needs = hasReboot && current.ok && needsReboot(current.value, config.value)
  if (request.mode === Mode.NO_REBOOT && needs)
    return refuse('InvalidArgument', `this config change can't be applied in immediate mode\ndiff: ${diff(machine.config, text)}`)
  const mode = request.mode === Mode.AUTO ? (needs ? Mode.REBOOT : Mode.NO_REBOOT) : request.mode
  const details = mode === Mode.REBOOT ? 'Applied configuration with a reboot' : 'Applied configuration without a reboot'
  if (request.dryRun)
    return answer({
      messages: [
        { mode, modeDetails: `Dry run summary:\n${details} (skipped in dry-run).\nConfig diff:\n\n${diff(machine.config, text)}` },
      ],
    })

  await new Promise<void>(resolve => void later(site, machine, site.durations.draw('applyConfig'), resolve))
  const image = readScalar(text, INSTALL_IMAGE)
  if (image !== readScalar(machine.config, INSTALL_IMAGE)) site.journal.write(machine.name, 'install-image', image)
  machine.config = text
  site.journal.write(machine.name, 'config-applied', mode === Mode.REBOOT ? 'with a reboot' : '')
  call.resources.look()
  if (mode === Mode.REBOOT) requestReboot(site, machine, 'default')
  return answer({ messages: [{ mode, modeDetails: details }] })
}

export const configurationMethods = { applyConfiguration: unary(methods.applyConfiguration, applyConfiguration) }
