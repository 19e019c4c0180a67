import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Child, startChild } from '../child.ts'
import { createRestarts } from './restarts.ts'

export type ControllerProcess = {
  readonly pid: () => number
  readonly logPath: string
  /** kill -9, and no other one until `start`. */
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  /** It may end the passes that run; after a moment it has to go. */
  readonly stop: () => Promise<void>
}

/** How long a controller may take to give up its leadership. */
const STOP_MS = 2_000
/**
 * The controller as it ships, as a process of its own; it dies with us, however we end. When somebody ends it another is started, as a Deployment
 * would, however often. `restarted` hears of that, and `failed` of one that cannot run.
 */
export const startControllerProcess = async (options: {
  readonly kubeconfigPath: string
  readonly namespace: string
  readonly pace: number
  readonly folder: string
  /** Of this replica, in the election and in the name of its log. */
  readonly identity: string
  readonly restarted: (before: number, now: number) => void
  readonly failed: (error: unknown) => void
}): Promise<ControllerProcess> => {
  const { folder, identity, restarted, failed } = options
  const logPath = join(folder, identity === 'demo' ? 'controller.log' : `controller-${identity}.log`)
  const args = [
    ...programOf(import.meta.dirname),
    ...['--kubeconfig', options.kubeconfigPath, '--namespace', options.namespace, '--pace', String(options.pace)],
    ...['--identity', identity, '--lease-namespace', options.namespace],
  ]
  let child: Child | undefined
  const restarts = createRestarts()
  /** Goes up with every start and kill: who waits to start the next one sees that somebody else decided meanwhile. */
  let turn = 0

  const start = async (): Promise<void> => {
    const mine = ++turn
    const begun = Date.now()
    const started = await startChild({ command: process.execPath, args, logPath, removeOnCrash: folder })
    if (turn !== mine) return started.kill()
    child = started
    started.exited.then(exitCode => again(started, mine, { exitCode, livedMs: Date.now() - begun })).catch(failed)
  }
  const again = async (ended: Child, its: number, life: { readonly exitCode: number; readonly livedMs: number }): Promise<void> => {
    if (turn !== its) return
    const waitMs = restarts.after(life)
    if (waitMs === 'never')
      throw new Error(`the controller ends by itself, with exit code ${life.exitCode}; its last words:\n${ended.lastWords()}`)
    await pause(waitMs)
    if (turn !== its) return
    await start()
    restarted(ended.pid, child?.pid ?? 0)
  }
  const kill = async (): Promise<void> => {
    turn += 1
    await child?.kill('SIGKILL')
  }
  await start()
  return {
    pid: () => child?.pid ?? 0,
    logPath,
    start,
    kill,
    stop: async () => {
      turn += 1
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
