import { stripVTControlCharacters } from 'node:util'
import { ContainerDriver, ContainerdNamespace } from '../../../proto/gen/common/common_pb.ts'
import {
  type ImageServicePullProgress,
  ImageService,
  ImageServicePullLayerProgress_Status as LayerStatus,
} from '../../../proto/gen/machine/image_pb.ts'
import { LifecycleService } from '../../../proto/gen/machine/lifecycle_pb.ts'
import { MachineService, RebootRequest_Mode, UpgradeRequest_RebootMode } from '../../../proto/gen/machine/machine_pb.ts'
import { done, failed, ok, type Result } from '../../ports/fault.ts'
import type { InstallOutcome, LongCall, RebootMode } from '../../ports/talos.ts'
import { onlyMessage } from './answer.ts'
import type { Calls } from './calls.ts'
import { redacted } from './redact.ts'
import { isAtLeast } from './talos-version.ts'

const minuteMs = 60_000
const pullDeadlineMs = 15 * minuteMs
const installDeadlineMs = 30 * minuteMs
/** The machine pulls and tries the image before it answers. */
const legacyUpgradeDeadlineMs = 10 * minuteMs
const rebootDeadlineMs = 30_000
const forfeitDeadlineMs = minuteMs

/** The containerd that the installer runs from: where talosctl pulls to and installs from, too. */
const systemContainerd = { driver: ContainerDriver.CRI, namespace: ContainerdNamespace.NS_SYSTEM }

/** Whose images they are: those of Talos itself, or those of pods. */
export type PullNamespace = typeof ContainerdNamespace.NS_SYSTEM | typeof ContainerdNamespace.NS_CRI

export async function pullImage(
  calls: Calls,
  address: string,
  image: string,
  { cancellation, progress }: LongCall,
  namespace: PullNamespace = ContainerdNamespace.NS_SYSTEM,
): Promise<Result<string>> {
  const layers = pullProgress(progress)
  let name = ''
  const pulled = await calls.stream(
    address,
    ImageService.method.pull,
    { containerd: { driver: ContainerDriver.CRI, namespace }, imageRef: image },
    ({ response }) => {
      if (response.case === 'name') name = response.value
      if (response.case === 'pullProgress') layers(response.value)
    },
    { deadlineMs: pullDeadlineMs, cancellation, subject: image },
  )
  // The reference comes last; with it, the image is there, however the stream ended.
  if (name !== '') return ok(name)
  if (pulled.ok) return failed('unreachable', `${address}: ImageService.Pull ${image}: the stream ended before it named the image`)
  return pulled.fault.kind === 'unsupported' ? pullOldWay(calls, address, image, { cancellation, progress }, namespace) : pulled
}

/** Before Talos 1.13. Where even this is unknown, whoever needs the image pulls for itself. */
async function pullOldWay(
  calls: Calls,
  address: string,
  image: string,
  { cancellation, progress }: LongCall,
  namespace: PullNamespace,
): Promise<Result<string>> {
  progress(`pulling ${image}`)
  const pulled = await calls.unary(
    address,
    MachineService.method.imagePull,
    { namespace, reference: image },
    { deadlineMs: pullDeadlineMs, cancellation, subject: image },
  )
  if (!pulled.ok) return pulled.fault.kind === 'unsupported' ? ok(image) : pulled
  const message =
    pulled.value.messages.length === 0 ? ok(undefined) : onlyMessage(address, `MachineService.ImagePull ${image}`, pulled.value.messages)
  return message.ok ? ok(image) : message
}

const mostLayers = 1_000

/** Layers as they go, told as one percentage whenever that changes. */
function pullProgress(progress: (message: string) => void): (update: ImageServicePullProgress) => void {
  const layers = new Map<string, { offset: number; total: number; isDone: boolean }>()
  let last = ''
  return ({ layerId, progress: layer }) => {
    if (!layer) return
    const isDone = layer.status !== LayerStatus.DOWNLOADING
    const before = layers.get(layerId)
    // No image has so many; each costs memory.
    if (!before && layers.size >= mostLayers) return
    layers.set(layerId, {
      offset: Math.max(Number(layer.offset), before?.offset ?? 0),
      total: Math.max(Number(layer.total), before?.total ?? 0),
      isDone: isDone || before?.isDone === true,
    })
    const all = [...layers.values()]
    const total = all.reduce((sum, one) => sum + one.total, 0)
    const loaded = all.reduce((sum, one) => sum + (one.isDone ? one.total : Math.min(one.offset, one.total)), 0)
    const percent = total > 0 ? ` (${Math.floor((100 * loaded) / total)} % of ${(total / 1024 ** 2).toFixed(1)} MiB)` : ''
    const text = `pulling the image: ${all.filter(one => one.isDone).length} of ${all.length} layers${percent}`
    if (text !== last) progress(text)
    last = text
  }
}

const linesKept = 20
const longestLine = 300
/** What is looked at of one message of an installer, which sends line by line: its end tells most. */
const longestOutput = 64 * 1024

