import { RESOURCE } from '../../world/objects.ts'
import { installOther } from '../../world/joined.ts'
import type { Machine } from '../../world/machine.ts'
import { answers } from '../../world/machine.ts'
import { ICHOR } from '../../world/ports/home.ts'
import { RELEASE_NAMES } from '../../world/releases.ts'
import { kubernetesConfigOf } from '../../world/kubernetes-config.ts'
import { etcdQuotaOf } from '../../world/machine-config.ts'
import { startSequence } from '../../world/sequencer.ts'
import type { Prospect, Strike, Trouble } from '../plan.ts'
import { machinesOf } from '../plan.ts'
import type { Stage } from '../stage.ts'

/** What happens to machines, and between them and us. */

const drawOn =
  (family: Strike['family'], whats: readonly string[], lo: number, hi: number) =>
  ({ random, shape, horizonMs }: Prospect): Strike => ({
    family,
    what: random.pick(whats),
    when: { at: random.between(0, horizonMs) },
    machine: random.between(0, machinesOf(shape) - 1),
    forMs: random.between(lo, hi),
    times: random.between(1, 3),
  })

const addressesOf = (machine: Machine): readonly string[] => machine.addresses

export const slow: Trouble<Stage> = {
  family: 'slow',
  harmless: true,
  draw: drawOn('slow', ['answers late', 'answers late', 'everything answers late'], 5000, 90_000),
  strike: (stage, { what, machine: index, times = 1 }) => {
    const machine = stage.machine(index)
    stage.note(what === 'answers late' ? `${machine.name} answers late` : what)
    // Below the deadline of a call; a nudge that comes late is still one of its sender's.
    return stage.disturb(call => {
      if (call.port !== 'talos' || (what === 'answers late' && !addressesOf(machine).includes(call.target))) return undefined
      return { do: 'delay', ms: stage.random.between(50, call.changes ? 1000 * times : 3000 * times) }
    })
  },
}

export const dead: Trouble<Stage> = {
  family: 'dead',
  harmless: false,
  draw: drawOn('dead', ['loses its power', 'is cut off', 'is cut off', 'flaps', 'answers too late'], 3000, 240_000),
  strike: (stage, { what, machine: index, forMs = 1000, times = 1 }) => {
    const { world } = stage.story
    const machine = stage.machine(index)
    stage.note(`${machine.name} ${what} for ${forMs} ms`)
    if (what === 'loses its power') {
      stage.byHand(machine, () => world.powerOff(machine.name))
      return () => stage.byHand(machine, () => world.powerOn(machine.name))
    }
    if (what === 'answers too late') {
      stage.byHand(machine, () => world.fault(machine.name, { slowMs: 11_000 }))
      return () => world.fault(machine.name, { slowMs: 0 })
    }
    const cut = (on: boolean): void => stage.byHand(machine, () => world.blackHole(machine.name, on))
    if (what === 'flaps') {
      let isOver = false
      const pause = Math.ceil(forMs / (4 * times))
      const flap = (on: boolean): void => {
        cut(on && !isOver)
        if (!isOver) world.schedule.after(stage.random.between(200, pause), () => flap(!on))
      }
      flap(true)
      return () => {
        isOver = true
        cut(false)
      }
    }
    cut(true)
    return () => cut(false)
  },
}

export const locked: Trouble<Stage> = {
  family: 'locked',
  harmless: false,
  draw: drawOn('locked', ['is busy with a sequence of its own', 'refuses what it is asked', 'forbids what it is asked'], 3000, 120_000),
  strike: (stage, { what, machine: index, forMs = 1000, times = 1 }) => {
    const { world } = stage.story
    const machine = stage.machine(index)
    if (what === 'is busy with a sequence of its own') {
      if (machine.sequence || !machine.apid) return
      stage.note(`${machine.name} ${what} for ${forMs} ms`)
      // Whoever asks for a reboot meanwhile is told OK, and nothing comes of it.
      stage.byHand(machine, () =>
        startSequence(
          world.site,
          machine,
          { name: 'install', phases: [{ name: 'hold', tasks: [], run: end => void world.schedule.after(forMs, () => end()) }] },
          '',
        ),
      )
      return
    }
    stage.note(`${machine.name} ${what}`)
    let left = times
    const fault =
      what === 'forbids what it is asked'
        ? ({ kind: 'forbidden', message: `${machine.name}: PermissionDenied: not authorized` } as const)
        : ({
            kind: 'precondition',
            message: `${machine.name}: FailedPrecondition: another installation/upgrade is already in progress`,
          } as const)
    return stage.disturb(call => {
      if (call.port !== 'talos' || !call.changes || left <= 0 || !addressesOf(machine).includes(call.target)) return undefined
      left--
      return { do: 'fail', when: 'before', fault }
    })
  },
}

