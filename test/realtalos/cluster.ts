// The machines that `npm run test:talos` has started, as its tests reach them.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { parse } from 'yaml'
import { type CertificateAndKey, createTalosCa, createTalosClient, validFor } from '../../src/adapters/pki/talos-pki.ts'
import { writeTalosconfig } from '../../src/adapters/talos/talosconfig.ts'
import type { Result } from '../../src/ports/fault.ts'
import type { LongCall } from '../../src/ports/talos.ts'
import { configsOf, type Place } from '../conformance/talos/answers.ts'
import type { Person } from '../conformance/talos/commands.ts'

export type MachineName = 'cp-1' | 'cp-2' | 'cp-3' | 'wk-1'
export const addresses = { 'cp-1': '10.5.0.2', 'cp-2': '10.5.0.3', 'cp-3': '10.5.0.4', 'wk-1': '10.5.0.11', nobody: '10.5.0.99' }
export const controlPlanes = [addresses['cp-1'], addresses['cp-2'], addresses['cp-3']]

const cache = process.env.REALTALOS_CACHE ?? join(import.meta.dirname, '..', '..', '.cache', 'realtalos')
/** What lies there goes with the machines. */
export const state = join(cache, 'run')

/** Does to a machine what a hand would: `kill`, `start`, `cut` its network, `heal` it. */
export async function machine(action: 'kill' | 'start' | 'cut' | 'heal', name: MachineName): Promise<void> {
  await promisify(execFile)(join(import.meta.dirname, 'machine.sh'), [action, name])
}

/** The talosconfig that `talosctl gen config` wrote. */
export const officialTalosconfig = (): string => readFileSync(join(state, 'talosconfig'), 'utf8')

/** The authority of the machines, out of their configuration. */
function authority(): CertificateAndKey {
  const [document] = readFileSync(join(state, 'controlplane.yaml'), 'utf8').split(/^---$/m)
  const { ca } = (parse(document!) as { machine: { ca: CertificateAndKey } }).machine
  const text = (base64: string) => Buffer.from(base64, 'base64').toString()
  return { crt: text(ca.crt), key: text(ca.key) }
}

/** A talosconfig of our own making, signed by the machines' authority or another. */
export async function talosconfig(options: {
  readonly role: string
  readonly signedBy?: CertificateAndKey
  readonly endpoints?: readonly string[]
  readonly hours?: number
}): Promise<string> {
  const ca = authority()
  const validity = validFor(new Date(Date.now() - 60_000), options.hours ?? 24)
  const { crt, key } = await createTalosClient({ ca: options.signedBy ?? ca, roles: [options.role], validity })
  const endpoints = options.endpoints ?? controlPlanes
  return writeTalosconfig({ contextName: 'home', endpoints, caPem: options.signedBy?.crt ?? ca.crt, crtPem: crt, keyPem: key })
}

const roles: Readonly<Record<Exclude<Person, 'admin' | 'foreign' | 'worker'>, string>> = {
  operator: 'os:operator',
  reader: 'os:reader',
  backup: 'os:etcd:backup',
}

/** What talosctl writes there goes with the machines. */
export async function realPlace(): Promise<Place> {
  const home = mkdtempSync(join(state, 'talosctl-'))
  const configs = await configsOf(async person => {
    if (person === 'admin') return officialTalosconfig()
    if (person === 'worker') return talosconfig({ role: 'os:admin', endpoints: [addresses['wk-1']] })
    if (person === 'foreign')
      return talosconfig({ role: 'os:admin', signedBy: await createTalosCa({ from: new Date(Date.now() - 3_600_000) }) })
    return talosconfig({ role: roles[person] })
  }, home)
  return { talosctl: join(cache, 'bin', 'talosctl'), home, configs, addresses }
}

export function valueOf<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.fault.kind}: ${result.fault.message}`)
  return result.value
}

/** To be matched: a Fault of that kind that says these words, in this order. */
export const refused = (kind: string, ...words: string[]) => ({
  ok: false,
  fault: { kind, message: expect.stringMatching(new RegExp(words.join('.*'))) as string },
})

export const longCall: LongCall = { progress: () => {}, cancellation: { cancelled: false, onCancel: () => () => {} } }

/** Runs talosctl to its end, as the admin. */
export async function talosctl({ talosctl: program, home, configs }: Place, ...args: string[]): Promise<string> {
  const env = { ...process.env, HOME: home, TALOSCONFIG: configs.admin }
  return (await promisify(execFile)(program, args, { env, cwd: home })).stdout
}
