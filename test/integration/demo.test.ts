// The demo as people start it: a process with a command line. What it does is told by what it writes, and by what it leaves behind.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { realParts } from '../real/parts.ts'

const servers = await realParts('etcd', 'kube-apiserver')

const main = join(import.meta.dirname, '..', '..', 'src', 'app', 'demo', 'main.ts')
/** Longer than what a scenario waits for at most, so that it says itself what did not come. */
const LONG = 300_000
const QUICK = ['--speed', '200'] as const
const SMALL = ['--machines', '1+1', ...QUICK] as const

interface Demo {
  process: ChildProcess
  /** All that it wrote so far, both streams. */
  readonly said: () => string
  /** Resolves with what was said by then. */
  until(pattern: RegExp): Promise<string>
  exit: Promise<number | null>
}

const running: Demo[] = []

function startDemo(...args: string[]): Demo {
  return watched(spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }))
}

function watched(child: ChildProcess): Demo {
  let text = ''
  const listen = (chunk: Buffer) => {
    text += chunk.toString()
  }
  child.stdout!.on('data', listen)
  child.stderr!.on('data', listen)
  const exit = new Promise<number | null>(resolve => child.once('close', code => resolve(code)))
  const demo: Demo = {
    process: child,
    said: () => text,
    until: async pattern => {
      await vi.waitFor(
        () => {
          if (!pattern.test(text)) throw new Error(`it did not say ${pattern}:\n${text}`)
        },
        { timeout: LONG - 20_000, interval: 20 },
      )
      return text
    },
    exit,
  }
  running.push(demo)
  return demo
}

afterEach(async ({ task }) => {
  for (const { process: child, exit, said } of running.splice(0)) {
    // One that came to no end in time tells no assertion where it stood.
    if (task.result?.state === 'fail') process.stderr.write(`${said()}\n`)
    child.kill('SIGKILL')
    await exit
    // Kept where it did not go well, for a person to look at.
    const kept = /The files are kept: (\S+)/.exec(said())?.[1]
    if (kept) rmSync(kept, { recursive: true, force: true })
  }
})

interface Traces {
  folder: string
  /** Every process that belongs to it: its own, the controller, and those that watch over it. */
  pids(): number[]
  ports: { host: string; port: number }[]
}

function tracesOf(demo: Demo): Traces {
  const text = demo.said()
  const folder = /Files +(\S+)/.exec(text)![1]!
  const kubernetes = Number(/https:\/\/127\.0\.0\.1:(\d+)/.exec(text)![1])
  const machine = /Machines +(\S+)/.exec(text)![1]!
  return {
    folder,
    pids: () => [...processesNaming(folder), ...(isAlive(demo.process.pid!) ? [demo.process.pid!] : [])],
    ports: [
      { host: '127.0.0.1', port: kubernetes },
      { host: machine, port: 50_000 },
    ],
  }
}

function processesNaming(text: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
      } catch {
        return false
      }
    })
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

function isListening({ host, port }: { host: string; port: number }): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ host, port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

async function expectNothingLeft(traces: Traces): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(traces.pids()).toEqual([])
      expect(existsSync(traces.folder)).toBe(false)
      for (const port of traces.ports) expect(await isListening(port)).toBe(false)
    },
    { timeout: 10_000, interval: 50 },
  )
}

