import { readdress } from './addresses.ts'
import { haveCertificate, openApi } from './certificates.ts'
import { configOnDisk } from './configuration.ts'
import { cutByConfig } from './cut.ts'
import { goDown, stopStaticPods } from './down.ts'
import { startEtcd } from './etcd-membership.ts'
import { initialize } from './initialize.ts'
import { installIfNeeded } from './install-sequence.ts'
import { kubeletRunOf, startKubelet } from './kubelet.ts'
import type { Machine } from './machine.ts'
import { isReady, requiredServices, setStage, versionOf } from './machine.ts'
import { roleIn } from './machine-config.ts'
import { lastUnmounts, moment } from './phases.ts'
import { isAtLeast } from './releases.ts'
import { startSequence } from './sequencer.ts'
import { earlyServices, isServiceUp, setServiceState, startService } from './services.ts'
import type { Change, Site } from './site.ts'
import { later } from './site.ts'
import { runStaticPods } from './static-pods.ts'
import { META_FALLBACK, chooseSlot, isInstalled, revert } from './slots.ts'

/** The firmware or kexec loads a kernel; what it finds decides what runs. */
const comeUp = (site: Site, machine: Machine): void => {
  const faults = site.faults.of(machine)
  const { disk } = machine
  const chosen = chooseSlot(disk)
  const isFresh = disk.meta.has(META_FALLBACK) && chosen !== disk.meta.get(META_FALLBACK)
  machine.bootID = site.schedule.random.uuid()
  machine.bootedAt = site.schedule.now()
  machine.armed = false
  if (isFresh && faults.failedBoots > 0) {
    faults.failedBoots--
    site.journal.write(machine.name, 'boot-failed', `${disk.slots[chosen]?.version ?? ''}: falls back`)
    revert(disk)
    later(site, machine, site.durations.fixed(10_000) + site.durations.draw('reboot'), () => comeUp(site, machine))
    return
  }
  if (isFresh && faults.bootsOldSlot > 0) {
    faults.bootsOldSlot--
    disk.next = chosen === 'A' ? 'B' : 'A'
    site.journal.write(machine.name, 'boot-failed', `${disk.slots[chosen]?.version ?? ''}: the boot loader takes the other slot`)
  }
  disk.booted = chooseSlot(disk)
  disk.next = disk.booted
  if (!isInstalled(disk) && !disk.media) {
    site.journal.write(machine.name, 'boot-failed', 'no bootable device')
    return
  }
  disk.slotless = isInstalled(disk) ? undefined : disk.media
  // What was not written to a disk is lost.
  machine.config = isInstalled(disk) ? configOnDisk(machine) : ''
  machine.onDisk = undefined
  machine.hasPersistent = false
  if (!isInstalled(disk)) machine.partial = ''
  // What it is may have changed with its configuration, and does so only here.
  if (machine.config !== '') machine.role = roleIn(machine.config)
  site.journal.write(machine.name, 'boot', `${versionOf(machine)} ${machine.bootID}`)
  cutByConfig(site, machine)
  if (machine.nextAddresses) readdress(site, machine, machine.nextAddresses)
  openApi(site, machine)
  const restarts = { restart: (why: string) => restart(site, machine, why), failed: () => failSequence(site, machine) }
  initialize(site, machine, () => installIfNeeded(site, machine, { ...restarts, done: () => startBoot(site, machine) }))
}

/** How often a machine without the time asks for it. */
const ASK_TIME_MS = 5000

/** What the time matters to waits for it; for how long is nobody's limit. */
const whenTimeIsSynced = (site: Site, machine: Machine, run: () => void): void => {
  machine.waitsForTime = site.faults.of(machine).timeNeverSyncs
  if (!machine.waitsForTime) return run()
  const waiting = machine.role === 'controlplane' ? ['kubelet', 'trustd', 'etcd'] : ['kubelet']
  for (const id of waiting) if (!machine.services.has(id)) setServiceState(site, machine, id, 'Waiting', 'Waiting for time sync')
  later(site, machine, site.durations.fixed(ASK_TIME_MS), () => whenTimeIsSynced(site, machine, run))
}

/** How often an etcd that ends at once is started again. */
const RESTART_ETCD_MS = 5000

/** As long as something keeps it from starting, it is tried again. */
const startEtcdAtLast = (site: Site, machine: Machine): void => {
  if (site.faults.of(machine).etcdNeverStarts)
    later(site, machine, site.durations.fixed(RESTART_ETCD_MS), () => startEtcdAtLast(site, machine))
  else later(site, machine, site.durations.draw('etcdStart'), () => startEtcd(site, machine))
}

/** Until there is a system disk, nothing of it can be mounted. */
const whenInstalled = (site: Site, machine: Machine, run: () => void): void => {
  if (isInstalled(machine.disk)) return run()
  const { life } = machine
  const unsubscribe = site.listen(changed => {
    if (machine.life !== life) return unsubscribe()
    if (changed !== machine || !isInstalled(machine.disk)) return
    unsubscribe()
    run()
  })
}