const drawInstaller = drawOn(
  'installer',
  [
    ...['fails', 'fails for a while', 'goes silent', 'boots the old slot', 'boots the old slot and keeps the way back'],
    ...['is not what its name says', 'has another version than its name says', 'ends with any code'],
    ...['finds no room for a kernel', 'finds the machine too old', 'has no room to be pulled into', 'is in no registry'],
  ],
  10_000,
  400_000,
)

export const installer: Trouble<Stage> = {
  family: 'installer',
  harmless: false,
  draw: prospect => {
    const strike = drawInstaller(prospect)
    // Mostly it is so whenever its turn comes.
    return prospect.random.chance(0.6) ? { ...strike, when: { at: 0 }, forMs: prospect.horizonMs } : strike
  },
  strike: (stage, { what, machine: index, times = 1 }) => {
    const machine = stage.machine(index)
    const faults = stage.story.world.faults.of(machine)
    stage.note(`the installer of ${machine.name} ${what}`)
    switch (what) {
      case 'fails':
        faults.installer = { exitCode: 1, lines: ['failed to write the boot partition', 'no space left on device'], times }
        return () => void (faults.installer = undefined)
      case 'fails for a while':
        faults.installer = { exitCode: 6, lines: ['input/output error'], times }
        return () => void (faults.installer = undefined)
      case 'goes silent':
        for (const address of machine.addresses) stage.weather.mute.add(address)
        return () => {
          for (const address of machine.addresses) stage.weather.mute.delete(address)
        }
      case 'is not what its name says':
      case 'has another version than its name says': {
        // Whoever built it gave it a wrong tag.
        const other =
          what === 'is not what its name says' ? { schematic: 'd'.repeat(64), extensions: ['other-tools'] } : { version: 'v1.13.1' }
        return stage.story.world.journal.onEntry(({ machine: name, what: happened }) => {
          const slot = name === machine.name && happened === 'down' ? machine.disk.slots[machine.disk.next] : undefined
          if (slot && machine.disk.next !== machine.disk.booted)
            stage.byHand(machine, () => void (machine.disk.slots[machine.disk.next] = { ...slot, ...other }))
        })
      }
      case 'ends with any code':
        faults.installer = { exitCode: 3 + times, lines: times > 1 ? ['no space left on device', 'writing /boot/EFI failed'] : [], times }
        return () => void (faults.installer = undefined)
      case 'finds no room for a kernel':
        faults.bootPartitionFull = true
        return () => void (faults.bootPartitionFull = false)
      case 'finds the machine too old':
        faults.installer = { exitCode: 4, lines: ['pre-flight checks failed: this version is too old'], times }
        return () => void (faults.installer = undefined)
      case 'has no room to be pulled into':
        stage.story.world.fault(machine.name, { diskFull: true })
        return () => stage.story.world.fault(machine.name, { diskFull: false })
      case 'is in no registry': {
        const { version = 'v1.13.9' } = (stage.plan.operations[0]?.spec['talos'] ?? {}) as { version?: string }
        stage.story.world.registry.remove(`:${version}`)
        return () => stage.story.world.registry.restore(`:${version}`)
      }
      case 'boots the old slot':
        faults.failedBoots = times
        return () => void (faults.failedBoots = 0)
      default:
        faults.bootsOldSlot = 1
        return () => void (faults.bootsOldSlot = 0)
    }
  },
}

