import type { z } from 'zod'
import type { KindBlock } from '../api/talos-operation.ts'
import type { TalosOperation, Target } from '../api/talos-operation.ts'
import type { Reason } from '../api/reasons.ts'
import type { Fault, Result } from '../ports/fault.ts'
import type { Kube } from '../ports/kube.ts'
import type { LongCall, Talos } from '../ports/talos.ts'
import type { Need, View, World } from './world.ts'

/** Is it so? With the reason in words, because the answer ends up in front of a person. */
export type Answer =
  /** `but`: what speaks against it, where that counts only for a while. */
  | { readonly is: 'yes'; readonly but?: string }
  | { readonly is: 'no'; readonly why: string }
  /** It cannot be told now: the machine does not answer. */
  | { readonly is: 'unknown'; readonly why: string }
  /** It can never become so any more. */
  | { readonly is: 'failed'; readonly reason: Reason; readonly message: string }

/** May I? */
export type Verdict =
  | { readonly may: 'yes' }
  | { readonly may: 'wait'; readonly why: string; readonly reason?: Reason }
  | { readonly may: 'no'; readonly reason: Reason; readonly message: string }

/** Whether it is the turn of a machine: if not now, then later. */
export type Turn = Exclude<Verdict, { readonly may: 'no' }>

export const YES: Answer & Turn = { is: 'yes', may: 'yes' }
export const no = (why: string): Answer => ({ is: 'no', why })
export const unknown = (why: string): Answer => ({ is: 'unknown', why })
export const wait = (why: string, reason?: Reason): Turn => (reason ? { may: 'wait', why, reason } : { may: 'wait', why })

export type ActPorts = { readonly talos: Talos; readonly kube: Kube }

type Common = {
  /** In the -ing form, for the message: "rebooting wk-1". */
  readonly describe: (view: View) => string
  /** Takes something away from its users. Right before it, leadership and the cluster lock are read again. */
  readonly disruptive: boolean
  /** The fault that means the step has failed, as opposed to one after which the act is simply tried again. */
  readonly fatal?: (
    fault: Fault,
    subject: Pick<View, 'operation' | 'target'>,
  ) => { readonly reason: Reason; readonly message: string } | undefined
}

/** One idempotent nudge. */
export type ShortAct = Common & { readonly long: false; readonly run: (ports: ActPorts, view: View) => Promise<Result<void>> }

/** A nudge that takes minutes and runs beside the queue. Its answer becomes a receipt, valid while the boot id is the one it started under. */
export type LongAct = Common & {
  readonly long: true
  readonly run: (ports: ActPorts, view: View, call: LongCall) => Promise<Result<LongOutcome>>
}
export type LongOutcome = { readonly receipt: string } | { readonly failed: { readonly reason: Reason; readonly message: string } }

export type Act = ShortAct | LongAct

/** Two questions and one nudge. */
export type Step = {
  readonly name: string
  /** One sentence for the docs. */
  readonly summary: string
  /** Whether the step exists for this target; decided on what was recorded when it was opened, so the answer never changes. */
  readonly applies?: (view: View) => boolean
  /** What `done` asks about, beyond the machine itself and the Nodes, which every step may ask about. */
  readonly needs?: (view: View) => readonly Need[]
  /** Need I? `isPast`: the target has gone past this step, and what it was to do is to hold on. */
  readonly done: (view: View, isPast?: boolean) => Answer
  /** How long `done` must have held, seen at least twice, before it counts. */
  readonly stableMs?: (view: View) => number | undefined
  /** What `guard` asks about besides; gathered only when the act is due. */
  readonly guardNeeds?: (view: View) => readonly Need[]
  /** May I? Asked only when the act is due. */
  readonly guard?: (view: View) => Verdict
  /** How long the guard must have allowed it, seen at least twice, before the act. */
  readonly guardStableMs?: (view: View) => number | undefined
  /** Nothing to do but wait where absent. */
  readonly act?: Act
  /** How long the effect of the act may take to show, before it is given again. */
  readonly settleMs?: (view: View) => number
  /** From the moment when the step becomes current. Undefined: no limit (and then it must be a wait that names what it waits for). */
  readonly deadlineMs?: (view: View) => number | undefined
  /** The reason when the deadline passes. */
  readonly failure: Reason | ((view: View) => Reason)
  /** What a person can do when it has failed; one sentence. */
  readonly remedy?: string | ((view: View) => string)
  /** It leaves evidence that cannot be undone. Once that is there, the steps before it are history. */
  readonly milestone?: true
  /** From its first intention on the target is carried to its end, whatever is asked meanwhile. */
  readonly commits?: true
}

/** A step that gives something back, which may not always be. */
export type GivingBack = Step & Required<Pick<Step, 'guard'>>