describe('the demo, played to its end', () => {
  it(
    'upgrades three control planes and three workers, as a process with one command',
    async () => {
      const demo = startDemo('--once', ...QUICK)
      await demo.until(/Files/)
      const traces = tracesOf(demo)
      expect(traces.pids().length).toBeGreaterThan(1)
      expect(await demo.exit).toBe(0)
      expect(demo.said()).toContain('Ichor demo: 3 control planes and 3 workers with Talos v1.13.5')
      expect(demo.said()).toContain('$ ichor upgrade talos v1.13.9 --yes --wait')
      expect(demo.said()).toMatch(/Completed: 6 of 6 machines done/)
      expect(demo.said()).toContain('All 6 machines run Talos v1.13.9; each was rebooted once.')
      await expectNothingLeft(traces)
    },
    LONG,
  )

  it(
    'upgrades a single machine, whose Kubernetes API goes away with it',
    async () => {
      const demo = startDemo('--once', '--machines', '1+0', ...QUICK)
      expect(await demo.exit, demo.said()).toBe(0)
      expect(demo.said()).toContain('--acknowledge api-outage')
      expect(demo.said()).toMatch(/no sight of it, connecting again[^]*connected again/)
      expect(demo.said()).toContain('The machine runs Talos v1.13.9 and was rebooted once.')
    },
    LONG,
  )

  it(
    'takes the legacy call for Talos 1.12',
    async () => {
      const demo = startDemo('--once', '--to', '1.12.5', ...SMALL)
      expect(await demo.exit, demo.said()).toBe(0)
      expect(demo.said()).toContain('with Talos v1.12.4')
      expect(demo.said()).toMatch(/in step upgrade/)
      expect(demo.said()).not.toMatch(/step install/)
      expect(demo.said()).toContain('All 2 machines run Talos v1.12.5')
    },
    LONG,
  )

  it(
    'shows what is to be done where no registry has the image',
    async () => {
      const demo = startDemo('--once', '--scenario', 'image-not-found', ...SMALL)
      expect(await demo.exit, demo.said()).toBe(0)
      expect(demo.said()).toMatch(/FAILED: ImageNotFound on cp-1/)
      expect(demo.said()).toContain('No machine was touched')
      expect(demo.said()).toContain('$ ichor operation resume talos-1-13-9 --wait')
      expect(demo.said()).toContain('All 2 machines run Talos v1.13.9; each was rebooted once.')
    },
    LONG,
  )

  it(
    'shows that a controller killed in the middle of an install costs nothing but time',
    async () => {
      const demo = startDemo('--once', '--scenario', 'controller-killed', ...SMALL)
      expect(await demo.exit, demo.said()).toBe(0)
      expect(demo.said()).toMatch(/kill -9 \d+: the controller is gone, and wk-1 is in the middle of its install/)
      expect(demo.said()).toMatch(/Process \d+ is a new controller/)
      expect(demo.said()).toContain('All 2 machines run Talos v1.13.9; each was rebooted once.')
    },
    LONG,
  )

  it.each([
    ['pdb-blocks', '1+2', [/FAILED: DrainBlocked on wk-\d/, /held by PodDisruptionBudget ledger/, /each was rebooted once/]],
    ['etcd-unhealthy', '3+0', [/etcd on cp-\d falls ill now/, /Waiting.* etcd/, /What you see: it waits/, /each was rebooted once/]],
    ['boots-old-version', '1+1', [/FAILED: BootedOldVersion on wk-1/, /wk-1 needed a second try/]],
    [
      'two-operations',
      '1+1',
      [/Queued: the lock of cluster home is held by operation ichor-system\/talos-1-13-9/, /The upgrade came first/],
    ],
    ['leader-paused', '1+2', [/kill -STOP \d+/, /Process \d+ leads and has finished wk-\d/, /each was rebooted once/]],
  ])(
    'shows %s, what that means, and what to do',
    async (scenario, machines, patterns) => {
      const demo = startDemo('--once', '--scenario', scenario, '--machines', machines, ...QUICK)
      expect(await demo.exit, demo.said()).toBe(0)
      for (const pattern of [...patterns, /What you see: /, /What to do: /, /^✓ /m]) expect(demo.said()).toMatch(pattern)
    },
    LONG,
  )

  it(
    'ends with 1 when the upgrade does not come to its end, and keeps the files',
    async () => {
      // With one control plane the API might be away when the cancel comes.
      const demo = startDemo('--once', '--machines', '3+1', '--speed', '20')
      await demo.until(/step pull/)
      const { folder } = tracesOf(demo)
      const cli = join(import.meta.dirname, '..', '..', 'src', 'app', 'cli', 'entry.ts')
      const cancel = ['--kubeconfig', `${folder}/kubeconfig`, 'operation', 'cancel', 'talos-1-13-9', '--yes']
      const canceller = spawn(process.execPath, [cli, ...cancel], { stdio: 'ignore' })
      expect(await new Promise(resolve => canceller.once('exit', resolve))).toBe(0)
      expect(await demo.exit).toBe(1)
      expect(demo.said()).toMatch(/the upgrade ended with exit code [1-9]\d*, not 0/)
      expect(demo.said()).toContain(`The files are kept: ${folder}`)
      expect(existsSync(join(folder, 'controller.log'))).toBe(true)
    },
    LONG,
  )

  it.skipIf('missing' in servers)(
    'upgrades against a real kube-apiserver',
    async () => {
      const demo = startDemo('--once', '--kube-apiserver', '--machines', '1+2', ...QUICK)
      expect(await demo.exit, demo.said()).toBe(0)
      expect(demo.said()).toContain('customresourcedefinition.apiextensions.k8s.io/talosoperations.ichor.maesh.dev created')
      expect(demo.said()).toMatch(/a real kube-apiserver, v1\./)
      expect(demo.said()).toContain('All 3 machines run Talos v1.13.9; each was rebooted once.')
    },
    LONG,
  )
})

