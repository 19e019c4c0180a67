import { ANNOTATION, operationHolder } from '../../api/names.ts'
import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { allowedUnavailable } from '../../core/rollout-order.ts'
import type { PortCall } from '../../world/calls.ts'
import type { Machine } from '../../world/machine.ts'
import { ICHOR } from '../../world/ports/home.ts'
import { NOBODYS } from '../faults/people.ts'
import type { Checker } from '../checker.ts'
import type { Scene } from '../scene.ts'
import { NAMESPACE } from '../story.ts'
import { TAKES_AWAY } from './control-planes.ts'

/** Who may act, on what, how often, and what has to be written first. */

const key = (operation: TalosOperation, target: Target): string => `${operation.metadata.uid} ${target.name}`

export const intentionFirst: Checker = {
  name: 'intention-first',
  rule: 'I4',
  post: (scene, object) => {
    /** Intentions that no act has followed yet. */
    const intended = new Set<string>()
    /** When an operation let go of a machine last. What was asked of it before may come to it afterwards: a call cannot be taken back. */
    const closedAt = new Map<Machine, number>()
    scene.onOperation(({ before, after }) => {
      for (const was of before?.status.machines ?? []) {
        const machine = was.phase === 'Running' ? scene.machineOf(was) : undefined
        if (machine && after?.status.machines?.find(t => t.name === was.name)?.phase !== 'Running') closedAt.set(machine, scene.now())
      }
      for (const target of after?.status.machines ?? []) {
        const was = before?.status.machines?.find(t => t.name === target.name)
        if (after && target.actedAt !== undefined && (target.attempts ?? 0) > (was?.step === target.step ? (was?.attempts ?? 0) : 0))
          intended.add(key(after, target))
      }
    })
    scene.onAct(({ what, machine, call }) => {
      const open = scene.openOn(machine)
      if (!open && call.at <= (closedAt.get(machine) ?? Number.NEGATIVE_INFINITY)) return
      // What was on its way when a hand wrote something else into status.
      if (scene.now() - scene.editedAt() < BLIND_MS) return
      if (!open) return object(`${what} on ${machine.name}, which no operation has open`)
      if (!intended.delete(key(open.operation, open.target))) object(`${what} on ${machine.name} without an intention in status`)
    })
  },
}

export const bootAsRecorded: Checker = {
  name: 'boot-as-recorded',
  rule: 'I4',
  post: (scene, object) =>
    scene.onAct(({ what, machine, call, askedAt }) => {
      const open = scene.openOn(machine)
      // An image in its configuration is that in any boot.
      if (!open || what === 'component-image') return
      const recorded = open.target.before?.bootID
      // A hand may take it away in the very moment of the act.
      const isEdited = scene.now() - scene.editedAt() < BLIND_MS
      if (!recorded) return isEdited ? undefined : object(`${what} on ${machine.name} without a recorded boot id`)
      if (machine.bootID !== recorded && machine.bootedAt < askedAt('machine', call.target))
        object(`${what} on ${machine.name} although it was rebooted since it was opened`)
    }),
}

/** An end of a machine's life that we asked for: once in a try, however often it is asked. */
export const rebootsOnce: Checker = {
  name: 'reboots-once',
  rule: 'I4',
  post: (scene, object) => {
    type Asked = { readonly try: string; readonly bootID: string; readonly at: number; hadEffect: boolean }
    const last = new Map<Machine, Asked>()
    scene.onEntry(({ what, machine: name, detail }) => {
      const asked = what === 'stage' || what === 'down' ? last.get(scene.world.machine(name)) : undefined
      if (asked && (what === 'down' || ['rebooting', 'upgrading', 'shutting down', 'resetting'].includes(detail))) asked.hadEffect = true
    })
    scene.onAct(({ what, machine }) => {
      if (!TAKES_AWAY.has(what)) return
      const open = scene.openOn(machine)
      if (!open) return
      const { operation, target } = open
      // Opened anew after somebody else's reboot, or tried again on a person's wish, it is another try.
      const attempt = `${operation.metadata.uid} ${operation.status.lastRetry ?? ''} ${target.before?.bootID ?? ''}`
      const before = last.get(machine)
      if (before?.try === attempt && before.hadEffect && scene.stage.touchedAt(machine) < before.at)
        object(`${what} on ${machine.name} once more, ${scene.now() - before.at} ms after the first, which had its effect`)
      last.set(machine, { try: attempt, bootID: machine.bootID, at: scene.now(), hadEffect: false })
    })
  },
}

