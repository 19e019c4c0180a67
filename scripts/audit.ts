// `npm run audit`: what the registry knows against the packages of our lockfiles. Each advisory is mended, or explained in scripts/audit-reviewed.json;
// what is explained there and found no longer has to go from there.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** An advisory that somebody has looked at, and why it does not matter here. */
export type Reviewed = { readonly advisory: string; readonly package: string; readonly why: string }

export type Audit =
  /** Not every registry answers: a mirror often has the packages and no advisories. */
  | { readonly is: 'unanswered'; readonly why: string }
  | { readonly is: 'answered'; readonly wrong: readonly string[]; readonly explained: readonly string[] }

type Advisory = { readonly name: string; readonly url: string; readonly title: string; readonly severity: string; readonly range: string }
type Report = {
  readonly auditReportVersion?: number
  readonly message?: string
  readonly vulnerabilities?: Readonly<Record<string, { readonly via: readonly (Advisory | string)[] }>>
}

/** Folders with a package-lock.json. */
export const LOCKED = ['.', 'test/real/kubectl']

/** What the registry says of the lockfile in each of the folders. `env` is npm's. */
export const audit = async (
  root: string,
  reviewed: readonly Reviewed[],
  { folders = LOCKED, env = process.env }: { readonly folders?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Audit> => {
  const reports = await Promise.all(folders.map(folder => report(join(root, folder), env)))
  const unanswered = reports.find(({ auditReportVersion }) => auditReportVersion === undefined)
  if (unanswered) return { is: 'unanswered', why: unanswered.message ?? 'no answer' }
  const found = new Map<string, Advisory>(
    reports
      .flatMap(({ vulnerabilities = {} }) => Object.values(vulnerabilities).flatMap(({ via }) => via))
      .flatMap(via => (typeof via === 'string' ? [] : [[`${idOf(via)} ${via.name}`, via] as const])),
  )
  const known = new Map<string, Reviewed>(reviewed.map(entry => [`${entry.advisory} ${entry.package}`, entry]))
  return {
    is: 'answered',
    wrong: [
      ...[...found]
        .filter(([key]) => !known.has(key))
        .map(([key, { severity, range, title, url }]) => `${key} ${range} (${severity}): ${title}, ${url}`),
      ...[...known.keys()].filter(key => !found.has(key)).map(key => `${key} is explained, and found no longer`),
    ],
    explained: [...known].filter(([key]) => found.has(key)).map(([key, { why }]) => `${key}: ${why}`),
  }
}

export const reviewedAdvisories = (): readonly Reviewed[] =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'audit-reviewed.json'), 'utf8')) as Reviewed[]

/** GHSA-…: the end of its address. */
const idOf = ({ url }: Advisory): string => url.slice(url.lastIndexOf('/') + 1)

// npm ends with 1 when it found something, and says it all the same.
const report = (folder: string, env: NodeJS.ProcessEnv): Promise<Report> =>
  new Promise(resolve => {
    const args = ['audit', '--json', '--package-lock-only', '--fetch-retries=0', '--fetch-timeout=30000']
    execFile('npm', args, { cwd: folder, env, maxBuffer: 2 ** 26 }, (error, stdout) => {
      try {
        resolve(JSON.parse(stdout) as Report)
      } catch {
        resolve({ message: error?.message ?? 'npm said nothing' })
      }
    })
  })

if (import.meta.main) {
  const outcome = await audit(join(import.meta.dirname, '..'), reviewedAdvisories())
  if (outcome.is === 'unanswered') console.error(`the registry does not answer: ${outcome.why}`)
  else for (const line of [...outcome.explained, ...outcome.wrong]) console.error(line)
  if (outcome.is === 'answered' && outcome.wrong.length === 0) console.log(`nothing is known against our packages that is not explained`)
  process.exitCode = outcome.is === 'answered' && outcome.wrong.length === 0 ? 0 : 1
}
