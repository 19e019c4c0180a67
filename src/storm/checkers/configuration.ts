import type { TalosOperation, Target } from '../../api/talos-operation.ts'
import { sha256 } from '../../core/sha256.ts'
import { configOnDisk, pendingOf } from '../../world/configuration.ts'
import type { Machine } from '../../world/machine.ts'
import type { Checker } from '../checker.ts'
import { ADDED } from '../operations.ts'
import { BLIND_MS } from './acts.ts'

/** Rollouts of configuration: what is written, how often, and to whom first. */

const modeOf = (operation: TalosOperation): string => (operation.spec['config'] as { mode?: string } | undefined)?.mode ?? ''
const writtenIn = (operation: TalosOperation, machine: Machine): string =>
  ['staged', 'reboot'].includes(modeOf(operation)) ? configOnDisk(machine) : machine.config

export const asComputed: Checker = {
  name: 'configuration-as-computed',
  rule: 'I26',
  kinds: ['config'],
  post: (scene, object) => {
    /** Of each machine, what an operation could have read. */
    const before = new Map(scene.world.machines.map(m => [m, new Set([m.config])]))
    scene.world.site.listen(machine => void before.get(machine)?.add(machine.config).add(configOnDisk(machine)))
    scene.onAct(({ what, machine }) => {
      const open = what === 'config-applied' ? scene.openOn(machine) : undefined
      if (!open) return
      const { read, computed } = open.target.goal ?? {}
      // A hand may take them away in the very moment of the act.
      if (read === undefined && scene.now() - scene.editedAt() < BLIND_MS) return
      if (sha256(writtenIn(open.operation, machine)) !== computed)
        object(`${machine.name} is given a configuration that is not the one in status`)
      if (![...(before.get(machine) ?? [])].some(text => sha256(text) === read))
        object(`${machine.name} is given what was made of a configuration that it never had`)
    })
  },
}

/** Some patches add to a list: twice would be seen. */
export const patchedOnce: Checker = {
  name: 'patched-once',
  rule: 'I26',
  kinds: ['config'],
  post: (scene, object) => {
    const patchedBy = new Map<Machine, Set<string>>()
    scene.world.site.listen((machine, change) => {
      // Whoever writes to a machine on trial what it holds then makes the patch his own, and for good.
      if (change !== 'config' || !scene.stage.isByHand() || pendingOf(machine) !== undefined) return
      if (machine.config.includes(ADDED)) patchedBy.set(machine, (patchedBy.get(machine) ?? new Set()).add('a person'))
    })
    scene.onAct(({ what, machine }) => {
      const open = what === 'config-applied' ? scene.openOn(machine) : undefined
      if (!open) return
      const operations = patchedBy.get(machine) ?? new Set()
      // A machine that came in the place of another with the same configuration is a newcomer to the same operation.
      patchedBy.set(machine, operations.add(`${open.operation.metadata.uid} ${open.target.name}`))
      const times = Math.max(...[machine.config, configOnDisk(machine)].map(text => text.split(ADDED).length - 1))
      if (times > operations.size) object(`${machine.name} was patched ${times} times by ${operations.size} operations`)
    })
  },
}

const isTouched = ({ phase }: Target): boolean => phase === 'Running' || phase === 'Completed' || phase === 'Failed'

export const canaryFirst: Checker = {
  name: 'canary-first',
  rule: 'B145',
  kinds: ['config'],
  post: (scene, object) =>
    scene.onAct(({ what, machine }) => {
      const open = what === 'config-applied' ? scene.openOn(machine) : undefined
      const targets = open?.operation.status.machines?.filter(t => t.phase !== 'Skipped') ?? []
      const [canary] = targets
      if (!open || !canary || canary.name === open.target.name) return
      if (canary.phase !== 'Completed') object(`${machine.name} is given a configuration before ${canary.hostname} is well with it`)
    }),
}

export const shownFirst: Checker = {
  name: 'shown-before-the-first-write',
  rule: 'B145',
  kinds: ['config'],
  post: (scene, object) => {
    const shownAt = new Map<string, number>()
    scene.onCall(({ name, target, at }) => {
      if (name === 'dryRun') shownAt.set(scene.world.at(target)?.name ?? target, at)
    })
    scene.onAct(({ what, machine }) => {
      const open = what === 'config-applied' ? scene.openOn(machine) : undefined
      if (!open || open.operation.status.machines?.some(t => t !== open.target && isTouched(t))) return
      const created = Date.parse(open.operation.metadata.creationTimestamp)
      for (const target of open.operation.status.machines ?? []) {
        const other = scene.machineOf(target)
        // What is staged there already is not shown once more.
        if (!other || target.phase === 'Skipped' || other.onDisk !== undefined || scene.stage.touchedAt(other) >= created) continue
        if ((shownAt.get(other.name) ?? Number.NEGATIVE_INFINITY) < created - 1000)
          object(`${machine.name} is given a configuration, and ${other.name} was not shown its own`)
      }
    })
  },
}

export const doneHasIt: Checker = {
  name: 'done-has-the-configuration',
  rule: 'I6',
  kinds: ['config'],
  post: (scene, object) =>
    scene.onOperation(({ before, after }) => {
      if (after?.spec.kind !== 'config') return
      for (const target of after.status.machines ?? []) {
        const was = before?.status.machines?.find(t => t.name === target.name)
        const machine = scene.machineOf(target)
        if (target.phase !== 'Completed' || was?.phase !== 'Running' || !before || !machine) continue
        if (scene.stage.touchedAt(machine) > scene.now() - LATELY_MS) continue
        const has = sha256(writtenIn(before, machine)) === was.goal?.['computed']
        if (!has || (modeOf(before) !== 'staged' && machine.onDisk !== undefined))
          object(`${target.hostname} is done, and ${has ? 'its disk has another configuration' : 'has not what was computed'}`)
      }
    }),
}

export const argumentsAreTaken: Checker = {
  name: 'arguments-are-taken',
  rule: 'I6',
  kinds: ['config'],
  post: (scene, object) =>
    scene.onEntry(({ what, machine, detail }, isByHand) => {
      if (isByHand || !(what === 'static-pods-denied' || what === 'kubelet-denied')) return
      if (scene.openOn(scene.world.machine(machine))) object(`${machine} is given what Talos makes nothing of: ${detail}`)
    }),
}

/** What somebody did to a machine in the last minutes is not to be laid at its door: it may not have been seen where no access was. */
const LATELY_MS = 600_000
