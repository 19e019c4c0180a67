import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Child, startChild } from '../child.ts'

export type ControllerProcess = {
  readonly pid: () => number
  readonly logPath: string
  /** kill -9, and then another one. */
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  /** It may end the passes that run; after a moment it has to go. */
  readonly stop: () => Promise<void>
}

/** How long a controller may take to give up its leadership. */
const STOP_MS = 2_000

/**
 * The controller as it ships, as a process of its own; it dies with us, however we end. `ended` hears of an end that nobody asked for.
 */
export const startControllerProcess = async (options: {
  readonly kubeconfigPath: string
  readonly namespace: string
  readonly pace: number
  readonly folder: string
  readonly ended: (lastWords: string) => void
}): Promise<ControllerProcess> => {
  const logPath = join(options.folder, 'controller.log')
  const args = [
    ...programOf(import.meta.dirname),
    ...['--kubeconfig', options.kubeconfigPath, '--namespace', options.namespace, '--pace', String(options.pace)],
    // There is never more than one, and the one that follows need not wait for the lease of the dead one to run out.
    ...['--identity', 'demo', '--lease-namespace', options.namespace],
  ]
  let child: Child | undefined
  let isWanted = false

  const start = async (): Promise<void> => {
    isWanted = true
    const started = await startChild({ command: process.execPath, args, logPath, removeOnCrash: options.folder })
    child = started
    void started.exited.then(() => {
      if (isWanted && child === started) options.ended(started.lastWords())
    })
  }
  const kill = async (): Promise<void> => {
    isWanted = false
    await child?.kill('SIGKILL')
  }
  await start()
  return {
    pid: () => child?.pid ?? 0,
    logPath,
    start,
    kill,
    stop: async () => {
      isWanted = false
      await Promise.race([child?.kill('SIGTERM'), pause(STOP_MS, undefined, { ref: false })])
      await kill()
    },
  }
}

/** In a checkout the source; from the bundle, the bundle. */
const programOf = (here: string): readonly string[] => {
  const source = join(here, '..', 'controller', 'main.ts')
  if (existsSync(source)) return ['--disable-warning=ExperimentalWarning', source]
  const bundle = [join(here, 'ichor.mjs'), join(here, '..', 'ichor.mjs')].find(existsSync)
  if (!bundle) throw new Error('the controller is not where the demo looks for it')
  return [bundle, 'controller']
}
