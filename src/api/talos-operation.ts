import { z } from 'zod'
import { PHASE_NAMES, TARGET_PHASE_NAMES } from './phases.ts'
import { REASON_NAMES } from './reasons.ts'
import type { CelRule, Metadata, ResourceDefinition } from './schema.ts'
import {
  answeredGeneration,
  conditions,
  duration,
  int32,
  int64,
  intOrPercent,
  limit,
  nameRef,
  objectName,
  text,
  timestamp,
} from './schema.ts'

/** The fields of the envelope that some operations have no use for. The API takes them with any kind; commands offer them only where they matter. */
export type OptionalField = 'maxUnavailable' | 'drain' | 'timeouts' | 'minReadySeconds'

/** What can be done to one machine: one of the actions of a kind. */
export type KindAction = {
  readonly name: string
  readonly summary: string
  /** The fields of the block that go with it, besides `machine` and `action`. */
  readonly fields: readonly string[]
  /** Those of them that it cannot do without. */
  readonly needs?: readonly string[]
  /** As `KindBlock.start`. */
  readonly start?: string
  /** As `KindBlock.ignores`. */
  readonly ignores?: readonly OptionalField[]
}

/** A kind's own block of an operation's spec, as the envelope sees it. The kinds themselves live elsewhere. */
export type KindBlock = {
  /** The value of `spec.kind`, for example `ca-rotation`. */
  readonly name: string
  /** The field of `spec` that holds the block, for example `caRotation`. */
  readonly block: string
  readonly summary: string
  readonly spec: z.ZodType
  /**
   * It can take a cluster down, or destroys something: who starts it types the cluster's name, and needs the verb `start` on this subresource of
   * talosoperations (spec 8). Absent: whoever may create operations may start it.
   */
  readonly start?: string
  /** Where the block has the fields `machine` and `action`: what can be done to one machine. Each is a command of its own. */
  readonly actions?: readonly KindAction[]
  /** Where it has neither actions nor a version: the second word of its command, `NAME VERB`. Absent: `start NAME`. */
  readonly verb?: string
  /** A list in the block that is made of files: each is an item, its text the field `as`; its checks call them `called` 1, 2 …. The command takes them with `--file`. */
  readonly files?: { readonly field: string; readonly as: string; readonly called: string; readonly description: string }
  /** What it never looks at. */
  readonly ignores?: readonly OptionalField[]
  /** It is about the cluster as a whole, and refused where machines are selected: its command offers no `--machines`. */
  readonly whole?: true
}

const requirement = z.object({
  key: text(317).meta({ description: 'The key of the label.' }),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).meta({ description: 'How the label is compared.' }),
  values: z.array(text(63)).max(64).optional().meta({ description: 'The values, for In and NotIn.' }),
})

export const labelSelector = z.object({
  matchLabels: z
    .record(z.string().max(317), text(63))
    .optional()
    .meta({ description: 'Labels that must have exactly these values.', maxProperties: 32 }),
  matchExpressions: z.array(requirement).max(32).optional().meta({ description: 'Requirements that must all hold.' }),
})
export type LabelSelector = z.infer<typeof labelSelector>

const machineSelector = labelSelector.extend({
  names: z
    .array(text(253))
    .max(64)
    .optional()
    .meta({ description: 'Names of TalosMachines, of which it has to be one.', 'x-kubernetes-list-type': 'set' }),
})

export const drain = z.object({
  policy: z.enum(['wait', 'force', 'skip']).default('wait').meta({
    description:
      'wait: honour PodDisruptionBudgets, fail when the timeout passes. force: after the timeout, delete what a budget still holds. skip: do not drain at all.',
  }),
  timeout: duration().default('10m').meta({ description: 'How long a node may take to drain.' }),
})

