// The simulated machines as people start them: a process with a command line.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { realPart } from '../real/parts.ts'

const part = await realPart('talosctl')
const entry = join(import.meta.dirname, '..', '..', 'src', 'app', 'cli', 'entry.ts')

let child: ChildProcess | undefined
let said = ''
let exit: Promise<number | null>
const start = (...args: string[]): void => {
  said = ''
  const started = spawn(process.execPath, [entry, 'sim', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const listen = (chunk: Buffer) => void (said += chunk.toString())
  started.stdout.on('data', listen)
  started.stderr.on('data', listen)
  exit = new Promise(resolve => started.once('close', code => resolve(code)))
  child = started
}
const until = (pattern: RegExp): Promise<void> => vi.waitFor(() => expect(said).toMatch(pattern), { timeout: 40_000, interval: 50 })
afterEach(async () => {
  child?.kill('SIGKILL')
  if (child) await exit
  child = undefined
})

const listens = (host: string): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect({ host, port: 50_000 })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

describe('ichor sim talos', () => {
  test('serves machines, says how to reach them, and leaves nothing', { timeout: 90_000 }, async () => {
    start('talos', '--machines', '1+1', '--version', '1.12.5', '--speed', '50')
    await until(/Ctrl-C ends/)
    const [talosconfig, kubeconfig] = ['TALOSCONFIG', 'KUBECONFIG'].map(name => new RegExp(`export ${name}=(\\S+)`).exec(said)![1]!) as [
      string,
      string,
    ]
    const addresses = [...said.matchAll(/^ {2}(127\.\S+) +(cp|wk)-1/gm)].map(([, address]) => address!)
    expect(addresses).toHaveLength(2)
    expect(readFileSync(talosconfig, 'utf8')).toContain(addresses[0])
    expect(JSON.parse(readFileSync(kubeconfig, 'utf8'))).toMatchObject({ kind: 'Config' })
    expect(await Promise.all(addresses.map(listens))).toEqual([true, true])
    if ('path' in part) {
      const talosctl = (...args: string[]) => promisify(execFile)(part.path, ['--talosconfig', talosconfig, ...args])
      expect((await talosctl('-n', addresses.join(','), 'version', '--short')).stdout).toContain('v1.12.5')
      await talosctl('-n', addresses[1]!, 'reboot', '--wait=false')
      await until(/wk-1 +stage: rebooting/)
    }
    child!.kill('SIGINT')
    expect(await exit).toBe(0)
    expect(existsSync(talosconfig)).toBe(false)
    expect(await Promise.all(addresses.map(listens))).toEqual([false, false])
  })

  test.each([
    [['talos', '--machines', '3'], '--machines 3: must be 1 to 7 control planes + 0 to 100 workers, for example 3+3'],
    [['talos', '--version', '1.13.99'], '--version 1.13.99: there is no such Talos release'],
    [['talos', '--etcd-size', 'big'], '--etcd-size big: must be a number from 0 to 8192'],
    [['omni'], 'there is no simulation of omni; there is: talos'],
    [[], 'what shall be simulated? There is: talos'],
  ])('%j is refused in one sentence', { timeout: 30_000 }, async (args, sentence) => {
    start(...args)
    expect(await exit).toBe(2)
    expect(said).toContain(`error: ${sentence}`)
  })
})
