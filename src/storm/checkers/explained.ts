import type { TalosOperation } from '../../api/talos-operation.ts'
import { ANNOTATION } from '../../api/names.ts'
import { RELEASE_NAMES } from '../../world/releases.ts'
import { PATCHES, STRANGE_PATCHES } from '../operations.ts'
import { isHopeless, isMistaken } from '../gates.ts'
import { FURNISHED } from '../furnished.ts'
import { WRONG_PATCHES } from '../patches.ts'
import type { Draft, Plan, Shape } from '../plan.ts'
import type { Oddities } from '../oddities.ts'
import { MIRROR, OTHER_MIRROR, OTHER_SCHEMATIC, SCHEMATIC, type Setting } from '../setting.ts'
import { SHARED_PATCHES, versionPatches } from '../version-patches.ts'
import { isBack, isKnown, minorSteps, supports } from './path.ts'

/** Which endings but the one that was asked for are right, by what was asked for and of whom. */

type Asked = {
  readonly spec: Draft['spec'] & {
    readonly machineSelector?: object
    readonly acknowledge?: readonly string[]
    readonly override?: boolean
  }
  readonly talos: { readonly version?: string; readonly schematic?: string; readonly image?: string; readonly snapshot?: string }
  readonly node: { readonly machine?: string; readonly action?: string; readonly mode?: string; readonly service?: string }
  readonly kubernetes: { readonly version?: string }
  readonly config: { readonly mode?: string; readonly patches?: readonly { readonly inline?: string }[] }
  readonly shape: Shape
  readonly setting: Setting
  readonly strikes: Plan['strikes']
}
type Explains = (asked: Asked) => boolean

const isOnControlPlane = ({ node }: Asked): boolean => node.machine?.startsWith('cp-') === true
const accepts = ({ spec }: Asked, what: string): boolean => spec.acknowledge?.includes(what) === true
const isContainer: Explains = ({ setting }) => setting.platform === 'container'
const hasCilium: Explains = ({ setting }) => setting.cilium !== undefined
const odd = ({ setting }: Asked): Oddities => setting.oddities ?? {}
const namesImage: Explains = ({ talos, setting }) => talos.image !== undefined || setting.image !== undefined
const namesSchematic: Explains = ({ talos, setting }) => talos.schematic !== undefined || setting.extensions !== undefined
/** etcd has more than it may have. */
const isFull: Explains = asked => asked.setting.quota !== undefined || odd(asked).alarm === true
const isTooFar: Explains = ({ talos: { version }, shape }) => version !== undefined && Math.abs(minorSteps(shape.talos, version)) > 1
/** Installers have a last word of their own about the version that runs. */
const isForcedUpon: Explains = asked =>
  asked.spec.override === true && (isTooFar(asked) || isBack(asked.shape.talos, asked.talos.version ?? asked.shape.talos))
const isReset = ({ node }: Asked): boolean => node.action === 'reset'

const isJsonPatched: Explains = ({ config }) => config.patches?.some(({ inline = '' }) => inline.startsWith('- op:')) === true

/** The API does not answer at times. */
const isAway: Explains = ({ strikes }) => strikes.some(({ family }) => family === 'api-away' || family === 'api-errors')

const holdsControlPlane: Explains = ({ shape, setting }) =>
  setting.marks?.some(m => m.machine < shape.controlPlanes && (m.annotations?.[ANNOTATION.upgradeHold] ?? 'false') !== 'false') === true

const isPatchedBy =
  (...patches: readonly string[]): Explains =>
  ({ config }) =>
    config.patches?.some(({ inline = '' }) => patches.includes(inline)) === true

const DOUBTFUL = [...WRONG_PATCHES, ...SHARED_PATCHES, ...FURNISHED.flat(2)]
const changesVersions: Explains = asked => isPatchedBy(...versionPatches(asked.shape.kubernetes))(asked)

const isOtherMinor: Explains = ({ kubernetes: { version = '' }, shape }) =>
  version.split('.').slice(0, 2).join('.') !== shape.kubernetes.split('.').slice(0, 2).join('.')