/** What opening a target leads to. */
export type Opening =
  | { readonly open: { readonly goal: Readonly<Record<string, string>> } }
  /** Left out; with `afterMs` only when that has stayed so for so long. */
  | { readonly skip: string; readonly afterMs?: number }
  | { readonly wait: string; readonly reason: Reason }
  | { readonly fail: { readonly reason: Reason; readonly message: string } }

/** A machine of the plan: its place is frozen when the operation starts. */
export type Candidate = Pick<Target, 'name' | 'hostname' | 'node' | 'address' | 'role'> & { readonly skip?: string }

/** A part of an operation that goes over machines, each through the same steps. `status.machines` are those of the stage that it is in. */
export type Stage = {
  /** What `status.stage` says. */
  readonly name: string
  readonly summary: string
  /** Whether the operation has this stage; decided on its spec alone, so the answer never changes. Absent: every operation of the kind has it. */
  readonly applies?: (operation: TalosOperation) => boolean
  /** What ordering the machines needs to know. */
  readonly orderNeeds: (operation: TalosOperation, world: World) => readonly Need[]
  readonly order: (operation: TalosOperation, world: World) => readonly Candidate[]
  /**
   * Whether its turn has come: the tiers before it are through, and as few machines are away as was asked for. Needs the Nodes only. A wait with a
   * reason is one for machines that are away by nobody's order, and has an end.
   */
  readonly turn: (view: View) => Turn
  readonly openNeeds?: (view: View) => readonly Need[]
  /** Asked right before a target is opened: what exactly is to be done, or why nothing is. */
  readonly open: (view: View) => Opening
  /** Why what was recorded when the target was opened is no longer true, so that it has to be opened anew. Asked only before a committing step. */
  readonly outdated?: (view: View) => string | undefined
  /** A machine that failed before a committing step is gone on with as it was opened; else its turn comes again, with all that is asked then. */
  readonly retriesInPlace?: true
  readonly steps: readonly Step[]
  /** A machine that is done is no longer one of the cluster. */
  readonly removes?: true
  /** What is carried out when a target is closed before its end, where the machine is healthy: what we took is given back. */
  readonly abandon: readonly GivingBack[]
  /** For `--plan`: what would happen to this machine. */
  readonly preview: (view: View) => PlannedMachine
  /** What came of a machine that is done, in a few words; the versions before and after where absent. */
  readonly outcome?: (target: Target, after: Target['after']) => string
}

export type Refusal = {
  readonly rule: string
  readonly machine?: string
  /** What was found where, and what would be legal. */
  readonly message: string
  readonly overridable: boolean
}

export type Checked = {
  readonly found: {
    readonly talos?: VersionRange
    readonly kubernetes?: VersionRange
    readonly etcd?: VersionRange
    readonly cilium?: string
  }
  readonly refusals: readonly Refusal[]
  readonly notes: readonly string[]
  /** Hashes of what the spec refers to, by name. They stand in status from then on, so that a change of it is noticed. */
  readonly pins?: Readonly<Record<string, string>>
}
export type VersionRange = { readonly lowest: string; readonly highest: string }

/** What a plan says about one machine. */
export type PlannedMachine = {
  readonly from: string
  readonly to: string
  /** What its users lose meanwhile, one sentence each. */
  readonly loses: readonly string[]
  /** What changes on it, as lines of `diff -u`, without secrets. */
  readonly diff?: string
}

/** One kind of operation, as a value. Everything that the CRD, the CLI, the docs and the engine know of a kind is in here. */
export type Kind<Spec extends z.ZodObject = z.ZodObject> = KindBlock & {
  readonly spec: Spec
  readonly checkNeeds: (operation: TalosOperation, world: World) => readonly Need[]
  /** Everything that speaks against it, at once, before the first touch. */
  readonly checks: (operation: TalosOperation, world: World) => Checked
  /**
   * What it does, in a few words, where doing it twice is not the same as doing it once: an operation of the same name that asks for the same within an
   * hour is refused. Absent, or undefined where the world is known and shows so: there would be nothing to do.
   */
  readonly deed?: (operation: TalosOperation, world?: World) => string | undefined
  /** What came of the whole when its last stage is through, without a full stop. Absent or undefined: how many machines each stage has done. */
  readonly outcome?: (operation: TalosOperation) => string | undefined
  /** One after the other, each over its own machines. */
  readonly stages: readonly Stage[]
}

/** Gives the value its type; the block is read with `blockOf`. */
export const kind = <Spec extends z.ZodObject>(value: Kind<Spec>): Kind<Spec> => value

/** The kind's own block, with its defaults. The API server has validated it. */
export const blockOf = <Spec extends z.ZodObject>(k: Pick<Kind<Spec>, 'block' | 'spec'>, operation: TalosOperation): z.output<Spec> =>
  k.spec.parse(operation.spec[k.block])
