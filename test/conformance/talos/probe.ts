// Runs the official Go client of Talos 1.13.9 (test/probe), whose answers are lines of JSON.
import { execFile, spawn } from 'node:child_process'
import { realPart } from '../../real/parts.ts'

export type Probed = {
  readonly lines: readonly unknown[]
  /** The gRPC status, where a call failed. */
  readonly error?: { readonly code: string; readonly message: string }
}

async function program(): Promise<string> {
  const part = await realPart('talos-probe')
  if ('missing' in part) throw new Error(part.missing)
  return part.path
}

const parsed = (out: string): Probed => {
  const lines = out
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as { error?: Probed['error'] })
  const error = lines.at(-1)?.error
  return error ? { lines: lines.slice(0, -1), error } : { lines }
}

/** Throws when the probe itself was used wrongly or did not come to an end. */
export function probe(...args: string[]): Promise<Probed> {
  return probeWith('', ...args)
}

/** The same, with something to read. */
export async function probeWith(input: string, ...args: string[]): Promise<Probed> {
  const path = await program()
  return new Promise((resolve, reject) => {
    const child = execFile(path, args, { timeout: 60_000, maxBuffer: 64 * 1024 * 1024 }, (error, out, err) => {
      const answer = parsed(out)
      if (error && !answer.error) reject(new Error(`talos-probe ${args.join(' ')}: ${error.message} ${err}`))
      else resolve(answer)
    })
    child.stdin?.end(input)
  })
}

export type Watching = {
  /** What came so far. */
  readonly lines: () => readonly unknown[]
  readonly stop: () => Promise<void>
}

/** A command that goes on until it is stopped. */
export async function probeOn(...args: string[]): Promise<Watching> {
  const child = spawn(await program(), args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const gone = new Promise<void>(resolve => child.once('close', () => resolve()))
  return {
    lines: () => parsed(out.slice(0, out.lastIndexOf('\n') + 1)).lines,
    stop: async () => {
      child.kill('SIGTERM')
      await gone
    },
  }
}
