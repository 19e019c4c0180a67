import { REASONS } from '../../api/reasons.ts'
import { isFinished } from '../../api/phases.ts'
import type { TalosOperation } from '../../api/talos-operation.ts'
import { RESOURCE } from '../../world/objects.ts'
import { runningSlot } from '../../world/slots.ts'
import { ICHOR } from '../../world/ports/home.ts'
import type { Checker } from '../checker.ts'
import { tellsOfNoLock } from '../faults/answers.ts'
import type { Machine } from '../../world/machine.ts'
import type { Scene } from '../scene.ts'

/** What status says, against what is. */

const wellAt = (scene: Scene): ((machine: Machine) => number) => {
  const last = new Map<Machine, number>()
  const look = (): void => {
    for (const machine of scene.world.machines) if (isWell(scene, machine)) last.set(machine, scene.now())
  }
  scene.onEntry(look)
  return machine => {
    look()
    return last.get(machine) ?? Number.NEGATIVE_INFINITY
  }
}

const isWell = ({ world, stage }: Scene, machine: Machine): boolean => {
  const node = world.store.get(RESOURCE.nodes, '', machine.name)
  const bootID = (node?.['status'] as { nodeInfo?: { bootID?: string } } | undefined)?.nodeInfo?.bootID
  const member = world.etcd.memberOf(machine)
  return (
    world.isUp(machine) &&
    (bootID === machine.bootID || machine.index === stage.plan.shape.setting?.oddities?.aloof) &&
    (member === undefined || (world.etcd.isConnected(member) && machine.staticPods))
  )
}

/** A look is this old at most when its decision is written. */
const LOOK_MS = 40_000

/** Whether each machine that is done has been rebooted for it. */
const reboots = ({ spec }: TalosOperation): boolean => {
  const { action } = (spec['node'] ?? {}) as { action?: string }
  const { mode } = (spec['config'] ?? {}) as { mode?: string }
  return spec.kind === 'talos' || action === 'reboot' || mode === 'reboot'
}

export const closedWhenBack: Checker = {
  name: 'closed-only-when-back',
  rule: 'I5',
  post: (scene, object) => {
    const lastWell = wellAt(scene)
    /** Seen well when all that was left was its cordon: what takes every control plane down after that is none of its own. */
    const proven = new Set<string>()
    scene.onOperation(({ before, after }) => {
      if (!after || !reboots(after)) return
      for (const target of after.status.machines ?? []) {
        const was = before?.status.machines?.find(t => t.name === target.name)
        const key = `${after.metadata.uid} ${target.name}`
        if (target.step === 'uncordon' && was?.step !== 'uncordon') {
          const back = scene.machineOf(target)
          if (back && scene.now() - lastWell(back) <= LOOK_MS) proven.add(key)
        } else if (target.step !== 'uncordon' && target.phase === 'Running') proven.delete(key)
        if (target.phase !== 'Completed' || was?.phase === 'Completed') continue
        const machine = scene.machineOf(target)
        if (!machine) continue
        if (target.before?.bootID === machine.bootID) object(`${machine.name} is closed as done in the boot in which it was opened`)
        if (target.before?.bootID === target.after?.bootID) object(`${machine.name} is closed as done without a new boot id`)
        const well = lastWell(machine)
        const age = scene.now() - well
        if (well < machine.bootedAt && scene.stage.touchedAt(machine) < scene.now() - LOOK_MS)
          object(`${machine.name} is closed as done, and was not well yet in this boot`)
        else if (age > LOOK_MS && !(was?.step === 'uncordon' && proven.has(key)))
          object(`${machine.name} is closed as done, and was well ${age} ms ago`)
      }
    })
  },
}

export const doneIsDone: Checker = {
  name: 'done-is-observed',
  rule: 'I6',
  kinds: ['talos'],
  post: (scene, object) =>
    scene.onOperation(({ before, after, isByHand }) => {
      if (after?.spec.kind !== 'talos' || isByHand) return
      const { version } = after.spec['talos'] as { version: string }
      const isEnd = after.status.phase === 'Completed' && before?.status.phase !== 'Completed'
      for (const target of after.status.machines ?? []) {
        if (isEnd && target.phase !== 'Completed' && target.phase !== 'Skipped')
          object(`completed, and ${target.hostname} is ${target.phase}`)
        const isClosed = before?.status.machines?.find(t => t.name === target.name)?.phase !== 'Completed'
        const machine = isEnd || isClosed ? scene.machineOf(target) : undefined
        if (target.phase !== 'Completed' || !machine || scene.stage.touchedAt(machine) > scene.now() - 600_000) continue
        const runs = runningSlot(machine.disk).version
        if (runs !== version) object(`done, and ${machine.name} runs ${runs}`)
      }
    }),
}

