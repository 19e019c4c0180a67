import type { Component } from '../../world/kubernetes-config.ts'
import type { Machine } from '../../world/machine.ts'
import type { Site } from '../../world/site.ts'
import type { StaticPod } from '../../world/static-pods.ts'
import type { Cancel } from '../../world/time.ts'

/** How often Talos asks the kubelet for its static pods. */
const POLL_MS = 15_000
/** After a restart the kubelet is asked first when it has been up for so long. */
const KUBELET_ANEW_MS = 10_000

/** What the kubelets have said of their static pods, when Talos asked them last. */
export type StaticPodReports = {
  /** Undefined: there is nobody to ask, or nobody was asked yet. */
  readonly of: (machine: Machine) => ReadonlyMap<Component, StaticPod> | undefined
  readonly close: () => void
}

type Poll = { said: ReadonlyMap<Component, StaticPod> | undefined; cancel: Cancel }

/** @param changed Told after each answer that another one went before. */
export const createStaticPodReports = (site: Site, changed: () => void): StaticPodReports => {
  const polls = new Map<Machine, Poll>()
  const ask = (machine: Machine, poll: Poll): void => {
    poll.said = new Map(machine.pods)
    poll.cancel = site.schedule.after(site.durations.fixed(POLL_MS), () => ask(machine, poll))
    changed()
  }
  /** @param isKubeletNew It has come back to pods that went on without it. */
  const look = (machine: Machine, isKubeletNew: boolean): void => {
    const poll = polls.get(machine)
    if (!machine.kubelet || !machine.staticPods) {
      poll?.cancel()
      if (polls.delete(machine)) changed()
      return
    }
    if (poll) return
    const begun: Poll = { said: undefined, cancel: () => {} }
    polls.set(machine, begun)
    if (isKubeletNew) begun.cancel = site.schedule.after(site.durations.fixed(KUBELET_ANEW_MS), () => ask(machine, begun))
    else ask(machine, begun)
  }
  for (const machine of site.machines) look(machine, false)
  const unlisten = site.listen((machine, change) => {
    if (change === 'static-pods' || change === 'kubelet-up' || change === 'kubelet-down') look(machine, change === 'kubelet-up')
  })
  return {
    of: machine => polls.get(machine)?.said,
    close: () => {
      unlisten()
      for (const { cancel } of polls.values()) cancel()
    },
  }
}