export const reboot: Trouble<Stage> = {
  family: 'reboot',
  harmless: false,
  draw: drawOn(
    'reboot',
    ['never ends', 'takes very long to stop', 'never stops its pods', 'comes back without a kubelet'],
    30_000,
    900_000,
  ),
  strike: (stage, { what, machine: index, forMs = 1000 }) => {
    const { world } = stage.story
    const machine = stage.machine(index)
    const faults = world.faults.of(machine)
    stage.note(`the next reboot of ${machine.name} ${what}`)
    switch (what) {
      case 'never ends':
        faults.rebootNeverEnds = true
        return () => void (faults.rebootNeverEnds = false)
      case 'takes very long to stop':
        faults.stopPodsMs = forMs
        return () => void (faults.stopPodsMs = undefined)
      case 'never stops its pods':
        faults.stopPodsMs = Number.POSITIVE_INFINITY
        return () => void (faults.stopPodsMs = undefined)
      default:
        faults.kubeletNeverRegisters = true
        return () => void (faults.kubeletNeverRegisters = false)
    }
  },
}

const ANEW = 'is installed anew by an older Talos'

/** The newest release of two minors before the one that is asked for, or before what runs: from there none goes to it. */
const olderThan = (version: string): string | undefined => {
  const minor = Number(/^v1\.(\d+)\./.exec(version)?.[1]) - 2
  return RELEASE_NAMES.findLast(name => name.startsWith(`v1.${minor}.`))
}

/** Not while it is worked on. Its TalosMachine is deleted with it, so that it is found as another one. */
const installAnew = (stage: Stage, machine: Machine): void => {
  const { world } = stage.story
  const { version = stage.plan.shape.talos } = (stage.plan.operations[0]?.spec['talos'] ?? {}) as { readonly version?: string }
  const older = olderThan(version)
  const isOpen = stage.operations().some(o => o.status.machines?.some(t => t.node === machine.name && t.phase === 'Running'))
  if (older === undefined || isOpen || machine.stage !== 'running' || !answers(machine)) return
  stage.note(`${machine.name} ${ANEW}, ${older}`)
  stage.byHand(machine, () => {
    world.powerOff(machine.name)
    installOther(machine, older, `${machine.nodeID.slice(0, -6)}other=`)
    machine.uuid = stage.random.uuid()
    for (const { metadata, spec } of world.store.list(ICHOR.machines).items)
      if (machine.addresses.includes((spec as { readonly address: string }).address))
        world.store.remove(ICHOR.machines, metadata.namespace ?? '', metadata.name)
    world.powerOn(machine.name)
  })
}

/** A worker gets another address at its next boot, or another machine takes its place; members of etcd stay what they are. */
export const address: Trouble<Stage> = {
  family: 'address',
  harmless: false,
  draw: prospect => {
    const { shape, random } = prospect
    return {
      ...drawOn(
        'address',
        ['comes back with another address', 'comes back with another address', 'is replaced by another machine', ANEW],
        60_000,
        600_000,
      )(prospect),
      machine: shape.workers > 0 ? shape.controlPlanes + random.between(0, shape.workers - 1) : 0,
    }
  },
  strike: (stage, { what, machine: index }) => {
    const { world } = stage.story
    const machine = stage.machine(index)
    if (machine.role !== 'worker') return
    if (what === ANEW) return installAnew(stage, machine)
    stage.note(`${machine.name} ${what} from its next boot`)
    const stop = world.journal.onEntry(entry => {
      if (entry.machine !== machine.name || entry.what !== 'down') return
      stop()
      if (what === 'is replaced by another machine') {
        stage.note(`${machine.name} is another machine now`)
        return stage.byHand(machine, () => {
          machine.nodeID = `${machine.nodeID.slice(0, -6)}other=`
          machine.uuid = stage.random.uuid()
        })
      }
      stage.byHand(machine, () => {
        machine.addresses = [`10.5.1.${machine.index + 2}`]
      })
      stage.note(`${machine.name} has the address ${machine.addresses[0]} now`)
    })
    return stop
  },
}

