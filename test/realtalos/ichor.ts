// Ichor on the real machines: its resources in their own Kubernetes, its controller as a process, its command line as people type it.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { leaseName } from '../../src/api/names.ts'
import type { TalosMachine } from '../../src/api/talos-machine.ts'
import type { TalosOperation } from '../../src/api/talos-operation.ts'
import { type Child, startChild } from '../../src/app/child.ts'
import { officialTalosconfig, state } from './cluster.ts'

export const NAMESPACE = 'ichor-system'
export const CLUSTER = 'home'

const program = join(import.meta.dirname, '..', '..', 'bin', 'ichor')
// From the source, so that no bundle of yesterday is looked at.
const env = { ...process.env, ICHOR_SOURCE: '1' }

/** Runs the command line to its end; rejects with `code`, `stdout` and `stderr` where it does not exit with 0. */
export const ichor = (...args: readonly string[]) => promisify(execFile)(program, [...args, '-n', NAMESPACE], { env })

export const kubectl = async (...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)('kubectl', ['--request-timeout=15s', ...args], { maxBuffer: 2 ** 26 })).stdout

/** talosctl as the admin; TALOSCONFIG is set where the tests run. */
export const talos = async (...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)('talosctl', [...args], { timeout: 30_000 })).stdout

/** Creates what the manifest says, or brings it up to date. */
export async function applied(manifest: object, how: 'apply' | 'create' = 'apply'): Promise<void> {
  const running = promisify(execFile)('kubectl', [how, '-f', '-'])
  running.child.stdin?.end(JSON.stringify(manifest))
  await running
}

/** The object of that kind and name, in Ichor's namespace where it has one. */
export const get = async <T>(resource: string, name: string, namespace = NAMESPACE): Promise<T> =>
  JSON.parse(await kubectl('get', resource, name, '-n', namespace, '-o', 'json')) as T

export const operation = (name: string) => get<TalosOperation>('talosoperation', name)

/** By host name. */
export async function machines(): Promise<Readonly<Record<string, TalosMachine>>> {
  const { items } = JSON.parse(await kubectl('get', 'talosmachines', '-n', NAMESPACE, '-o', 'json')) as { items: readonly TalosMachine[] }
  return Object.fromEntries(items.map(machine => [machine.status?.hostname ?? machine.metadata.name, machine]))
}

export type Lease = { readonly spec: { readonly holderIdentity?: string; readonly leaseTransitions?: number } }
/** Who holds the lock of the cluster by the Lease in its real API server; empty where nobody does. */
export const lockHolder = async (): Promise<string> => (await get<Lease>('lease', leaseName(CLUSTER))).spec.holderIdentity ?? ''

export type Bench = {
  /** Starts the controller, or starts it again after `kill`. */
  readonly start: () => Promise<void>
  /** With SIGKILL: nothing is finished or handed over. */
  readonly kill: () => Promise<void>
  /** What the controller has logged, over all its lives: one entry a line. */
  readonly log: () => readonly Logged[]
  readonly close: () => Promise<void>
}
export type Logged = { readonly level: number; readonly msg: string; readonly [field: string]: unknown }

/** Installs the resource types, makes the cluster known with an os:admin talosconfig, and starts the controller. */
export async function startIchor(): Promise<Bench> {
  const folder = mkdtempSync(join(state, 'ichor-'))
  const talosconfig = join(folder, 'talosconfig')
  writeFileSync(talosconfig, officialTalosconfig(), { mode: 0o600 })
  await ichor('install', '--no-controller')
  await ichor('cluster', 'add', CLUSTER, '--talosconfig', talosconfig)

  const logPath = join(folder, 'controller.log')
  let child: Child | undefined
  const start = async () => {
    const args = ['controller', '-n', NAMESPACE, '--lease-namespace', NAMESPACE, '--identity', 'ichor-0']
    child = await startChild({ command: '/usr/bin/env', args: ['ICHOR_SOURCE=1', program, ...args], logPath })
  }
  await start()
  return {
    start,
    kill: async () => child?.kill(),
    log: () =>
      readFileSync(logPath, 'utf8')
        .split('\n')
        .filter(line => line.startsWith('{'))
        .map(line => JSON.parse(line) as Logged),
    close: async () => {
      await child?.kill('SIGTERM')
      await kubectl('delete', 'namespace', NAMESPACE, '--timeout=60s', '--request-timeout=0')
      await rm(folder, { recursive: true, force: true })
    },
  }
}
