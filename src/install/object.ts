/** An object as it is written to the API server. */
export type KubeObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels: Readonly<Record<string, string>> }
  readonly [field: string]: unknown
}

/** Absent: an object of the whole cluster. */
export type Place = { readonly namespace?: string }

/** On everything that belongs to an installation. */
export const LABELS = { 'app.kubernetes.io/name': 'ichor', 'app.kubernetes.io/part-of': 'ichor' } as const

export const object = (
  apiVersion: string,
  kind: string,
  { name, namespace, labels = {} }: Place & { readonly name: string; readonly labels?: Readonly<Record<string, string>> },
  rest: Readonly<Record<string, unknown>>,
): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }), labels: { ...LABELS, ...labels } },
  ...rest,
})