export const everyWaitHasWords: Checker = {
  name: 'every-wait-has-words',
  rule: 'cases',
  post: (scene, object) => {
    const isEdited = scene.stage.plan.strikes.some(s => s.family === 'status')
    scene.onOperation(({ after, isByHand }) => {
      if (!after || isByHand) return
      const { phase, message, waiting, failureReason, lastFailure } = after.status
      if (phase !== undefined && !message) object(`it is ${phase} without a word`)
      if (waiting && (!waiting.since || !waiting.for)) object('it waits, and does not say for what since when')
      if (failureReason === 'InternalError' && !isEdited) object(`${message}`)
      if (phase !== 'Paused' || failureReason === undefined) return
      if (!(failureReason in REASONS)) object(`${failureReason} is no reason`)
      if ((message?.length ?? 0) < 20) object(`${failureReason}: ${message}`)
      if (failureReason !== 'ClusterLockHeld' && lastFailure === undefined) object(`${failureReason} is not in lastFailure`)
    })
  },
}

const MOST_BYTES = 64 * 1024
/** Of writes that bring no machine further, for each that is open. Those that do are as many as there are steps, however fast a hasty world takes them. */
const MOST_IDLE_WRITES_A_MINUTE = 100

/** How far it has come. */
const standing = (operation: TalosOperation | undefined): string =>
  JSON.stringify([operation?.status.phase, operation?.status.stage, operation?.status.machines?.map(t => [t.name, t.phase, t.step])])

export const sizesAreBounded: Checker = {
  name: 'sizes-are-bounded',
  rule: 'cases',
  post: (scene, object) => {
    const { store } = scene.world
    const secrets = store.list(RESOURCE.secrets).items.flatMap(s => Object.values((s['data'] ?? {}) as Record<string, string>))
    const writes: { readonly at: number; readonly open: number }[] = []
    // Where somebody else writes after each of our looks, there is no end of it.
    const limit = scene.stage.plan.strikes.some(s => s.what.endsWith('conflicts') || s.word === 'conflict')
      ? Infinity
      : MOST_IDLE_WRITES_A_MINUTE
    let events = 0
    const look = (what: string, metadata: { readonly name: string }, text: string): void => {
      if (text.length > MOST_BYTES) object(`${what} ${metadata.name} has ${text.length} bytes`)
      // Each looked for by itself: together they are slow, and they are looked for in each write.
      if (text.includes('-----BEGIN') || /\beyJ[\w-]{10,}\.eyJ/.test(text) || secrets.some(s => s !== '' && text.includes(s)))
        object(`${what} ${metadata.name} carries a secret`)
    }
    store.watch(RESOURCE.events, undefined, ({ object: event, type }) => {
      if (type !== 'ADDED') return
      events++
      look('Event', event.metadata, JSON.stringify(event))
    })
    store.watch(ICHOR.operations, undefined, ({ object: operation }) =>
      look('TalosOperation', operation.metadata, JSON.stringify(operation)),
    )
    scene.onOperation(({ before, after }) => {
      const open = after?.status.machines?.filter(t => t.phase === 'Running').length ?? 0
      if (standing(before) === standing(after)) writes.push({ at: scene.now(), open })
      while ((writes[0]?.at ?? Infinity) < scene.now() - 60_000) writes.shift()
      if (writes.length > limit * Math.max(1, ...writes.map(w => w.open)))
        object(`operations were written ${writes.length} times in a minute, and came no further`)
    })
    return () => {
      const { plan } = scene.stage
      const most = 60 + 12 * scene.world.machines.length * (1 + plan.strikes.length)
      if (events > most) object(`${events} Events`)
    }
  },
}