/** The rules of the checks. */
const RULES: Readonly<Record<string, Explains>> = {
  ApiOutage: asked => asked.shape.controlPlanes < 2 && !accepts(asked, 'api-outage'),
  CiliumKubernetes: hasCilium,
  CiliumKernel: hasCilium,
  CiliumTalos: hasCilium,
  ContainerMode: isContainer,
  DeprecatedApis: asked => odd(asked).deprecated !== undefined,
  DowngradeRefused: ({ talos, kubernetes, shape, setting }) =>
    isBack(setting.oddities?.release?.talos ?? shape.talos, talos.version ?? shape.talos) ||
    isBack(shape.talos, talos.version ?? shape.talos) ||
    isBack(shape.kubernetes, kubernetes.version ?? shape.kubernetes),
  EtcdAlarm: isFull,
  // An older patch may bring an etcd that must not go on as it is.
  EtcdStep: asked => isTooFar(asked) || odd(asked).release !== undefined,
  EtcdUnhealthy: isFull,
  HealthGateInvalid: asked => asked.setting.gates?.some(gate => odd(asked).early === true || isMistaken(gate)) === true,
  ImageUnreadable: asked => odd(asked).written !== undefined,
  KubeletSkew: asked => odd(asked).vendorTail !== undefined || isOtherMinor(asked),
  MachineAmbiguous: asked => odd(asked).uuids !== undefined || odd(asked).namesake !== undefined,
  // A kubelet that has just been given another configuration is only starting; and a hold may be seen late.
  MachineNotReady: asked => odd(asked).aloof !== undefined || holdsControlPlane(asked),
  MinorSkipped: isOtherMinor,
  PoliciesMissing: asked => odd(asked).policyGaps === true || isAway(asked),
  RemovedOptions: asked => odd(asked).written !== undefined,
  SecondNetwork: hasCilium,
  VersionUnknown: asked => odd(asked).vendorTail !== undefined,
  ArgumentKept: isPatchedBy(STRANGE_PATCHES.kept, STRANGE_PATCHES.keptByKubelet),
  HostnameTwice: isPatchedBy(...SHARED_PATCHES),
  HeldControlPlane: holdsControlPlane,
  ImageInvalid: asked => namesImage(asked) || asked.setting.factory === 'not a host',
  ImageVersionMismatch: namesImage,
  KubernetesSkew: asked =>
    odd(asked).vendorTail !== undefined ||
    (asked.talos.version !== undefined &&
      // What Talos 1.14 takes is more than its support matrix lists.
      (!supports(asked.talos.version, asked.shape.kubernetes) ||
        (asked.talos.version.startsWith('v1.14.') && asked.shape.kubernetes.startsWith('v1.32.')))),
  LastControlPlane: asked => isReset(asked) && isOnControlPlane(asked) && asked.shape.controlPlanes === 1,
  ModeUnsupported: ({ node, config, shape }) =>
    node.mode === 'force' ? minorSteps('v1.12.0', shape.talos) < 0 : config.mode !== undefined && minorSteps('v1.10.0', shape.talos) < 0,
  ConfigPending: asked => odd(asked).pending !== undefined,
  // Whoever asks while nobody answers is told so, and asks again.
  KubernetesUnreachable: isAway,
  NoMachines: asked => asked.spec.machineSelector !== undefined || odd(asked).early === true,
  NotAControlPlane: asked => !isOnControlPlane(asked),
  OnlyMember: ({ shape }) => shape.controlPlanes === 1,
  PatchAmbiguous: isPatchedBy(STRANGE_PATCHES.trap, ...DOUBTFUL),
  PatchForbidden: isPatchedBy(STRANGE_PATCHES.secret, ...DOUBTFUL),
  // A list of operations is for a configuration of one document.
  PatchInvalid: asked =>
    isPatchedBy(STRANGE_PATCHES.noYaml, ...DOUBTFUL)(asked) || (odd(asked).written !== undefined && isJsonPatched(asked)),
  PatchMatchesNothing: asked => isPatchedBy(STRANGE_PATCHES.gone, ...DOUBTFUL)(asked) || changesVersions(asked),
  PatchMissing: ({ config }) => config.patches?.some(({ inline }) => inline === undefined) === true,
  PlatformMismatch: asked => namesImage(asked) || asked.setting.platform !== undefined,
  QuorumWouldBeLost: asked =>
    asked.shape.controlPlanes < 3
      ? !accepts(asked, 'api-outage') || (isReset(asked) && !accepts(asked, 'no-fault-tolerance'))
      : isReset(asked) && asked.shape.controlPlanes < 4 && !accepts(asked, 'no-fault-tolerance'),
  RebootNeeded: asked => isPatchedBy(PATCHES.onBoot)(asked) && ['try', 'no-reboot'].includes(asked.config.mode ?? ''),
  // Which factory makes its images, a machine with Secure Boot need not tell, nor whoever builds them himself.
  SchematicMismatch: asked => namesImage(asked) || namesSchematic(asked) || odd(asked).secureBoot === true || odd(asked).own !== undefined,
  SecureBootMismatch: asked => namesImage(asked) || odd(asked).secureBoot === true,
  SchematicUnknown: asked => odd(asked).own !== undefined,
  SnapshotStorage: ({ talos }) => talos.snapshot === 'required',
  TalosSkew: asked => isTooFar(asked) || !supports(asked.shape.talos, asked.kubernetes.version ?? asked.shape.kubernetes),
  TalosUnknown: ({ talos: { version } }) => version !== undefined && !isKnown(version),
  TwoControlPlanes: ({ talos: { version }, shape }) =>
    shape.controlPlanes === 2 && version !== undefined && (isBack('v1.13.0', version) || isBack('v1.13.0', shape.talos)),
  UnknownDocument: isPatchedBy(...DOUBTFUL),
  UnknownField: isPatchedBy(STRANGE_PATCHES.typo, ...DOUBTFUL),
  VersionSkew: asked => changesVersions(asked) || isPatchedBy(...DOUBTFUL)(asked),
  UnknownMachine: ({ node }) => node.machine === 'nobody',
  UnknownService: ({ node, setting }) => node.service === 'ext-nothing' || (node.service === 'ext-tool' && !setting.service),
  WholeCluster: ({ spec }) => spec.machineSelector !== undefined,
}

