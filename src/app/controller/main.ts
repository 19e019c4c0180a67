import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { loadKubeConfig } from '../../adapters/kube/kubeconfig.ts'
import { startController } from '../../engine/controller.ts'
import type { Log } from '../../engine/log.ts'
import { startRights } from '../../api/start-rights.ts'
import { policies } from '../../install/policies.ts'
import { kinds } from '../../kinds/registry.ts'
import { version } from '../cli/version.ts'
import { openPorts, type PortOptions } from '../open-ports.ts'
import { systemClock } from '../system-clock.ts'
import { createMetrics } from './metrics.ts'
import { obstacle } from './obstacle.ts'
import { CONTROLLER_HELP, readSettings } from './options.ts'
import { serveStatus } from './serve-status.ts'
import { createVitals } from './vitals.ts'

/** Runs the controller until SIGTERM or SIGINT. Answers the exit code. `hooks` see every request and call, for who counts them. */
export const runController = async (argv: readonly string[], hooks: Pick<PortOptions, 'onRequest' | 'onCall'> = {}): Promise<number> => {
  const read = readSettings(argv, process.env)
  if (!read.ok) {
    process.stderr.write(`error: ${read.problem}\n  ichor controller --help shows the options.\n`)
    return 2
  }
  if (read.settings === 'help') {
    process.stdout.write(CONTROLLER_HELP)
    return 0
  }
  const { kubeconfig, context, namespace, leaseNamespace, identity, self, pace, logLevel, listen } = read.settings
  const config = await loadKubeConfig({
    ...(kubeconfig ? { kubeconfigPath: kubeconfig } : {}),
    ...(context ? { context } : {}),
    env: process.env,
  })
  if (!config.ok) {
    process.stderr.write(`error: ${config.fault.message}\n`)
    return 1
  }
  const logger = pino({ level: logLevel, base: { identity } }, pino.destination({ dest: 1, sync: true }))
  const log: Log = {
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
  }
  log.info('starting', { version, server: config.value.server, namespace: namespace ?? 'all', kinds: kinds.map(k => k.name) })
  const metrics = createMetrics(systemClock, version)
  const vitals = createVitals()
  const ports = openPorts({
    config: config.value,
    userAgent: `ichor-controller/${version}`,
    instance: identity,
    ...(namespace ? { namespace } : {}),
    problem: message => log.warn(message),
    policies: user => policies(startRights(kinds), user),
    onRequest: record => {
      metrics.onRequest(record)
      vitals.onRequest(record)
      hooks.onRequest?.(record)
    },
    onCall: report => {
      metrics.onCall(report)
      hooks.onCall?.(report)
    },
  })
  const status = listen && (await serveStatus(listen, { registry: metrics.registry, ...vitals }).catch((error: Error) => error))
  const close = async (): Promise<void> => {
    ports.close()
    if (status && !(status instanceof Error)) await status.close()
  }
  if (status instanceof Error) {
    process.stderr.write(`error: --listen: ${status.message}\n`)
    await close()
    return 1
  }
  if (status) log.info('listening', { address: status.address })
  const stop = toldToStop()
  if (!(await untilReady(() => obstacle(ports.client, { namespace, leaseNamespace }), stop, log))) {
    await close()
    return 0
  }
  const controller = startController({
    home: metrics.counted(ports.home),
    connections: ports.connections,
    clock: systemClock,
    random: Math.random,
    kinds,
    log,
    identity,
    leaderLease: { namespace: leaseNamespace, name: 'ichor-controller' },
    self,
    pace,
    passed: metrics.passed,
  })
  metrics.show({ controller, home: ports.home, namespace })
  vitals.look(controller, ports.home)
  await stop
  log.info('stopping: the passes that run end first')
  await controller.stop()
  await close()
  return 0
}

const LOOK_AGAIN_MS = 1_000

/** Waits for what only a person can give, and says so once for each thing. False when it is told to stop before. */
const untilReady = async (missing: () => Promise<string | undefined>, stop: Promise<void>, log: Log): Promise<boolean> => {
  let isStopped = false
  const stopped = stop.then((): undefined => {
    isStopped = true
  })
  let said: string | undefined
  for (;;) {
    const sentence = await Promise.race([missing(), stopped])
    if (isStopped) return false
    if (sentence === undefined) break
    if (sentence !== said) log.error(`waiting: ${sentence}`)
    said = sentence
    await Promise.race([stopped, pause(LOOK_AGAIN_MS)])
  }
  if (said !== undefined) log.info('what was missing is there now')
  return true
}

const toldToStop = (): Promise<void> =>
  new Promise(resolve => {
    process.once('SIGTERM', () => resolve())
    process.once('SIGINT', () => resolve())
  })

if (import.meta.main) process.exitCode = await runController(process.argv.slice(2))
