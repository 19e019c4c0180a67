// `ichor operation list`, as it ships, beside `kubectl get` of the same objects on the same server; in turns, so that both meet the same weather.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { RESOURCE } from '../src/adapters/kube/resource.ts'
import { realPart, realParts } from '../test/real/parts.ts'
import { NAMESPACE, startCluster } from '../test/cluster-on-the-wire.ts'
import { median } from './format.ts'
import type { Shipped } from './shipped.ts'

export type StartOfList = {
  readonly ichorMs: number
  readonly kubectlMs: number
  readonly runs: number
  readonly server: string
  readonly objects: number
}

const OBJECTS = 20
const WARM_UP = 3
const run = promisify(execFile)

/** Where the real kubectl cannot be had: why. */
export const startOfList = async ({ ichor }: Shipped, runs: number): Promise<StartOfList | { readonly missing: string }> => {
  const kubectl = await realPart('kubectl')
  if ('missing' in kubectl) return kubectl
  const folder = mkdtempSync(join(tmpdir(), 'ichor-bench-'))
  const hasServer = !('missing' in (await realParts('etcd', 'kube-apiserver')))
  const cluster = await startCluster({ controlPlanes: 1, workers: 0, from: 'v1.13.5', speed: 1, realApiServer: hasServer })
  try {
    const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: cluster.kubernetes.kubeconfigPath }
    if (cluster.kubernetes.needsCrds) await run(ichor, ['install', '--crds-only'], { env })
    await cluster.register()
    for (let i = 1; i <= OBJECTS; i++) await cluster.upgrade(`up-${i}`, 'v1.13.9')
    const listed = await cluster.client.list(RESOURCE.talosOperation, { namespace: NAMESPACE })
    if (!listed.ok || listed.value.items.length !== OBJECTS) throw new Error('the operations are not there')

    const timed = async (command: string, args: readonly string[]): Promise<number> => {
      const began = performance.now()
      const { stdout } = await run(command, args, { env })
      const took = performance.now() - began
      if (stdout.trim().split('\n').length !== OBJECTS + 1) throw new Error(`${command} ${args.join(' ')} says:\n${stdout}`)
      return took
    }
    const times: { readonly ichor: number[]; readonly kubectl: number[] } = { ichor: [], kubectl: [] }
    for (let i = -WARM_UP; i < runs; i++) {
      const ours = await timed(ichor, ['operation', 'list', '-n', NAMESPACE])
      const theirs = await timed(kubectl.path, ['get', 'talosoperations', '-n', NAMESPACE])
      if (i < 0) continue
      times.ichor.push(ours)
      times.kubectl.push(theirs)
    }
    return { ichorMs: median(times.ichor), kubectlMs: median(times.kubectl), runs, server: cluster.kubernetes.about, objects: OBJECTS }
  } finally {
    await cluster.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