const envelope = {
  clusterRef: nameRef('TalosCluster, in the same namespace').meta({ description: 'The cluster to act on.' }),
  paused: z
    .boolean()
    .default(false)
    .meta({ description: "The operator's pause. A machine in the middle of what has to be finished is carried to its end first." }),
  override: z
    .boolean()
    .default(false)
    .meta({ description: 'Go past refusals of the version and combination rules. Needs the verb override. Can only be turned on.' }),
  cancelled: z.boolean().default(false).meta({ description: 'Stop at the next safe point for good. Can only be turned on.' }),
  maxUnavailable: intOrPercent().default(1).meta({
    description:
      'How many workers may be away at once: a number, or a percentage of the workers (rounded down, at least one). Workers that are not ready for other reasons count. Control planes always go one at a time.',
  }),
  machineSelector: machineSelector
    .optional()
    .meta({ description: 'Only TalosMachines with these labels, or of these names. Absent: all machines of the cluster.' }),
  drain: drain.prefault({}).meta({ description: 'How nodes are drained before they go away.' }),
  timeouts: z
    .object({
      reboot: limit()
        .default('30m')
        .meta({ description: 'How long a machine may take from the reboot call until it answers with a new boot id.' }),
    })
    .prefault({})
    .meta({ description: 'How long single steps may take.' }),
  acknowledge: z
    .array(z.enum(['api-outage', 'no-fault-tolerance']))
    .max(4)
    .default([])
    .meta({
      description:
        'Consequences that you accept. api-outage: the Kubernetes API stops while the only control plane, or one of two, is away. no-fault-tolerance: a control plane leaves for good although none of those that stay may fail.',
      'x-kubernetes-list-type': 'set',
    }),
  minReadySeconds: int32()
    .max(86_400)
    .default(0)
    .meta({ description: 'How long a machine must have been ready, in seconds, before the next one is touched.' }),
  startAfter: timestamp().optional().meta({ description: 'Nothing is begun before this time.' }),
  again: z.boolean().default(false).meta({
    description:
      'Act although an operation of this name did the same within the last hour. Without it such an operation is refused, so that nothing that creates it again and again can reboot a machine in a circle.',
  }),
  ignoreWindows: z
    .boolean()
    .default(false)
    .meta({ description: "Do not wait for the cluster's maintenance windows. Needs the verb override." }),
  ttlAfterFinished: duration().optional().meta({ description: 'Delete the operation this long after it finished. Absent: keep it.' }),
}

/** The fields of `spec` that may change after creation. */
export const MUTABLE_FIELDS = ['paused', 'override', 'cancelled'] as const

const stamped = { at: timestamp().meta({ description: 'When it happened.' }) }

const versionRange = z.object({
  lowest: text(64).meta({ description: 'The lowest version found.' }),
  highest: text(64).meta({ description: 'The highest version found.' }),
})

const refusal = z.object({
  rule: text(63).meta({ description: 'The rule that refused.' }),
  message: text(2048).meta({ description: 'What was found, where, and what would be legal.' }),
  machine: text(253).optional().meta({ description: 'The machine, where the rule is about one.' }),
  overridable: z.boolean().meta({ description: 'Whether spec.override passes it.' }),
  overridden: z.boolean().meta({ description: 'Whether spec.override passed it.' }),
})
export type RecordedRefusal = z.infer<typeof refusal>

const receipt = z.object({
  step: text(63).meta({ description: 'The step whose long act gave the receipt.' }),
  bootID: text(64).meta({ description: 'The boot id under which it stays valid.' }),
  value: text(1024).meta({ description: 'What only the answer said, for example the digest of the pulled image.' }),
  ...stamped,
})
export type Receipt = z.infer<typeof receipt>

const reason = () => z.enum(REASON_NAMES)

const machineState = z.object({
  version: text(64).optional().meta({ description: 'Its Talos version.' }),
  schematic: text(128).optional().meta({ description: 'Its Image Factory schematic id; empty where its image is no factory image.' }),
  bootID: text(64).optional().meta({ description: 'The id of its boot.' }),
  nodeID: text(64).optional().meta({ description: 'By which Talos knows it from others, also of its name.' }),
  cordoned: z.boolean().optional().meta({ description: 'Whether its Node was cordoned.' }),
})

