import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  ApplyConfigurationRequest_Mode,
  type ApplyConfigurationRequestSchema,
  MachineService,
} from '../../../proto/gen/machine/machine_pb.ts'
import type { Component } from '../../ports/components.ts'
import { type MachineConfiguration, pendingText } from '../../ports/configuration.ts'
import { done, failed, type Fault, ok, type Result } from '../../ports/fault.ts'
import { onlyMessage } from './answer.ts'
import type { Calls } from './calls.ts'
import { getResource } from './cosi.ts'
import {
  type ConfigFacts,
  type ConfigResult,
  readConfigFacts,
  saysTheSame,
  withComponentImage,
  withInstallImage,
} from './machine-config.ts'
import { resourceTypes } from './resource-types.ts'

const applyDeadlineMs = 30_000

/** Facts of the live configuration; undefined where the machine has none: it is in maintenance mode, or at the very start of a boot. */
export async function readMachineConfig(calls: Calls, address: string): Promise<Result<ConfigFacts | undefined>> {
  const live = await configResource(calls, address, 'v1alpha1')
  if (!live.ok || live.value === undefined) return live.ok ? ok(undefined) : live
  const facts = readConfigFacts(live.value.text)
  return facts.ok ? ok(facts.value) : failed('unknown', `${address}: its machine configuration: ${facts.problem}`)
}

/**
 * Sets the install image in the live configuration, without a reboot, and changes nothing else; nothing is sent where it is there already.
 * A configuration that is staged or on trial would be lost by it, so such a machine is a Fault of kind `precondition`, as is one
 * without an install section.
 */
export function setInstallImage(calls: Calls, address: string, image: string): Promise<Result<void>> {
  return change(calls, address, 'the install image', text => withInstallImage(text, image))
}

/** The same for the image of a component of Kubernetes. */
export function setComponentImage(calls: Calls, address: string, component: Component, image: string): Promise<Result<void>> {
  return change(calls, address, `the image of ${component}`, text => withComponentImage(text, component, image))
}

async function change(calls: Calls, address: string, what: string, edit: (text: string) => ConfigResult<string>): Promise<Result<void>> {
  const read = await readConfiguration(calls, address)
  if (!read.ok) return read
  const { running, pending } = read.value
  const changed = edit(running)
  if (!changed.ok) return failed('precondition', `${address}: its machine configuration: ${changed.problem}`)
  if (changed.value === running) return done
  if (pending !== undefined) return failed('precondition', `${address}: ${pendingText(pending)}, and setting ${what} now would undo that`)
  return apply(calls, address, { data: new TextEncoder().encode(changed.value), mode: ApplyConfigurationRequest_Mode.NO_REBOOT })
}

/** What the machine runs, what is on its disk, and why the two differ. */
export async function readConfiguration(calls: Calls, address: string): Promise<Result<MachineConfiguration>> {
  const [running, onDisk] = await Promise.all([configResource(calls, address, 'v1alpha1'), configResource(calls, address, 'persistent')])
  if (!running.ok) return running
  if (!onDisk.ok) return onDisk
  if (running.value === undefined) return failed('precondition', `${address}: the machine has no configuration: it is in maintenance mode`)
  if (onDisk.value === undefined) return ok({ running: running.value.text, onDisk: running.value.text, isDiskUntold: true })
  if (saysTheSame(onDisk.value.text, running.value.text)) return ok({ running: running.value.text, onDisk: running.value.text })
  const pending = onDisk.value.updated > running.value.updated ? 'staged' : 'trial'
  return ok({ running: running.value.text, onDisk: onDisk.value.text, pending })
}

/** Gives a whole configuration to the machine, or only shows it. */
export async function apply(
  calls: Calls,
  address: string,
  request: MessageInitShape<typeof ApplyConfigurationRequestSchema>,
): Promise<Result<void>> {
  const answer = await calls.unary(address, MachineService.method.applyConfiguration, request, { deadlineMs: applyDeadlineMs })
  if (!answer.ok) return { ok: false, fault: withoutDiff(answer.fault) }
  const message = onlyMessage(address, 'MachineService.ApplyConfiguration', answer.value.messages)
  return message.ok ? done : message
}

/** Talos explains a refusal with a diff of the configuration, secrets and all. */
function withoutDiff(fault: Fault): Fault {
  const [before] = fault.message.split(/\s(?:diff:|---\s|\+\+\+\s|@@\s)/)
  return { ...fault, message: before ?? fault.message }
}

type ConfigText = { readonly text: string; readonly updated: number }

async function configResource(calls: Calls, address: string, id: 'v1alpha1' | 'persistent'): Promise<Result<ConfigText | undefined>> {
  const resource = await getResource(calls, address, resourceTypes.machineConfig, id)
  if (!resource.ok || resource.value === undefined) return resource.ok ? ok(undefined) : resource
  const bytes = resource.value.spec.yamlMarshalled
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  // What is written back must be what was read.
  return Buffer.from(text).equals(bytes)
    ? ok({ text, updated: resource.value.updated })
    : failed('unknown', `${address}: its machine configuration is not UTF-8`)
}
