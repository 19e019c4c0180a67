import { z } from 'zod'
import { DURATION_PATTERN, LIMIT_PATTERN } from './duration.ts'

/**
 * The few shapes that all resources share. Every string, list and map has a bound: the API server multiplies them when it estimates what a
 * CEL rule may cost, and an unbounded field makes it refuse the whole CRD.
 *
 * Sentences in `.meta({ description })` are what `kubectl explain`, the CLI's help and the reference pages show. Keys that start with
 * `x-kubernetes-` go into the CRD as they are.
 */

/** The part of a CEL rule that checks a pattern. Where a rule has it, the CRD says the rule's sentence and not the regular expression. */
export const celMatches = (pattern: string): string => `self.matches(r'${pattern}')`

/** A pattern with a sentence, which zod and the API server both say instead of the regular expression. */
export const matching = (max: number, pattern: string, message: string) =>
  z
    .string()
    .max(max)
    .regex(new RegExp(pattern), message)
    .meta({ 'x-kubernetes-validations': [{ rule: celMatches(pattern), message }] })

/** An RFC 1123 subdomain, as object names are. */
export const objectName = () =>
  matching(
    253,
    '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
    'must be the name of an object: lower-case letters, digits, - and ., beginning and ending with a letter or a digit',
  )

export const text = (max = 1024) => z.string().max(max)
export const duration = () => matching(32, DURATION_PATTERN, 'must be a duration with units, for example 90s, 10m or 1h30m')
/** How long something may take: no time at all is nothing that could be meant. */
export const limit = () => matching(32, LIMIT_PATTERN, 'must be a duration with units and longer than zero, for example 90s, 10m or 1h30m')
export const timestamp = () => z.string().max(64).meta({ format: 'date-time' })
export const int32 = () => z.number().int().min(0).max(2_147_483_647).meta({ format: 'int32' })
export const int64 = () => z.number().int().min(0).meta({ format: 'int64' })

/** What a status says before anybody has looked: the generation of no spec, so that who waits for its answer (kstatus, Flux) does not take it for one. */
export const UNSEEN = { observedGeneration: -1 } as const
export const answeredGeneration = () =>
  z.number().int().min(UNSEEN.observedGeneration).optional().meta({
    format: 'int64',
    description: 'The generation of spec that this status answers; -1 before the first look.',
  })

/** A reference to an object of the same namespace by name. */
export const nameRef = (what: string) => z.object({ name: objectName().meta({ description: `Name of the ${what}.` }) })

const PERCENT_PATTERN = '^(100|[1-9][0-9]?)%$'
const INT_OR_PERCENT = 'must be a number from 1 to 1000 or a percentage from 1% to 100%'

/** A number or a percentage. In the CRD: `x-kubernetes-int-or-string`. */
export const intOrPercent = () =>
  z.union([z.number().int().min(1).max(1000), z.string().max(5).regex(new RegExp(PERCENT_PATTERN))], INT_OR_PERCENT).meta({
    'x-kubernetes-int-or-string': true,
    'x-kubernetes-validations': [{ rule: `type(self) == int || ${celMatches(PERCENT_PATTERN)}`, message: INT_OR_PERCENT }],
  })

/** `metav1.Condition`, so that `kubectl wait`, Flux, Argo CD and kstatus understand it. */
export const condition = z.object({
  type: text(316).meta({ description: 'What the condition is about, for example Ready.' }),
  status: z.enum(['True', 'False', 'Unknown']).meta({ description: 'Whether it holds.' }),
  reason: text(1024).meta({ description: 'A word for the cause, in CamelCase.' }),
  message: text(32_768).meta({ description: 'A sentence for people.' }),
  observedGeneration: int64().optional().meta({ description: 'The generation that the condition was computed from.' }),
  lastTransitionTime: timestamp().meta({ description: 'When the status changed last.' }),
})
export type Condition = z.infer<typeof condition>

export const conditions = () =>
  z
    .array(condition)
    .max(16)
    .meta({
      description: 'Conditions as kstatus reads them: Ready, Reconciling, Stalled.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    })

/** What we read and write of an object's metadata. */
export type Metadata = {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly creationTimestamp: string
  readonly deletionTimestamp?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly finalizers: readonly string[]
  /** The manager that wrote the annotation `retry` by an apply, be it the server's or kubectl's; absent where it was written imperatively. */
  readonly retryAppliedBy?: string
}

/** Everything that a CRD needs to know of a resource, besides its two schemas. */
export type ResourceDefinition = {
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly description: string
  readonly spec: z.ZodType
  readonly status: z.ZodType
  /** CEL rules on the whole object, of whose metadata they see the name alone. */
  readonly rules?: readonly CelRule[]
  /** CEL rules on `spec`; `oldSelf` makes a rule a transition rule. */
  readonly specRules: readonly CelRule[]
  readonly columns: readonly PrintColumn[]
}

export type CelRule = { readonly rule: string; readonly message?: string; readonly messageExpression?: string; readonly fieldPath?: string }

export type PrintColumn = {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date' | 'boolean'
  readonly jsonPath: string
  readonly description: string
  /** Columns above 0 are shown by `-o wide` only. */
  readonly priority?: number
}
