// What people do in more than one of the stories.
import { requestReboot } from '../../src/world/reboot.ts'
import type { Run } from '../field-cases/play.ts'

/** Once, the first time that it happens on that machine. */
export const when = (run: Run, machine: string, what: string, act: () => void): void => {
  const stop = run.world.journal.onEntry(entry => {
    if (entry.machine !== machine || entry.what !== what) return
    stop()
    act()
  })
}

export const rebootByHand = (run: Run, name: string, mode: 'default' | 'force' = 'default'): void =>
  run.byHand(() => void requestReboot(run.world.site, run.world.machine(name), mode))
