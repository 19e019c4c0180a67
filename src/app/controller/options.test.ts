import { describe, expect, it } from 'vitest'
import { readSettings } from './options.ts'

const settingsOf = (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const read = readSettings(argv, env)
  if (!read.ok || read.settings === 'help') throw new Error('no settings')
  return read.settings
}

describe('the identity of a controller', () => {
  it('is never that of another process, though its pod has the name of one that was there before', () => {
    const env = { POD_NAME: 'ichor-0' }
    const [one, other] = [settingsOf([], env).identity, settingsOf([], env).identity]
    expect(one).toMatch(/^ichor-0_[0-9a-f]{8}$/)
    expect(other).toMatch(/^ichor-0_[0-9a-f]{8}$/)
    expect(other).not.toBe(one)
  })

  it('is what is asked for', () => {
    expect(settingsOf(['--identity', 'demo'], { POD_NAME: 'ichor-0' }).identity).toBe('demo')
  })
})

describe('what cannot be meant', () => {
  it.each([
    [['--pace', '0'], '--pace 0 is not a number from 1 to 1000'],
    [['--log-level', 'loud'], '--log-level loud is none of debug, info, warn, error'],
    [['--listen', '8080'], '--listen 8080 is not HOST:PORT or :PORT, for example 127.0.0.1:8080'],
  ])('%j is told in one sentence', (argv, problem) => {
    expect(readSettings(argv, {})).toEqual({ ok: false, problem })
  })
})
