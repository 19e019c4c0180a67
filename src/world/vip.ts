import type { Machine } from './machine.ts'
import type { Site } from './site.ts'

/** The virtual address of the API server, which one control plane has at a time. */
export type Vip = {
  /** Empty where the cluster has none. */
  readonly address: string
  /** Who has it; undefined while nobody has. */
  readonly holder: () => Machine | undefined
  /** Nobody has it for so long; then whoever had it takes it again. */
  readonly lose: (ms: number) => void
}

/** From a holder's end until another control plane has announced the address. */
const HANDOVER_MS = 5000

export const createVip = (site: Site, address = ''): Vip => {
  const canHold = (machine: Machine): boolean => machine.role === 'controlplane' && machine.kubelet && machine.powered && !machine.cut
  let held = address === '' ? undefined : site.machines.find(canHold)
  const give = (machine: Machine | undefined): void => {
    held = machine
    site.journal.write(machine?.name ?? '', 'vip', machine ? `has ${address}` : `nobody has ${address}`)
  }
  const takeOver = (): void => {
    if (held) return
    const next = site.machines.find(canHold)
    if (next) give(next)
    else site.schedule.after(site.durations.fixed(HANDOVER_MS), takeOver)
  }
  site.listen((machine, change) => {
    if (machine !== held || change !== 'kubelet-down') return
    give(undefined)
    site.schedule.after(site.durations.fixed(HANDOVER_MS), takeOver)
  })
  return {
    address,
    holder: () => held,
    lose: ms => {
      const before = held
      if (!before) return
      give(undefined)
      site.schedule.after(ms, () => (canHold(before) ? give(before) : takeOver()))
    },
  }
}