export const target = z.object({
  name: objectName().meta({ description: 'The name of its TalosMachine.' }),
  hostname: text(253).optional().meta({ description: 'Its host name.' }),
  node: text(253).optional().meta({ description: 'The name of its Kubernetes Node.' }),
  address: text(253).optional().meta({ description: 'Its address when the operation planned.' }),
  role: z.enum(['controlplane', 'worker']).meta({ description: 'Whether it is a control plane or a worker.' }),
  phase: z.enum(TARGET_PHASE_NAMES).meta({ description: 'Where it stands.' }),
  step: text(63).optional().meta({ description: 'The step it is in.' }),
  stepStartedAt: timestamp().optional().meta({ description: 'When that step became current.' }),
  actedAt: timestamp().optional().meta({ description: "When the step's act was intended last. Written before the act." }),
  firstActedAt: timestamp()
    .optional()
    .meta({ description: "When the step's act was intended first; the time that its effect may take runs from here." }),
  committed: text(63)
    .optional()
    .meta({ description: 'The step from whose intention on the machine is half done until it is all done. Written before the act.' }),
  attempts: int32().optional().meta({ description: 'How often the current step was intended.' }),
  actedBefore: z
    .boolean()
    .optional()
    .meta({ description: 'Whether the act of the current step was given in an earlier try, which failed.' }),
  retryAt: timestamp().optional().meta({ description: 'After a bad answer: not before this time is the act tried again.' }),
  fault: text(1024).optional().meta({ description: 'What that answer said.' }),
  stableSince: timestamp().optional().meta({ description: 'Since when the condition of a step that asks for stability has held.' }),
  before: machineState.optional().meta({ description: 'What the machine was before its first act.' }),
  after: machineState.optional().meta({ description: 'What the machine was when it was closed.' }),
  goal: z
    .record(z.string().max(63), text(512))
    .optional()
    .meta({ description: 'What was chosen for this machine when it was opened, for example its installer image.', maxProperties: 8 }),
  receipts: z.array(receipt).max(8).optional().meta({ description: 'What only the answers of long acts said.' }),
  failure: z
    .object({ reason: reason().meta({ description: 'Why it failed.' }), ...stamped })
    .optional()
    .meta({ description: 'How it failed last since it was opened; kept when it is tried again.' }),
  startedAt: timestamp().optional().meta({ description: 'When it was opened.' }),
  finishedAt: timestamp().optional().meta({ description: 'When it was closed.' }),
  message: text(1024).optional().meta({ description: 'What it does or waits for now, or why it ended as it did.' }),
})
export type Target = z.infer<typeof target>
export type MachineState = z.infer<typeof machineState>

const gateState = z.object({
  name: text(63).meta({ description: 'The gate.' }),
  generation: int64().meta({ description: 'The generation of the TalosCluster whose gate it is: one that was changed begins anew.' }),
  waitingSince: timestamp()
    .optional()
    .meta({ description: 'Since when nothing but the gates holds up the next machine; absent while others are at work.' }),
  holdsSince: timestamp().optional().meta({ description: 'Since when it has held without a gap; absent while it does not hold.' }),
  seenAt: timestamp().meta({ description: 'When it was seen so last, to a few seconds.' }),
  seen: text(512).meta({ description: 'What was seen in the object, or why it does not hold.' }),
})
export type GateState = z.infer<typeof gateState>