/** A mirror has another schematic in its image than the one that is asked for by name. */
const isMisled: Explains = ({ talos: { image, schematic }, setting }) => {
  const repository = image?.slice(0, image.lastIndexOf(':')) ?? setting.image?.image ?? ''
  const carried = { [MIRROR]: setting.extensions ? SCHEMATIC : '', [OTHER_MIRROR]: OTHER_SCHEMATIC }[repository]
  return schematic !== undefined && carried !== undefined && carried !== schematic
}

/** The reasons for which an operation stops that the checks let pass; and what they saw too late, as in a stale list, has the name of their rule. */
const REASONS: Readonly<Record<string, Explains>> = {
  // Whether pods can go is seen only once they are asked to, and whether there is an image once it is pulled.
  DrainBlocked: ({ setting, shape }) =>
    setting.twoBudgets === true || (setting.storage === true && shape.workers - (setting.oddities?.aloof === undefined ? 0 : 1) < 2),
  ImageNotFound: asked =>
    namesImage(asked) ||
    namesSchematic(asked) ||
    odd(asked).own !== undefined ||
    odd(asked).secureBoot === true ||
    asked.setting.factory !== undefined ||
    (asked.talos.version !== undefined && !RELEASE_NAMES.includes(asked.talos.version)) ||
    // Of Kubernetes the invented registries have whatever is named like a release that exists.
    asked.kubernetes.version?.startsWith('v1.') === false,
  // That a name tells another schematic is seen by the checks.
  SchematicMismatch: isMisled,
  HealthGateTimeout: ({ setting }) => setting.gates?.some(isHopeless) === true,
  // Talos in a container ends when it is reset, and is what it was when it is started again.
  ResetFailed: isContainer,
  ConfigRejected: asked => isPatchedBy(STRANGE_PATCHES.cutsOff)(asked) || changesVersions(asked),
  BootedOldVersion: isForcedUpon,
  InstallFailed: isForcedUpon,
  ManifestSyncFailed: asked => odd(asked).manifest === 'refused',
  // Static pods are found by names, which two machines may share.
  StaticPodTimeout: asked => odd(asked).crashing !== undefined || odd(asked).namesake !== undefined || changesVersions(asked),
  KubeletTimeout: asked => odd(asked).crashing !== undefined || odd(asked).vendorTail !== undefined,
}

/** What a window had no time for waits for the next, which may be tomorrow, and says so. */
export const waitsForWindow = ({ status }: TalosOperation, { shape: { setting } }: Plan): boolean =>
  setting?.windows !== undefined && status.message?.includes('Outside the maintenance windows') === true

/** That it ended as it did is right: all that was said against it is explained by the plan. */
export const isExplained = (operation: TalosOperation, plan: Plan): boolean => {
  const { metadata, status } = operation
  const { operations, shape } = plan
  if (waitsForWindow(operation, plan)) return true
  const spec = operations.find(o => o.name === metadata.name)?.spec
  if (!spec) return false
  const block = (name: string): object => (spec[name] ?? {}) as object
  const asked: Asked = {
    spec,
    talos: block('talos'),
    node: block('node'),
    kubernetes: block('kubernetes'),
    config: block('config'),
    shape,
    setting: shape.setting ?? {},
    strikes: plan.strikes,
  }
  const { failureReason: reason = '' } = status
  if (reason !== 'PreflightRefused') return (REASONS[reason] ?? RULES[reason])?.(asked) === true
  return status.preflight?.refusals?.every(({ rule }) => RULES[rule]?.(asked) === true) === true
}

/** Nothing had to be done to a machine, or nothing was to be. */
export const isLeftOut = (index: number, { operations, shape: { setting = {}, talos } }: Plan): boolean => {
  const isHeld = setting.marks?.some(m => m.machine === index && (m.annotations?.[ANNOTATION.upgradeHold] ?? 'false') !== 'false')
  const { release } = setting.oddities ?? {}
  const runs = release?.machine === index ? release.talos : talos
  return (
    isHeld === true ||
    operations.some(
      ({ spec }) => spec['machineSelector'] !== undefined || (spec['talos'] as { version?: string } | undefined)?.version === runs,
    )
  )
}
