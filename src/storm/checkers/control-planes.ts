import type { Target } from '../../api/talos-operation.ts'
import { answers } from '../../world/machine.ts'
import type { Machine } from '../../world/machine.ts'
import { runningSlot } from '../../world/slots.ts'
import type { Checker } from '../checker.ts'
import type { Scene } from '../scene.ts'

/** What must never happen to those who hold the cluster together. */

/** Acts after which a machine goes away, or its etcd does. */
export const TAKES_AWAY = new Set(['reboot-requested', 'upgrade-requested', 'shutdown-requested', 'reset-requested'])
/** Acts that the gate of etcd stands before. */
export const GATED = new Set([...TAKES_AWAY, 'install-began', 'forfeit', 'etcd-defragmented'])
/** The stages in which an image is set for a static pod: its kubelet begins it anew, and with the scheduler the API server. */
const OF_STATIC_PODS: readonly (string | undefined)[] = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
/** How old the look may be that an act relies on. */
const FRESH_MS = 30_000

export const controlPlanesOf = ({ world }: Scene): readonly Machine[] =>
  world.machines.filter(m => m.role === 'controlplane' && m.config !== '')

export const oneAway: Checker = {
  name: 'one-control-plane-away',
  rule: 'I1',
  post: (scene, object) => {
    /** Sent away by us, and whether it has gone yet. */
    const ours = new Map<Machine, { what: string; hasGone: boolean }>()
    scene.onAct(({ what, machine }) => {
      if (machine.role === 'controlplane' && TAKES_AWAY.has(what)) ours.set(machine, { what, hasGone: false })
    })
    const isEdited = scene.stage.plan.strikes.some(({ family }) => family === 'status')
    /**
     * One that was to stay away is started by people, when they like; of one that a hand has taken out of status nothing is remembered. It is back when it
     * serves etcd again.
     */
    const isBack = (machine: Machine, what: string): boolean => {
      if (what !== 'shutdown-requested' && !isEdited) return machine.staticPods && scene.awaySince(machine) === undefined
      const member = scene.world.etcd.memberOf(machine)
      return machine.stage === 'running' && answers(machine) && member !== undefined && scene.world.etcd.isConnected(member)
    }
    scene.onEntry(entry => {
      if (ours.size === 0) return
      if (entry.what === 'locked') ours.delete(scene.world.machine(entry.machine))
      for (const [machine, state] of ours) {
        // Wiped, and out of etcd: it is nobody's control plane any more.
        if (machine.config === '' && scene.world.etcd.memberOf(machine) === undefined) ours.delete(machine)
        else if (state.hasGone && isBack(machine, state.what)) ours.delete(machine)
        else if (scene.awaySince(machine) !== undefined) state.hasGone = true
      }
      const gone = [...ours].filter(([, { hasGone }]) => hasGone).map(([machine]) => machine.name)
      if (gone.length > 1) object(`Ichor sent ${gone.join(' and ')} away, and neither is back`)
    })
  },
}

export const oneOpen: Checker = {
  name: 'one-control-plane-open',
  rule: 'I1',
  post: (scene, object) =>
    scene.onOperation(({ after }) => {
      // One that only pulls, or has not begun, is as it was; what stage it is in may be written by a hand.
      const isAsItWas = ({ step = 'pull' }: Target): boolean => after?.spec.kind === 'kubernetes' && step === 'pull'
      const open = after?.status.machines?.filter(t => t.role === 'controlplane' && t.phase === 'Running' && !isAsItWas(t)) ?? []
      if (open.length > 1) object(`${open.map(t => t.hostname).join(' and ')} are open together`)
    }),
}

export const othersServe: Checker = {
  name: 'other-members-serve',
  rule: 'I2',
  post: (scene, object) => {
    const since = new Map<Machine, number>()
    const look = (): void => {
      for (const machine of controlPlanesOf(scene)) {
        const member = scene.world.etcd.memberOf(machine)
        const isWell = answers(machine) && member !== undefined && scene.world.etcd.isConnected(member)
        if (isWell) since.delete(machine)
        else if (!since.has(machine)) since.set(machine, scene.now())
      }
    }
    scene.world.site.listen(look)
    scene.onEntry(look)
    scene.onAct(({ what, machine, askedAt }) => {
      if (machine.role !== 'controlplane' || !GATED.has(what)) return
      look()
      for (const other of controlPlanesOf(scene)) {
        const gone = since.get(other)
        // What went away after the look could not be known.
        if (other === machine || gone === undefined || gone >= askedAt('etcd', ...other.addresses)) continue
        object(`${what} on ${machine.name} while ${other.name} was away for ${scene.now() - gone} ms`)
      }
    })
  },
}