export const etcd: Trouble<Stage> = {
  family: 'etcd',
  harmless: false,
  draw: ({ random, shape, horizonMs }) => ({
    family: 'etcd',
    what: random.pick([
      ...['elects', 'elects', 'is sick', 'does not start', 'has an alarm', 'has an orphan'],
      ...['is full', 'disagrees', 'has a learner', 'has a member without a name', 'has two orphans'],
    ]),
    when: { at: random.chance(0.2) ? 0 : random.between(0, horizonMs) },
    machine: random.between(0, shape.controlPlanes - 1),
    forMs: random.between(5000, 300_000),
  }),
  strike: (stage, { what, machine: index }) => {
    const { world } = stage.story
    const machine = stage.machine(index)
    stage.note(`etcd of ${machine.name} ${what}`)
    switch (what) {
      case 'elects':
        world.etcd.elect()
        return
      case 'is sick':
        if (!world.etcd.memberOf(machine)) return
        world.sicken(machine.name, true)
        return () => {
          if (world.etcd.memberOf(machine)) world.sicken(machine.name, false)
        }
      case 'does not start':
        world.faults.of(machine).etcdNeverStarts = true
        return () => void (world.faults.of(machine).etcdNeverStarts = false)
      case 'has an alarm':
      case 'disagrees': {
        const member = world.etcd.memberOf(machine)
        if (!member) return
        world.etcd.raiseAlarm(member.id, what === 'disagrees' ? 'CORRUPT' : 'NOSPACE')
        return () => world.etcd.disarm()
      }
      case 'is full':
        world.etcd.fill()
        return () => {
          for (const member of world.etcd.members()) member.dbSize = member.dbSizeInUse
          world.etcd.disarm()
        }
      default: {
        const name = what === 'has a member without a name' ? '' : 'gone'
        const orphans = (what === 'has two orphans' ? ['10.5.9.9', '10.5.9.8'] : ['10.5.9.9']).map(address =>
          world.etcd.addMember(name, `https://${address}:2380`, undefined, what === 'has a learner'),
        )
        return () => {
          for (const { id } of orphans) world.etcd.removeMember(id)
        }
      }
    }
  },
}

/** Somebody deletes what fills etcd, and gives its space back. */
const makeRoom = ({ story: { world } }: Stage): void => {
  const { etcd } = world
  if (!etcd.isFull()) return
  for (const member of etcd.members()) {
    if (!member.machine) continue
    member.dbSizeInUse = Math.min(member.dbSizeInUse, etcdQuotaOf(member.machine.config) / 2)
    member.dbSize = member.dbSizeInUse
  }
  etcd.disarm()
}

/** Everything that is wrong with machines is put right: by a person with a key to the room. */
export const mendMachines = (stage: Stage): void => {
  const { world } = stage.story
  const registers = (machine: Machine): boolean => kubernetesConfigOf(world.site, machine).registersNode
  makeRoom(stage)
  // Where no API server runs Ichor can tell nobody why: somebody brings an image that does.
  if (!world.api.available()) world.faults.crashing.clear()
  // One that was reset waits for a configuration, which is nobody's to give.
  for (const machine of world.machines.filter(m => m.config !== '')) {
    Object.assign(world.faults.of(machine), {
      installer: undefined,
      failedBoots: 0,
      bootsOldSlot: 0,
      rebootNeverEnds: false,
      stopPodsMs: undefined,
      kubeletNeverRegisters: false,
      etcdNeverStarts: false,
      bootPartitionFull: false,
      slowMs: 0,
    })
    stage.byHand(undefined, () => {
      world.blackHole(machine.name, false)
      const isDark = !machine.powered || !machine.apid
      // One that is on its way up, or in the middle of a sequence, is left alone.
      const isUpForLong =
        machine.powered && machine.apid && machine.sequence === undefined && world.schedule.now() - machine.bootedAt > 300_000
      const isStuck =
        machine.sequence?.stuck === true || (machine.sequence !== undefined && world.schedule.now() - machine.sequence.since > 1_800_000)
      const isLost = registers(machine) && machine.stage === 'running' && world.store.get(RESOURCE.nodes, '', machine.name) === undefined
      const isDumb = machine.powered && machine.apid && machine.role === 'controlplane' && world.etcd.memberOf(machine)?.running === false
      // Where nobody answers there is nothing stale to be seen.
      const hasStaleNode =
        world.api.available() &&
        registers(machine) &&
        machine.kubelet &&
        (world.store.get(RESOURCE.nodes, '', machine.name)?.status as { nodeInfo?: { bootID?: string } } | undefined)?.nodeInfo?.bootID !==
          machine.bootID
      if (isStuck || (isUpForLong && (isLost || isDumb || hasStaleNode))) {
        stage.byHand(machine, () => {
          world.powerOff(machine.name)
          world.powerOn(machine.name)
        })
      } else if (isDark) world.powerOn(machine.name)
    })
  }
}