export const operationStatus = z
  .object({
    phase: z.enum(PHASE_NAMES).optional().meta({ description: 'Pending, Running, Paused, Completed or Cancelled.' }),
    failureReason: reason().optional().meta({ description: 'Why the operation is Paused; absent when an operator paused it.' }),
    message: text(4096).optional().meta({ description: 'One sentence: what it does, or what it waits for, since when and until when.' }),
    observedGeneration: answeredGeneration(),
    startedAt: timestamp().optional().meta({ description: 'When the first machine was opened.' }),
    completedAt: timestamp().optional().meta({ description: 'When the operation reached Completed or Cancelled.' }),
    lastRetry: timestamp().optional().meta({ description: 'When a retry was honoured last.' }),
    appliedRetry: z
      .object({
        ...stamped,
        ignored: int32().meta({ description: 'How often it was applied again since, without effect.' }),
      })
      .optional()
      .meta({ description: 'A retry that was written by an apply is a standing wish: honoured once, then ignored.' }),
    lastFailure: z
      .object({
        reason: reason().meta({ description: 'Why it failed.' }),
        message: text(4096).meta({ description: 'What happened.' }),
        machine: text(253).optional().meta({ description: 'The machine it happened on.' }),
        step: text(63).optional().meta({ description: 'The step that failed.' }),
        ...stamped,
      })
      .optional()
      .meta({ description: 'The last failure, kept after it was retried.' }),
    stage: text(63).optional().meta({ description: 'The stage it is in.' }),
    stages: z
      .array(
        z.object({
          name: text(63).meta({ description: 'The stage.' }),
          done: int32().meta({ description: 'How many of its machines were done.' }),
          skipped: int32().meta({ description: 'How many were skipped.' }),
        }),
      )
      .max(16)
      .optional()
      .meta({ description: 'The stages that it went through, oldest first.' }),
    waiting: z
      .object({
        for: text(1024).meta({ description: 'What it waits for.' }),
        since: timestamp().meta({ description: 'Since when.' }),
        until: timestamp().optional().meta({ description: 'When the wait becomes a failure; absent where it does not.' }),
      })
      .optional()
      .meta({ description: 'The wait that holds it up, if any.' }),
    gates: z
      .array(gateState)
      .max(16)
      .optional()
      .meta({
        description: 'The health gates of the cluster as they were seen, while the next machine waits for them.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
    preflight: z
      .object({
        checkedAt: timestamp().meta({ description: 'When the checks ran last.' }),
        underLock: z
          .boolean()
          .meta({ description: 'Whether they ran with the cluster lock held, so that nothing could change behind them.' }),
        talos: versionRange.optional().meta({ description: 'Talos versions found.' }),
        kubernetes: versionRange.optional().meta({ description: 'Kubernetes versions found.' }),
        etcd: versionRange.optional().meta({ description: 'etcd versions found.' }),
        cilium: text(64).optional().meta({ description: 'Cilium version found; absent where Cilium does not run.' }),
        refusals: z.array(refusal).max(64).meta({ description: 'Every refusal, overridden ones too.' }),
        notes: z
          .array(text(1024))
          .max(32)
          .optional()
          .meta({ description: 'What the checks found worth telling although nothing is refused.' }),
        pins: z
          .record(z.string().max(512), text(64))
          .optional()
          .meta({ description: 'Hashes of what the spec refers to, so that a change of it is noticed.', maxProperties: 8 }),
      })
      .optional()
      .meta({ description: 'What the checks found.' }),
    lock: z
      .object({
        lease: text(253).meta({ description: 'The Lease that is the cluster lock.' }),
        holder: text(512).meta({ description: 'Who holds it.' }),
        since: timestamp().optional().meta({ description: 'Since when.' }),
      })
      .optional()
      .meta({ description: 'The cluster lock, when the operation holds it or waits for it.' }),
    machines: z.array(target).max(1024).optional().meta({
      description: 'The machines of the stage it is in, in their order.',
      // The controller alone writes it, and whole. With a list whose items are known one by one, who owns which of their fields would be half of the object.
      'x-kubernetes-list-type': 'atomic',
    }),
    progress: z
      .object({
        done: int32().meta({ description: 'How many machines are done.' }),
        skipped: int32().meta({ description: 'How many were skipped.' }),
        total: int32().meta({ description: 'How many there are in all.' }),
        stage: int32().optional().meta({ description: 'Which stage they are of, counted from 1; absent where the operation has but one.' }),
        stages: int32().optional().meta({ description: 'How many stages the operation has; absent where it has but one.' }),
        summary: text(64).meta({ description: 'For print columns: done of total, and the stage where there are several.' }),
      })
      .optional()
      .meta({ description: 'How far it is.' }),
    conditions: conditions().optional(),
    history: z
      .array(z.object({ ...stamped, message: text(512).meta({ description: 'What was decided.' }) }))
      .max(20)
      .optional()
      .meta({ description: 'The last few decisions, oldest first.' }),
  })
  .meta({ description: 'The record of its progress, as observed on the machines.' })
export type OperationStatus = z.infer<typeof operationStatus>

const envelopeSchema = z.object(envelope)
/** The part of `spec` that all kinds share. The kind's own block is read by the kind. */
export type OperationSpec = z.infer<typeof envelopeSchema> & { readonly kind: string; readonly [block: string]: unknown }

export type TalosOperation = { readonly metadata: Metadata; readonly spec: OperationSpec; readonly status: OperationStatus }

const blockRule = ({ name, block }: KindBlock): CelRule => ({
  rule: `(self.kind == '${name}') == has(self.${block})`,
  messageExpression: `'spec.${block} must be set exactly when spec.kind is ${name}; spec.kind is ' + self.kind`,
})

const frozenRule = (field: string): CelRule => ({
  rule: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
  message: `spec.${field} cannot be changed after creation. Only ${MUTABLE_FIELDS.join(', ')} can; create another operation instead.`,
})

const oneWayRule = (field: string): CelRule => ({
  rule: `!oldSelf.${field} || self.${field}`,
  message: `spec.${field} can only be turned on. Create another operation instead.`,
})

/** The resource, with the blocks of the kinds that are built. */
export const talosOperation = (kinds: readonly KindBlock[]): ResourceDefinition => {
  const names = kinds.map(k => k.name) as [string, ...string[]]
  const { clusterRef, ...rest } = envelope
  const spec = z
    .object({
      clusterRef,
      kind: z.enum(names).meta({ description: `What to do. ${kinds.map(k => `${k.name}: ${k.summary}`).join(' ')}` }),
      ...rest,
      ...Object.fromEntries(kinds.map(k => [k.block, k.spec.optional().meta({ description: k.summary, ...k.spec.meta() })])),
    })
    .meta({
      description: `What to do, on which machines and how. Frozen after creation but for ${MUTABLE_FIELDS.join(', ')}. Exactly the block that kind names is set.`,
    })
  const frozen = Object.keys(spec.shape).filter(f => !(MUTABLE_FIELDS as readonly string[]).includes(f))
  return {
    kind: 'TalosOperation',
    plural: 'talosoperations',
    singular: 'talosoperation',
    shortNames: ['top'],
    description: 'One action on a Talos cluster, and the record of its progress.',
    spec,
    status: operationStatus,
    specRules: [...kinds.map(blockRule), ...frozen.map(frozenRule), oneWayRule('override'), oneWayRule('cancelled')],
    columns: [
      { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name', description: 'The cluster.' },
      { name: 'Kind', type: 'string', jsonPath: '.spec.kind', description: 'What it does.' },
      { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Where it stands.' },
      { name: 'Reason', type: 'string', jsonPath: '.status.failureReason', description: 'Why it is Paused.' },
      {
        name: 'Done',
        type: 'string',
        jsonPath: '.status.progress.summary',
        description: 'Machines done of all, in which stage of how many.',
      },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Since when it exists.' },
      { name: 'Message', type: 'string', jsonPath: '.status.message', description: 'What it does or waits for.', priority: 1 },
      { name: 'Lock', type: 'string', jsonPath: '.status.lock.holder', description: 'Who holds the cluster lock.', priority: 1 },
    ],
  }
}

export type { Condition } from './schema.ts'