export const gateIsFresh: Checker = {
  name: 'gate-is-fresh',
  rule: 'I2',
  post: (scene, object) =>
    scene.onAct(({ what, machine, call, askedAt }) => {
      if (machine.role !== 'controlplane' || !GATED.has(what)) return
      for (const other of controlPlanesOf(scene)) {
        const age = call.at - askedAt('etcd', ...other.addresses)
        if (age > FRESH_MS) object(`${what} on ${machine.name}, and etcd of ${other.name} was looked at ${age} ms ago`)
      }
    }),
}

export const outageIsAcknowledged: Checker = {
  name: 'outage-is-acknowledged',
  rule: 'I2',
  post: (scene, object) =>
    scene.onAct(({ what, machine }) => {
      if (machine.role !== 'controlplane' || !TAKES_AWAY.has(what) || controlPlanesOf(scene).length > 2) return
      const open = scene.openOn(machine)
      if (open && !open.operation.spec.acknowledge.includes('api-outage'))
        object(`${what} on ${machine.name}, which nobody has acknowledged`)
    }),
}

export const etcdIsWhole: Checker = {
  name: 'etcd-is-whole',
  rule: 'I3',
  post: (scene, object) => {
    const { etcd } = scene.world
    let [alarmedAt, corruptAt, orphanedAt, learningAt] = [Infinity, Infinity, Infinity, Infinity]
    const look = (): void => {
      const now = scene.now()
      alarmedAt = etcd.alarms().length > 0 ? Math.min(alarmedAt, now) : Infinity
      corruptAt = etcd.alarms().some(a => a.alarm !== 'NOSPACE') ? Math.min(corruptAt, now) : Infinity
      orphanedAt = etcd.members().some(m => m.machine === undefined) ? Math.min(orphanedAt, now) : Infinity
      learningAt = etcd.members().some(m => m.isLearner) ? Math.min(learningAt, now) : Infinity
    }
    scene.onEntry(look)
    scene.onAct(({ what, machine, askedAt }) => {
      look()
      const { spec, status } = scene.openOn(machine)?.operation ?? {}
      const beginsPods = what === 'component-image' && OF_STATIC_PODS.includes(status?.stage)
      if (machine.role !== 'controlplane' || !(GATED.has(what) || beginsPods)) return
      const asked = askedAt('etcd')
      // It has left already, and only its disk is left to be wiped.
      if (what === 'reset-requested' && etcd.memberOf(machine) === undefined) return
      const { action } = (spec?.['node'] ?? {}) as { action?: string }
      // To defragment is the way out of a full database. And only the others are asked where somebody has one rebooted as it is: one alone has none.
      // The call may be on its way still when a hand in status has closed the target.
      const makesRoom = action === 'etcd-defrag' || what === 'etcd-defragmented'
      const isAsItIs = action === 'reboot' && spec?.override === true && controlPlanesOf(scene).length === 1
      const wrong = [
        !isAsItIs && (makesRoom ? corruptAt : alarmedAt) < asked && 'an alarm',
        orphanedAt < asked && 'an orphan',
        learningAt < asked && 'a learner',
      ].filter(Boolean)
      if (wrong.length > 0) object(`${what} on ${machine.name} while etcd had ${wrong.join(' and ')}`)
    })
  },
}

export const failureFreezes: Checker = {
  name: 'failed-control-plane-freezes',
  rule: 'I23',
  post: (scene, object) =>
    scene.onAct(({ what, machine }) => {
      const open = scene.openOn(machine)
      const failed = open?.operation.status.machines?.find(t => t.role === 'controlplane' && t.phase === 'Failed')
      if (failed && machine.role === 'controlplane') object(`${what} on ${machine.name} although ${failed.hostname} has failed`)
    }),
}

export const controlPlanesFirst: Checker = {
  name: 'control-planes-first',
  rule: 'I8',
  kinds: ['talos'],
  post: (scene, object) =>
    scene.onAct(({ what, machine }) => {
      if (machine.role !== 'worker') return
      const open = scene.openOn(machine)
      const version = (open?.operation.spec['talos'] as { version?: string } | undefined)?.version
      if (version === undefined) return
      for (const target of open?.operation.status.machines ?? []) {
        if (target.role !== 'controlplane' || target.phase === 'Skipped') continue
        const controlPlane = scene.machineOf(target)
        if (
          controlPlane &&
          runningSlot(controlPlane.disk).version !== version &&
          scene.stage.touchedAt(controlPlane) < scene.now() - 600_000
        )
          object(`${what} on ${machine.name} before ${controlPlane.name} ran ${version}`)
      }
    }),
}