export async function installImage(
  calls: Calls,
  address: string,
  image: string,
  { cancellation, progress }: LongCall,
): Promise<Result<InstallOutcome>> {
  const lines: string[] = []
  let percent = ''
  let exitCode: number | undefined
  const ended = await calls.stream(
    address,
    LifecycleService.method.upgrade,
    { containerd: systemContainerd, source: { imageName: image } },
    ({ progress: step }) => {
      if (step?.response.case === 'exitCode') exitCode = step.response.value
      if (step?.response.case !== 'message') return
      for (const line of meaningfulLines(step.response.value)) {
        // A bar that grows is one line, told by its percentage when that is another.
        const isBar = isSameBar(lines.at(-1), line)
        if (isBar) lines.pop()
        lines.push(line)
        if (lines.length > linesKept) lines.shift()
        const percentNow = percentOf(line)
        if (!isBar || percentNow !== percent) progress(isBar ? `installing, ${percentNow} %` : line)
        percent = percentNow
      }
    },
    { deadlineMs: installDeadlineMs, cancellation, subject: image },
  )
  // The exit code is the installer's own last word: a connection that breaks after it changes nothing.
  if (exitCode !== undefined) return ok({ exitCode, lines })
  if (!ended.ok) return ended
  return failed(
    'unreachable',
    `${address}: LifecycleService.Upgrade ${image}: the stream ended without an exit code, so how the installer ended is unknown`,
  )
}

/** Whole percents that a line tells; empty where it tells none. */
function percentOf(line: string): string {
  return /\b(100|\d{1,2})(?:\.\d+)? ?%/.exec(line)?.[1] ?? ''
}

/** Whether two lines differ in nothing but their numbers and what is drawn beside them, and tell a percentage. */
function isSameBar(before: string | undefined, line: string): boolean {
  const words = (text: string) => text.replaceAll(/[^\p{L}]+/gu, ' ')
  return before !== undefined && percentOf(before) !== '' && percentOf(line) !== '' && words(before) === words(line)
}

function meaningfulLines(output: string): string[] {
  return stripVTControlCharacters(output.slice(-longestOutput))
    .split(/[\r\n]+/)
    .map(line => redacted(line, longestLine))
    .filter(line => /[\p{L}\p{N}]/u.test(line))
}

export async function upgradeLegacy(
  calls: Calls,
  address: string,
  request: { readonly image: string; readonly preserve: boolean; readonly rebootMode: RebootMode },
): Promise<Result<void>> {
  if (request.rebootMode === 'force') {
    return failed('unsupported', `${address}: MachineService.Upgrade: this call knows the reboot modes default and powercycle, not force`)
  }
  const rebootMode = request.rebootMode === 'powercycle' ? UpgradeRequest_RebootMode.POWERCYCLE : UpgradeRequest_RebootMode.DEFAULT
  const answer = await calls.unary(
    address,
    MachineService.method.upgrade,
    { image: request.image, preserve: request.preserve, rebootMode },
    { deadlineMs: legacyUpgradeDeadlineMs, subject: request.image },
  )
  return answer.ok ? accepted(address, 'MachineService.Upgrade', answer.value.messages) : answer
}

const rebootModes: Readonly<Record<RebootMode, RebootRequest_Mode>> = {
  default: RebootRequest_Mode.DEFAULT,
  powercycle: RebootRequest_Mode.POWERCYCLE,
  force: RebootRequest_Mode.FORCE,
}

export async function reboot(calls: Calls, address: string, mode: RebootMode): Promise<Result<void>> {
  const { method } = MachineService
  if (mode === 'force') {
    // An older machine would take the unknown number for some other mode.
    const versions = await calls.unary(address, method.version, {})
    if (!versions.ok) return versions
    const version = versions.value.messages[0]?.version?.tag ?? ''
    if (!isAtLeast(version, 1, 12)) {
      return failed(
        'unsupported',
        `${address}: MachineService.Reboot: the mode force came with Talos 1.12, and the machine runs ${version || 'an unknown version'}`,
      )
    }
  }
  const answer = await calls.unary(address, method.reboot, { mode: rebootModes[mode] }, { deadlineMs: rebootDeadlineMs })
  return answer.ok ? accepted(address, 'MachineService.Reboot', answer.value.messages) : answer
}

/** Does nothing on a machine that is not the leader. */
export async function forfeitLeadership(calls: Calls, address: string): Promise<Result<void>> {
  const answer = await calls.unary(address, MachineService.method.etcdForfeitLeadership, {}, { deadlineMs: forfeitDeadlineMs })
  return answer.ok ? accepted(address, 'MachineService.EtcdForfeitLeadership', answer.value.messages) : answer
}

function accepted(address: string, call: string, messages: Parameters<typeof onlyMessage>[2]): Result<void> {
  const message = onlyMessage(address, call, messages)
  return message.ok ? done : message
}