/** Troubles that cut an installer off, or the word of its end. */
const CUTS = new Set(['crash', 'lost-reply', 'leaders', 'dead', 'installer', 'clock', 'slow', 'people', 'reboot', 'locked'])

/**
 * Of other families: without its TalosCluster an operation stops with all that runs for it; and a leader who is not told that its Lease was renewed stands
 * down, and leads anew without another term.
 */
const CUTTING = new Set(['deletes the cluster', 'the cluster is deleted', 'writes fail after their effect'])

export const installsOnce: Checker = {
  name: 'installs-once',
  rule: 'I4',
  kinds: ['talos'],
  post: (scene, object) => {
    const isCut =
      scene.stage.plan.strikes.some(s => CUTS.has(s.family) || CUTTING.has(s.what)) ||
      (!scene.stage.plan.shape.homeOutside && scene.stage.plan.shape.controlPlanes < 3)
    const installed = new Map<string, number>()
    // From whom the lock is taken by hand, his installer is stopped.
    let robbed = 0
    scene.onLock((_before, _after, isByHand) => {
      if (isByHand) robbed++
    })
    scene.onAct(({ what, machine }) => {
      const open = what === 'install-began' ? scene.openOn(machine) : undefined
      if (!open || isCut) return
      // Whoever leads anew knows nothing of the installers of those who led before.
      const attempt = `${key(open.operation, open.target)} ${open.operation.status.lastRetry ?? ''} ${open.target.before?.bootID ?? ''} ${scene.terms()} ${robbed}`
      const times = (installed.get(attempt) ?? 0) + 1
      installed.set(attempt, times)
      if (times > 1) object(`the installer runs on ${machine.name} for the ${times}nd time, and nothing had cut it off`)
    })
  },
}

/** Calls that take something away from somebody: by the holder of the lock alone. */
const FENCED = new Set([
  'install',
  'reboot',
  'upgrade',
  'forfeitLeadership',
  'cordon',
  'evict',
  'deletePod',
  'shutdown',
  'reset',
  'restartService',
  'defragment',
  'leaveEtcd',
  'removeMember',
  'disarmAlarms',
  'applyConfiguration',
])
/** How long after its last look a holder may not know that it is none any more: shorter than the leaders' lease. */
export const BLIND_MS = 12_000

export const lockIsHeld: Checker = {
  name: 'lock-is-held',
  rule: 'I13',
  post: (scene, object) => {
    let [before, changedAt] = [scene.lock(), Number.NEGATIVE_INFINITY]
    scene.onLock((old, _, isByHand) => {
      // Only other hands may take it from one that acts.
      if (isByHand) [before, changedAt] = [old, scene.now()]
    })
    scene.onCall(({ port, name, target }) => {
      if ((port !== 'talos' && port !== 'kube') || !FENCED.has(name)) return
      const isAnOperation = ({ holder, uid }: { holder: string; uid: string }): boolean =>
        scene.stage.operations().some(o => operationHolder(NAMESPACE, o.metadata.name) === holder && o.metadata.uid === uid)
      const lock = scene.lock()
      const wasJustLost = scene.now() - changedAt < BLIND_MS && isAnOperation(before)
      if (!isAnOperation(lock) && !wasJustLost) return object(`${name} on ${target}, and the lock is held by ${lock.holder || 'nobody'}`)
      const machine = port === 'talos' ? scene.world.at(target) : scene.world.machines.find(m => m.name === target)
      const open = machine && name !== 'evict' && name !== 'deletePod' ? scene.openOn(machine) : undefined
      if (open && open.operation.metadata.uid !== lock.uid && !wasJustLost)
        object(`${name} on ${target} by ${open.operation.metadata.name}, and the lock is held by ${lock.holder}`)
    })
  },
}

export const leaderActs: Checker = {
  name: 'only-the-leader-acts',
  rule: 'I13',
  post: (scene, object) =>
    scene.onCall((call: PortCall) => {
      if ((call.port !== 'talos' && call.port !== 'kube') || !call.changes) return
      const leader = scene.leader()
      if (leader !== call.client)
        object(`${call.client} calls ${call.port}.${call.name} on ${call.target}, and ${leader || 'nobody'} leads`)
    }),
}

