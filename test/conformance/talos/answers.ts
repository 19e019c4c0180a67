// Asks machines through talosctl, and makes what it prints comparable: between runs, and between real machines and simulated ones.
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { people, type Command, type Person } from './commands.ts'

/** A cluster of the machines cp-1, cp-2, cp-3 and wk-1. */
export type Place = {
  readonly talosctl: string
  /** A folder to run in; files that talosctl writes land there. */
  readonly home: string
  readonly configs: Readonly<Record<Person, string>>
  /** By name of the machine, and one of `nobody`. */
  readonly addresses: Readonly<Record<string, string>>
}

/** What the two kinds of machines have in common. */
export const talosVersion = 'v1.12.1'
export const kubernetesVersion = 'v1.35.4'

declare module 'vitest' {
  interface TaskMeta {
    /** For the last lines of a run: whose answers a test has looked at, how many (default 1), and whether they are as they should be. */
    answer?: { readonly of: string; readonly agrees: boolean; readonly count?: number }
  }
}

/** What the line about simulated machines begins with. */
export const SIMULATED = 'talosctl and simulated machines, as documented'

export type Answer = { readonly code: number; readonly out: string; readonly err: string }

/** Runs a command to its end, or until it has said what was wanted of it. */
export async function ask(place: Place, command: Command): Promise<Answer> {
  const args = command.run.split(' ').map(argument => argument.replaceAll(/@(\w+(-\d)?)/g, (_, name: string) => place.addresses[name]!))
  const env = { ...process.env, HOME: place.home, TALOSCONFIG: place.configs[command.as ?? 'admin'], EDITOR: command.editor }
  const options = { cwd: place.home, env }
  const { code, out, err } = await (command.lines === undefined
    ? runToEnd(place.talosctl, args, options)
    : runForLines(place.talosctl, args, options, command.lines))
  const see = (text: string): string => {
    const seen = normal(text, place)
    const lines = (command.see ? command.see(seen) : seen).trimEnd().split('\n')
    return (command.sorted ? sortedLines(lines) : lines).join('\n')
  }
  return { code, out: see(out), err: see(err) }
}

type Options = { readonly cwd: string; readonly env: NodeJS.ProcessEnv }

function runToEnd(program: string, args: readonly string[], options: Options): Promise<Answer> {
  return new Promise(resolve => {
    execFile(program, args, { ...options, timeout: 50_000, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 }, (error, out, err) => {
      resolve({ code: error ? Number(error.code ?? -1) : 0, out, err })
    })
  })
}

function runForLines(program: string, args: readonly string[], options: Options, lines: number): Promise<Answer> {
  return new Promise(resolve => {
    const child = spawn(program, args, { ...options, timeout: 20_000, killSignal: 'SIGKILL', stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, err] = ['', '']
    const enough = () => out.split('\n').length > lines
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      if (enough()) child.kill('SIGKILL')
    })
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
    // We ended it: its exit code says nothing.
    child.on('close', code =>
      resolve(enough() ? { code: 0, out: out.split('\n').slice(0, lines).join('\n'), err } : { code: code ?? -1, out, err }),
    )
  })
}

/** The head of a table stays where it is. */
const sortedLines = (lines: readonly string[]): string[] => {
  const heads = lines[0]?.startsWith('NODE ') ? 1 : 0
  return [...lines.slice(0, heads), ...lines.slice(heads).toSorted()]
}

/** Without what is new in each run: addresses, ids, times, versions of resources, and the widths of tables, which follow from them. */
export function normal(text: string, { addresses }: Place): string {
  let shown = text
  for (const [name, address] of Object.entries(addresses))
    shown = shown.replaceAll(new RegExp(`(?<![\\d.])${address.replaceAll('.', '\\.')}(?!\\d)`, 'g'), name)
  shown = shown
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/\b([\d.]+(h|m|s|ms))+ ago\b/g, 'AGO')
    .replaceAll(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\b/g, 'UUID')
    .replaceAll(/\b[\da-f]{64}\b/g, 'DIGEST')
    .replaceAll(/\b[\da-f]{16}\b/g, 'MEMBER')
    .replaceAll(/[\w+/-]{43}=/g, 'CLUSTER')
    .replaceAll(/\b[\dA-Za-z]{42,44}\b/g, 'NODE')
    .replaceAll(/^( {4}version: )\d+$/gm, '$1N')
    .replaceAll(/("version": )\d+/g, '$1N')
  let version = -1
  return shown
    .split('\n')
    .map(line => {
      const cells = line.trimEnd().split(/(?<=\S)(?:\s{2,}|\t)/)
      if (cells[0] === 'NODE') version = cells.indexOf('VERSION')
      else if (version > 0 && /^\d+$/.test(cells[version] ?? '')) cells[version] = 'N'
      return cells.join('  ')
    })
    .join('\n')
}

const folder = join(import.meta.dirname, '..', '..', 'realtalos', 'recorded')
const fileOf = (topic: string): string => join(folder, `${topic.replaceAll(' ', '-')}.txt`)

const headOf = ({ run, as, editor }: Command): string =>
  `${as ? `(${as}) ` : ''}$ ${editor === undefined ? '' : `EDITOR='${editor}' `}talosctl ${run}`

/** An answer as it is recorded. A later command may be the same again: then it counts by its place. */
export function written(command: Command, { code, out, err }: Answer): string {
  const parts = [headOf(command), `exit ${code}`, ...(out ? [out] : []), ...(err ? ['stderr:', err] : [])]
  return parts.join('\n')
}

const divider = '\n\n=====\n'

/** What real machines answered, in the order of the topic's commands. */
export function recordedAnswers(topic: string): readonly string[] {
  return readFileSync(fileOf(topic), 'utf8').trimEnd().split(divider)
}

export function recordAnswers(topic: string, answers: readonly string[]): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(fileOf(topic), `${answers.join(divider)}\n`)
}

/** Makes a path for each person. */
export async function configsOf(make: (person: Person) => Promise<string>, home: string): Promise<Record<Person, string>> {
  const paths = people.map(async person => {
    const path = join(home, person)
    writeFileSync(path, await make(person))
    return [person, path] as const
  })
  return Object.fromEntries(await Promise.all(paths)) as Record<Person, string>
}