export const stoppedIsStill: Checker = {
  name: 'stopped-begins-nothing',
  rule: 'spec 7',
  post: (scene, object) =>
    scene.onOperation(({ before, after, isByHand }) => {
      if (!before || !after || isByHand) return
      for (const target of after.status.machines ?? []) {
        const was = before.status.machines?.find(t => t.name === target.name)
        if (target.phase !== 'Running' || was?.phase !== 'Pending') continue
        if (before.spec.paused || before.spec.cancelled || before.metadata.deletionTimestamp)
          object(`${target.hostname} is opened although the operation was stopped`)
        if (
          before.status.phase === 'Paused' &&
          before.status.failureReason !== undefined &&
          before.status.failureReason !== 'ClusterLockHeld'
        )
          object(`${target.hostname} is opened although the operation is stopped by ${before.status.failureReason}`)
      }
    }),
}

export const retriesOnce: Checker = {
  name: 'a-retry-counts-once',
  rule: 'spec 12',
  post: (scene, object) => {
    // Where a hand makes a status unsound between the two writes of a retry, it fails anew with the request still there.
    if (scene.stage.plan.strikes.some(s => s.family === 'status')) return
    const asked = new Map<string, number>()
    const retried = new Map<string, number>()
    /** In which term of leadership it was honoured last: where the wish cannot be taken away, the next leader does not know that it was. */
    const honouredIn = new Map<string, number>()
    const isAsked = (operation: TalosOperation | undefined): boolean => operation?.metadata.annotations['ichor.maesh.dev/retry'] === 'true'
    scene.onOperation(({ before, after }) => {
      if (!after) return
      const { uid } = after.metadata
      if (isAsked(after) && !isAsked(before)) asked.set(uid, (asked.get(uid) ?? 0) + 1)
      // A time that a wrong clock wrote is set back once it has turned out to be in the future.
      const isSetBack = Date.parse(after.status.lastRetry ?? '') < Date.parse(before?.status.lastRetry ?? '')
      if (after.status.lastRetry === before?.status.lastRetry || isSetBack) return
      const isOfAnotherTerm = (honouredIn.get(uid) ?? scene.terms()) !== scene.terms() && isAsked(before)
      honouredIn.set(uid, scene.terms())
      if (isOfAnotherTerm) return
      const times = (retried.get(uid) ?? 0) + 1
      retried.set(uid, times)
      if (times > (asked.get(uid) ?? 0)) object(`it was tried again ${times} times and asked for ${asked.get(uid) ?? 0} times`)
      if (before?.status.appliedRetry && after.status.appliedRetry?.at !== before.status.appliedRetry.at)
        object('an applied retry was honoured twice')
    })
  },
}

export const refusedIsUntouched: Checker = {
  name: 'refused-touches-nothing',
  rule: 'cases',
  post: (scene, object) => {
    const { stage } = scene
    return () => {
      for (const operation of stage.operations()) {
        if (operation.status.failureReason !== 'PreflightRefused') continue
        // Without its TalosCluster it is refused as it is, and gives the lock back when there is one again.
        const { metadata, spec } = operation
        const isHeld =
          scene.lock().uid === metadata.uid && scene.world.store.get(ICHOR.clusters, metadata.namespace, spec.clusterRef.name) !== undefined
        if (isHeld && !tellsOfNoLock(stage.plan)) object(`${metadata.name} was refused, and holds the cluster lock`)
        if (operation.status.machines?.some(t => t.phase === 'Running')) object(`${metadata.name} was refused with machines open`)
      }
    }
  },
}

export const goneLeavesNothing: Checker = {
  name: 'gone-leaves-nothing-open',
  rule: 'spec 12',
  post: (scene, object) => {
    const touched = new Set<string>()
    scene.onAct(({ machine }) => {
      const open = scene.openOn(machine)
      if (open) touched.add(`${open.operation.metadata.uid} ${open.target.name}`)
    })
    scene.onOperation(({ before, after }) => {
      if (after || !before || isFinished(before.status.phase)) return
      for (const target of before.status.machines ?? [])
        if (target.phase === 'Running' && touched.has(`${before.metadata.uid} ${target.name}`))
          object(`the operation is gone, and ${target.hostname} is open`)
    })
  },
}