const startBoot = (site: Site, machine: Machine): void => {
  const { durations } = site
  const { life } = machine
  const startAll = (end: () => void): void => {
    startService(site, machine, 'cri')
    whenTimeIsSynced(site, machine, () => {
      setServiceState(site, machine, 'kubelet', 'Preparing', 'Creating service runner')
      later(site, machine, durations.draw('kubeletStart'), () => startKubelet(site, machine))
      if (machine.role !== 'controlplane') return
      startService(site, machine, 'trustd')
      setServiceState(site, machine, 'etcd', 'Preparing', 'Running pre state')
      startEtcdAtLast(site, machine)
    })
    const unsubscribe = site.listen(changed => {
      if (machine.life !== life) return unsubscribe()
      if (changed !== machine || !requiredServices(machine).every(id => isServiceUp(machine, id))) return
      unsubscribe()
      later(site, machine, durations.draw('finishBoot'), end)
    })
  }
  startSequence(
    site,
    machine,
    {
      name: 'boot',
      phases: [
        { name: 'memorySizeCheck', tasks: ['memorySizeCheck'] },
        { name: 'diskSizeCheck', tasks: ['diskSizeCheck'] },
        { name: 'env', tasks: ['setUserEnvVars', 'waitForCARoots'] },
        { name: 'dbus', tasks: ['startDBus'] },
        ...(machine.platform === 'container' ? [moment('sharedFilesystems', 'setupSharedFilesystems')] : []),
        {
          name: 'ephemeral',
          tasks: ['mountEphemeralPartition'],
          run: end => whenInstalled(site, machine, () => later(site, machine, durations.draw('bootTasks'), () => end())),
        },
        ...(isAtLeast(versionOf(machine), 1, 14) ? [moment('promotableVolumes', 'mountPromotableSystemPartitions')] : []),
        ...(machine.platform === 'container' || isAtLeast(versionOf(machine), 1, 14) ? [] : [moment('udevSetup', 'writeUdevRules')]),
        ...(machine.platform === 'container' ? [] : [moment('userDisks', 'mountUserDisks')]),
        { name: 'userSetup', tasks: ['writeUserFiles'] },
        { name: 'startEverything', tasks: ['startAllServices'], run: end => startAll(() => end()) },
      ],
      ended: error => {
        if (error === undefined) setStage(site, machine, 'running')
      },
    },
    '',
  )
}

/** The last phase of a sequence that restarts the machine. */
export const restart = (site: Site, machine: Machine, why: string): void => {
  goDown(site, machine, why)
  const { rebootNeverEnds, firmwareMs } = site.faults.of(machine)
  if (rebootNeverEnds) return
  later(site, machine, site.durations.draw('reboot') + firmwareMs, () => comeUp(site, machine))
}

/** A sequence failed: the boot slot goes back if the way back is noted, and the machine reboots after a pause. */
export const failSequence = (site: Site, machine: Machine): void => {
  if (machine.disk.meta.has(META_FALLBACK)) revert(machine.disk)
  if (isAtLeast(versionOf(machine), 1, 13) && machine.platform !== 'container')
    startSequence(site, machine, { name: 'emergencyVolumeCleanup', takesOver: true, forced: true, phases: lastUnmounts }, '')
  later(site, machine, site.durations.fixed(40_000), () => restart(site, machine, 'sequence failed'))
}

export const powerOff = (site: Site, machine: Machine): void => {
  if (!machine.powered) return
  machine.powered = false
  goDown(site, machine, 'power off')
}

/** Does nothing to a machine that answers; one that is dark but has power is switched off first. Also the way out of a reboot that never ends. */
export const powerOn = (site: Site, machine: Machine): void => {
  if (machine.powered && machine.apid) return
  if (machine.powered) goDown(site, machine, 'power off')
  machine.powered = true
  machine.life++
  site.journal.write(machine.name, 'power-on')
  later(site, machine, site.durations.draw('powerOn'), () => comeUp(site, machine))
}

/** Brings a machine of a running cluster into being: everything started long ago. Its etcd member and Node are the caller's. */
export const beRunning = (site: Site, machine: Machine): void => {
  machine.bootID = site.schedule.random.uuid()
  machine.bootedAt = site.schedule.now() - site.schedule.random.between(86_400_000, 30 * 86_400_000)
  machine.apid = true
  haveCertificate(site, machine)
  machine.stage = 'running'
  for (const id of new Set([...earlyServices(machine), ...requiredServices(machine), 'cri'])) {
    if (id === 'etcd') site.etcd.start(machine)
    startService(site, machine, id)
  }
  machine.kubelet = true
  machine.kubeletRun = kubeletRunOf(site, machine)
  if (machine.role === 'controlplane') runStaticPods(site, machine, machine.bootedAt)
}

/** After which static pods that should run may be missing, or run where they should not. */
const MOVES_STATIC_PODS: ReadonlySet<Change> = new Set(['stage', 'etcd', 'services', 'kubelet-up'])

/** What follows from changes: the fallback is dropped once the machine runs and is ready; static pods follow etcd. */
export const followChanges = (site: Site): void => {
  site.listen((machine, change) => {
    const { disk, life } = machine
    if (machine.stage === 'running' && disk.meta.has(META_FALLBACK) && !machine.armed && isReady(site, machine)) {
      disk.meta.delete(META_FALLBACK)
      site.journal.write(machine.name, 'fallback-dropped', versionOf(machine))
    }
    if (machine.role !== 'controlplane' || !MOVES_STATIC_PODS.has(change)) return
    const healthy = machine.services.get('etcd')?.health === 'healthy'
    if (machine.staticPods && !healthy && machine.stage === 'running' && machine.services.get('etcd')?.health === 'unhealthy') {
      // The kubelet learns of it by polling; without one they go on.
      site.schedule.after(site.durations.fixed(site.schedule.random.between(1000, 20_000)), () => {
        if (machine.life === life && machine.kubelet && machine.services.get('etcd')?.health === 'unhealthy') stopStaticPods(site, machine)
      })
    }
    if (!machine.staticPods && healthy && machine.kubelet && machine.stage === 'running') {
      later(site, machine, site.durations.draw('staticPods'), () => {
        if (machine.staticPods || !machine.kubelet || machine.services.get('etcd')?.health !== 'healthy') return
        runStaticPods(site, machine, site.schedule.now())
        site.journal.write(machine.name, 'static-pods', 'run')
        site.tell(machine, 'static-pods')
      })
    }
  })
}