describe('a controller that is killed', () => {
  it(
    'is followed by another at every moment of an upgrade, and the end is the same',
    async () => {
      const demo = startDemo('--once', '--machines', '1+1', '--speed', '60')
      for (const step of ['pull', 'install', 'reboot', 'uncordon']) {
        const text = await demo.until(new RegExp(`wk-1\\S*: Running, step ${step}`))
        const pid = Number([...text.matchAll(/(?:Controller +process|; process) (\d+)/g)].at(-1)![1])
        process.kill(pid, 'SIGKILL')
        await demo.until(new RegExp(`The controller, process ${pid}, ended; process \\d+ goes on`))
      }
      expect(await demo.exit, demo.said()).toBe(0)
      expect(demo.said()).toContain('All 2 machines run Talos v1.13.9; each was rebooted once.')
    },
    LONG,
  )
})

describe('the end of the demo', () => {
  it(
    'leaves nothing behind after Ctrl-C, and says before how to go on',
    async () => {
      const demo = startDemo(...SMALL)
      await demo.until(/Ctrl-C ends the demo/)
      const traces = tracesOf(demo)
      expect(demo.said()).toContain(`export KUBECONFIG=${traces.folder}/kubeconfig`)
      for (const port of traces.ports) expect(await isListening(port)).toBe(true)
      demo.process.kill('SIGINT')
      expect(await demo.exit).toBe(0)
      await expectNothingLeft(traces)
    },
    LONG,
  )

  it(
    'leaves nothing behind when it is told to end in the middle',
    async () => {
      const demo = startDemo(...SMALL)
      await demo.until(/step install/)
      const traces = tracesOf(demo)
      demo.process.kill('SIGTERM')
      expect(await demo.exit).toBe(143)
      await expectNothingLeft(traces)
    },
    LONG,
  )

  it(
    'leaves nothing behind after kill -9',
    async () => {
      const demo = startDemo(...SMALL)
      await demo.until(/step install/)
      const traces = tracesOf(demo)
      demo.process.kill('SIGKILL')
      await demo.exit
      await expectNothingLeft(traces)
    },
    LONG,
  )

  it(
    'comes as well when who started it is killed',
    async () => {
      const shell = spawn('/bin/sh', ['-c', '"$@"; true', 'sh', process.execPath, main, ...SMALL], { stdio: ['ignore', 'pipe', 'pipe'] })
      const demo = watched(shell)
      await demo.until(/Files/)
      const traces = tracesOf(demo)
      shell.kill('SIGKILL')
      await expectNothingLeft(traces)
    },
    LONG,
  )
})

describe('bad input', () => {
  it('is told in one sentence, with exit code 2 and before anything is started', async () => {
    const demo = startDemo('--machines', '0+3')
    expect(await demo.exit).toBe(2)
    expect(demo.said()).toBe(
      'error: --machines 0+3: must be 1 to 7 control planes + 0 to 100 workers, for example 3+3\n  npm run demo -- --help shows the options.\n',
    )
  })

  it('is a version that cannot be upgraded to, too', async () => {
    const demo = startDemo('--once', '--from', 'v1.13.5', '--to', 'v1.13.4')
    expect(await demo.exit).toBe(2)
    expect(demo.said()).toMatch(
      /^error: --from v1\.13\.5 --to v1\.13\.4: v1\.13\.4 is not newer; [^\n]+\n {2}npm run demo -- --help[^\n]+\n$/,
    )
  })
})
