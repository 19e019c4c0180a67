import type { Finding } from '../../core/compatibility/table.ts'
import { told } from '../../core/compatibility/told.ts'
import { talosStep, verdict } from '../../core/compatibility/verdict.ts'
import type { Opening } from '../../core/kind.ts'
import { controlPlanesOf, isControlPlane } from '../../core/machine-steps/target.ts'
import { ms } from '../../core/ledger.ts'
import { versionOrder } from '../../core/versions.ts'
import type { View } from '../../core/world.ts'
import { nodeFacts, nodeOf } from '../../core/world.ts'
import type { MachineFacts } from '../../ports/talos.ts'
import { refusesOneOfTwo, specOf } from './view.ts'

/** Whether a machine may be brought to the version from what it runs. The checks ask that of those that are there; others join, or are not what they were. */

/** What is refused unless somebody overrides it. */
export const isRefused = (finding: Finding): boolean => finding.verdict === 'known-bad' || finding.verdict === 'untested'

/** What speaks against the way of one machine, by the time that it is opened; undefined where nothing does. */
export const offPath = (view: View, facts: MachineFacts): Opening | undefined => {
  const { operation, world } = view
  const { version } = specOf(operation)
  const name = facts.hostname || facts.nodename || view.target.name
  const fail = (what: string): Opening => ({ fail: { reason: 'VersionMismatch', message: `${name} runs ${facts.version} by now${what}` } })
  if (facts.platform === 'container')
    return {
      fail: {
        reason: 'InstallFailed',
        message: `${name} runs in container mode, where Talos upgrades nothing. Hold it, or start another image.`,
      },
    }
  if (facts.version !== version && isControlPlane(view) && controlPlanesOf(world).length === 2 && refusesOneOfTwo(facts.version, version)) {
    const message = `${name} runs ${facts.version}, on which Talos itself refuses to upgrade one of two etcd members. Add a third control plane, or upgrade it by hand with \`talosctl upgrade --force\`.`
    return { fail: { reason: 'QuorumWouldBeLost', message } }
  }
  if (operation.spec.override || facts.version === version) return undefined
  const order = versionOrder(facts.version, version)
  if (order === 1) return fail(`, which is newer than ${version}.`)
  if (order === undefined) return fail(', which is no version that can be compared.')
  const nodes = nodeFacts(world)
  const kubelet = nodes.ok ? nodeOf(nodes.value, facts.nodename)?.kubeletVersion : undefined
  const state = kubelet ? verdict({ talos: version, kubernetes: kubelet, kernel: undefined }) : []
  const finding = [...talosStep(facts.version, version), ...state].find(isRefused)
  return finding && fail(`. ${told(finding)} Bring it there by itself, or override.`)
}

/**
 * A control plane that was found only after the operation had begun: whether it is whole was never asked. One that was there and fell ill since is taken as
 * it is, for that may be its cure.
 */
export const isUnproved = (view: View, facts: MachineFacts): boolean => {
  const { operation, target, world } = view
  const { creationTimestamp = '' } = world.machines.find(m => m.metadata.name === target.name)?.metadata ?? {}
  const isLater = ms(creationTimestamp) > ms(operation.status.startedAt)
  return isControlPlane(view) && !facts.ready && isLater && !operation.spec.override
}
