/** Kubernetes' own taint of a Node that is cordoned. */
export const CORDON_TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const

type Taint = { readonly key: string; readonly value?: string; readonly effect: string }

/** Whether the tolerations of a pod let the scheduler put it where that taint is. */
export const tolerates = (tolerations: unknown, taint: Taint): boolean =>
  Array.isArray(tolerations) &&
  tolerations.some((toleration: unknown) => {
    if (typeof toleration !== 'object' || toleration === null) return false
    const { key = '', operator = 'Equal', value = '', effect = '' } = toleration as Readonly<Record<string, unknown>>
    if (effect !== '' && effect !== taint.effect) return false
    if (operator === 'Exists') return key === '' || key === taint.key
    return operator === 'Equal' && key === taint.key && value === (taint.value ?? '')
  })

export const toleratesCordon = (tolerations: unknown): boolean => tolerates(tolerations, CORDON_TAINT)
