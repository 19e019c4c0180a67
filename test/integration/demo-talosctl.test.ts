// The demo's machines and the official client, with what the demo prints: what a newcomer types first has to be answered sensibly.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { realPart } from '../real/parts.ts'

const part = await realPart('talosctl')
const main = join(import.meta.dirname, '..', '..', 'src', 'app', 'demo', 'main.ts')

describe.skipIf('missing' in part)('talosctl in the demo', () => {
  let demo: ChildProcess
  let ended: Promise<unknown>
  let home: string
  let said = ''
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'demo-talosctl-'))
    demo = spawn(process.execPath, [main, '--machines', '1+1', '--speed', '200'], { stdio: ['ignore', 'pipe', 'pipe'] })
    ended = new Promise(resolve => demo.once('close', resolve))
    demo.stdout!.on('data', (chunk: Buffer) => (said += chunk.toString()))
    demo.stderr!.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await vi.waitFor(() => expect(said).toMatch(/Ctrl-C ends the demo/), { timeout: 100_000, interval: 50 })
  }, 110_000)
  afterAll(async () => {
    demo.kill('SIGINT')
    await ended
    await rm(home, { recursive: true, force: true })
  }, 30_000)

  const [controlPlane, worker] = ['cp', 'wk']
  const commands: readonly (readonly [where: string | undefined, args: string, out: RegExp])[] = [
    [controlPlane, 'version --short', /NODE: +127[^]*Tag: +v1\.13\.9/],
    [worker, 'get members', /controlplane +Talos \(v1\.13\.9\)[^]*worker +Talos \(v1\.13\.9\)/],
    [worker, 'services', /kubelet +Running +OK/],
    [controlPlane, 'etcd status', /3\.6\.12/],
    [controlPlane, 'containers -k', /kube-apiserver:v1[^]*CONTAINER_RUNNING/],
    [worker, 'processes', /\/usr\/local\/bin\/kubelet/],
    [worker, 'netstat -l', /:::10250 +:::\* +LISTEN/],
    [controlPlane, 'cgroups --preset memory', /├──podruntime/],
    [worker, 'usage /var', / \.\n/],
    [worker, 'dmesg', /Linux version 6\.18\.44-talos/],
    [controlPlane, 'support -O support.zip -v', /getting system\/kubelet service logs\n/],
  ]
  test.for(commands)('%s: %s', { timeout: 60_000 }, async ([where, args, out]) => {
    const [, talosconfig = ''] = /talosctl --talosconfig (\S+) version/.exec(said) ?? []
    const [, first = ''] = /get members -n (\S+)/.exec(said) ?? []
    const address = where === controlPlane ? first : first.replace(/\d+$/, last => String(Number(last) + 1))
    const program = 'path' in part ? part.path : ''
    const options = { cwd: home, env: { ...process.env, HOME: home }, maxBuffer: 2 ** 26 }
    const { stdout } = await promisify(execFile)(program, ['--talosconfig', talosconfig, '-n', address, ...args.split(' ')], options)
    // Each column is followed by blanks.
    expect(stdout.replaceAll(/ +$/gm, '')).toMatch(out)
  })
})
