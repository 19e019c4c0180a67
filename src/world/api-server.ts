import { imageVersion } from './kubernetes-config.ts'
import { isServing } from './static-pods.ts'
import type { Site } from './site.ts'

/** Whether the Kubernetes API of the cluster answers, and who waits for it. */
export type ApiServer = {
  /** Some control plane runs kube-apiserver, can be reached, and its etcd has a quorum. */
  readonly available: () => boolean
  /** Runs at once if it answers, else as soon as it does. */
  readonly whenAvailable: (run: () => void) => void
  /** The API is away until then, whatever the machines do. */
  readonly outage: (untilMs: number) => void
}

/** What it says of itself, with `v`: the version of the first kube-apiserver that runs, or of the cluster where none does. */
export const apiServerVersion = (site: Site): string => {
  const serving = site.machines.find(m => m.powered && !m.cut && isServing(m))
  return imageVersion(serving?.pods.get('kube-apiserver')?.image ?? '') || site.kubernetes()
}

export const createApiServer = (site: Site): ApiServer => {
  const waiting: (() => void)[] = []
  const available = (): boolean =>
    site.schedule.now() >= site.faults.apiDownUntil &&
    site.etcd.hasQuorum() &&
    site.machines.some(m => {
      const member = site.etcd.memberOf(m)
      return m.role === 'controlplane' && isServing(m) && m.powered && !m.cut && member !== undefined && site.etcd.isConnected(member)
    })
  let was = true
  const look = (): void => {
    const is = available()
    if (is !== was) site.journal.write('', is ? 'api-up' : 'api-down')
    was = is
    if (!is) return
    for (const run of waiting.splice(0)) run()
  }
  site.listen((_, change) => {
    if (change === 'static-pods' || change === 'etcd' || change === 'kubelet-down' || change === 'kubelet-up') look()
  })
  return {
    available,
    whenAvailable: run => {
      if (available()) run()
      else waiting.push(run)
    },
    outage: untilMs => {
      site.faults.apiDownUntil = untilMs
      look()
      site.schedule.at(untilMs, look)
    },
  }
}
