import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { startChild } from './child.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-child-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const isAlive = (pid: number) => existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

it('dies with the process that started it, even when that one is killed', async () => {
  const owned = join(folder, 'owned')
  mkdirSync(owned)
  const script = `
    const { startChild } = await import(${JSON.stringify(join(import.meta.dirname, 'child.ts'))})
    const child = await startChild({ command: 'sleep', args: ['600'], logPath: '/dev/null', removeOnCrash: ${JSON.stringify(owned)} })
    console.log(child.pid)
    setInterval(() => {}, 1_000)`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const pid = await new Promise<number>(resolve => parent.stdout.once('data', (line: Buffer) => resolve(Number(line.toString()))))
  expect(isAlive(pid)).toBe(true)

  parent.kill('SIGKILL')
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 10_000)
  await vi.waitFor(() => expect(existsSync(owned)).toBe(false), 10_000)
}, 30_000)

it('tells its end, and what it said', async () => {
  const child = await startChild({ command: 'sh', args: ['-c', 'echo no such thing >&2; exit 3'], logPath: join(folder, 'log') })
  expect(await child.exited).toBe(3)
  expect(child.hasExited()).toBe(true)
  expect(child.lastWords()).toBe('no such thing')
})

it('tells an end by a signal from one with an error', async () => {
  const child = await startChild({ command: 'sleep', args: ['600'], logPath: '/dev/null' })
  process.kill(child.pid, 'SIGKILL')
  expect(await child.exited).toBe(128 + 9)
})

it('leaves no watcher behind', async () => {
  const mark = join(folder, 'mark')
  const child = await startChild({ command: 'sleep', args: ['600'], logPath: '/dev/null', removeOnCrash: mark })
  expect(processesNaming(mark)).not.toEqual([])
  await child.kill()
  await vi.waitFor(() => expect(processesNaming(mark)).toEqual([]), 5_000)
})

function processesNaming(mark: string): string[] {
  return readdirSync('/proc').filter(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(mark)
    } catch {
      return false
    }
  })
}
