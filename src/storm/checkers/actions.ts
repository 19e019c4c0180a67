import type { Target } from '../../api/talos-operation.ts'
import { isHeardByOthers } from '../../world/heard.ts'
import { answers } from '../../world/machine.ts'
import type { Machine } from '../../world/machine.ts'
import type { Checker } from '../checker.ts'
import type { Scene } from '../scene.ts'

/** Kind `node`: what was asked of a machine has come to pass when its operation says so, by its own doing or by anybody else's. */

/** What somebody did to a machine in the last minutes is not to be laid at its door. */
const LATELY_MS = 600_000
/** For so long it has to be silent to count as gone, less what passes from a look to the write of what it saw. */
const SILENT_MS = 110_000
/** What is relied on when a decision is written is so old at most. */
const LOOK_MS = 40_000

/** How one looks at a machine. */
const LOOKS = new Set(['machine', 'maintenance'])
/** What nothing but silence may be seen of. */
const ENDS_IN_SILENCE = new Set(['shutdown', 'reset'])

type Question = {
  readonly scene: Scene
  readonly machine: Machine
  readonly target: Target
  /** The one that was to be restarted, where one was. */
  readonly service: string
  /** When the machine was opened. */
  readonly since: number
}

const happened = ({ scene, machine, since }: Question, what: string): boolean =>
  scene.world.journal.of(what, machine.name).some(({ at }) => at >= since - LOOK_MS)

/** What is wrong with an end that was told; undefined where nothing is. */
const OBJECTIONS: Readonly<Record<string, (asked: Question) => string | undefined>> = {
  shutdown: ({ machine, target }) =>
    answers(machine) && machine.bootID === target.before?.bootID ? 'answers, in the boot in which it was opened' : undefined,
  reset: asked => {
    const { scene, machine } = asked
    // A container ends when it is reset, and keeps what it has. Its silence is all that can be seen of that.
    const isSilentContainer = scene.stage.plan.shape.setting?.platform === 'container' && !answers(machine)
    return machine.config === '' || happened(asked, 'wiped') || isSilentContainer ? undefined : 'has the configuration that it had'
  },
  'restart-service': ({ machine, service, since }) => {
    const starts = machine.services.get(service)?.events.filter(({ state }) => state === 'Running') ?? []
    return starts.some(({ at }) => at >= since - LOOK_MS) ? undefined : `has not started ${service} since`
  },
  'etcd-defrag': asked => {
    const { dbSize = 0, dbSizeInUse = 0 } = asked.scene.world.etcd.memberOf(asked.machine) ?? {}
    return dbSizeInUse >= dbSize / 2 || happened(asked, 'etcd-defragmented') ? undefined : 'has a database of which most is free'
  },
  'forfeit-leadership': asked => {
    const { world } = asked.scene
    const leads = world.etcd.leader() === world.etcd.memberOf(asked.machine)?.id
    const others = world.machines.filter(m => m !== asked.machine)
    return leads && !others.some(machine => happened({ ...asked, machine }, 'leader')) ? 'leads etcd as before' : undefined
  },
}

export const actionIsObserved: Checker = {
  name: 'action-is-observed',
  rule: 'I6',
  kinds: ['node'],
  post: (scene, object) => {
    const openedAt = new Map<string, number>()
    /** Since when nobody hears a machine, at the looks at it. */
    const silentSince = new Map<Machine, number>()
    scene.onCall(({ port, name, target }) => {
      const machine = port === 'talos' && LOOKS.has(name) ? scene.world.at(target) : undefined
      if (!machine) return
      if (isHeardByOthers(scene.world, machine)) silentSince.delete(machine)
      else if (!silentSince.has(machine)) silentSince.set(machine, scene.now())
    })
    const hasClocks = scene.stage.plan.strikes.some(({ family }) => family === 'clock')
    /** Who was asked to go away for good and is silent counts as gone, whoever silenced it; by a clock that goes right and a status that nobody has edited. */
    const isGoneAsFarAsSeen = (action: string, machine: Machine, since: number): boolean =>
      ENDS_IN_SILENCE.has(action) &&
      (hasClocks || scene.editedAt() > since || scene.now() - (silentSince.get(machine) ?? Number.POSITIVE_INFINITY) >= SILENT_MS)
    scene.onOperation(({ before, after, isByHand }) => {
      if (after?.spec.kind !== 'node' || isByHand) return
      const { action, service = 'kubelet' } = after.spec['node'] as { action: string; service?: string }
      for (const target of after.status.machines ?? []) {
        const was = before?.status.machines?.find(t => t.name === target.name)?.phase
        const key = `${after.metadata.uid} ${target.name}`
        if (target.phase === 'Running' && was === 'Pending') openedAt.set(key, scene.now())
        const machine = scene.machineOf(target)
        if (target.phase !== 'Completed' || was !== 'Running' || !machine) continue
        const since = openedAt.get(key) ?? scene.now()
        const isTouched = !ENDS_IN_SILENCE.has(action) && scene.stage.touchedAt(machine) > scene.now() - LATELY_MS
        if (isTouched || isGoneAsFarAsSeen(action, machine, since)) continue
        const wrong = OBJECTIONS[action]?.({ scene, machine, target, service, since })
        if (wrong !== undefined) object(`${action} is done, and ${machine.name} ${wrong}`)
      }
    })
  },
}