export const ownAddress: Checker = {
  name: 'own-address',
  rule: 'I30',
  post: (scene, object) => {
    const everKnown = new Set([NOBODYS, ...scene.world.machines.flatMap(m => m.addresses)])
    scene.onCall(({ port, name, target }) => {
      if (port !== 'talos' || everKnown.has(target)) return
      for (const machine of scene.world.machines) for (const address of machine.addresses) everKnown.add(address)
      if (!everKnown.has(target)) object(`${name} goes to ${target}, which is no machine's own address`)
    })
  },
}

/** Lists that are read may be as old as a watch that brings nothing. */
const STALE_MS = 190_000

export const heldIsLeft: Checker = {
  name: 'held-machine-is-left',
  rule: 'spec 5',
  post: (scene, object) => {
    const heldAt = new Map<string, number>()
    scene.world.store.watch(ICHOR.machines, undefined, ({ object: machine, type }) => {
      const { name, annotations } = machine.metadata
      if (type === 'DELETED' || (annotations?.[ANNOTATION.upgradeHold] ?? 'false') === 'false') heldAt.delete(name)
      else if (!heldAt.has(name)) heldAt.set(name, scene.now())
    })
    const isStale = scene.stage.plan.strikes.some(s => s.family === 'stale')
    scene.onOperation(({ before, after, isByHand }) => {
      // Who names one machine means it.
      if (!after || after.spec.kind === 'node' || isByHand) return
      for (const target of after.status.machines ?? []) {
        const was = before?.status.machines?.find(t => t.name === target.name)
        const held = heldAt.get(target.name)
        if (held === undefined || target.phase !== 'Running' || was?.phase !== 'Pending') continue
        if (scene.now() - held > (isStale ? STALE_MS : 15_000))
          object(`${target.hostname} is opened although it has been held for ${scene.now() - held} ms`)
      }
    })
  },
}

/** Whether it takes the machines away from their users, or what runs on them may be begun anew. */
const takesWorkersAway = ({ spec, status }: TalosOperation): boolean => {
  switch (spec.kind) {
    case 'node':
      return ['reboot', 'shutdown', 'reset'].includes((spec['node'] as { action?: string }).action ?? '')
    case 'config':
      return (spec['config'] as { mode?: string }).mode !== 'staged'
    case 'kubernetes':
      return status.stage === 'kubelet'
    default:
      return true
  }
}

export const workersStay: Checker = {
  name: 'workers-within-quota',
  rule: 'I12',
  post: (scene: Scene, object) => {
    const workers = scene.world.machines.filter(m => m.role === 'worker')
    const downSince = new Map<Machine, number>()
    const look = (): void => {
      for (const machine of workers) {
        // One that was reset is no worker any more.
        if (scene.world.isUp(machine) || machine.config === '') downSince.delete(machine)
        else if (!downSince.has(machine)) downSince.set(machine, scene.now())
      }
    }
    scene.onEntry(look)
    scene.onOperation(({ before, after, isByHand }) => {
      if (!after || isByHand || !takesWorkersAway(after)) return
      const targets = after.status.machines ?? []
      const opened = targets.filter(t => t.role === 'worker' && t.phase === 'Running')
      const isNew = (t: Target): boolean => before?.status.machines?.find(o => o.name === t.name)?.phase === 'Pending'
      const fresh = opened.find(isNew)
      if (!fresh) return
      look()
      const limit = allowedUnavailable(after.spec.maxUnavailable, workers.filter(m => m.config !== '').length)
      if (opened.length > limit) return object(`${opened.map(t => t.hostname).join(', ')} are open together; ${limit} may be`)
      const openMachines = new Set(opened.map(scene.machineOf))
      const freshMachine = scene.machineOf(fresh)
      // One that was reset is no worker of this cluster any more.
      const down = [...downSince]
        .filter(([m, since]) => m.config !== '' && !openMachines.has(m) && scene.now() - since > STALE_MS)
        .map(([m]) => m.name)
      const isDownItself = freshMachine !== undefined && downSince.has(freshMachine)
      if (down.length + opened.length > limit && !isDownItself)
        object(`${fresh.hostname} is opened while ${down.join(', ')} is away; ${limit} may be`)
    })
  },
}
