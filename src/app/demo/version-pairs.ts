import { compareVersions, minorSteps, parseVersion, type Version } from '../../core/versions.ts'
import { RELEASE_NAMES } from '../../world/releases.ts'
import { Problem, release } from './option-values.ts'

/** Final releases of the simulated registries, oldest first. A pre-release is nothing that Ichor upgrades to. */
const FINALS: readonly Version[] = RELEASE_NAMES.map(parseVersion)
  .filter(version => version !== undefined)
  .filter(version => version.prerelease === '')
  .toSorted(compareVersions)
const FINAL_NAMES = FINALS.map(({ text }) => text)

/** One release forward, at most into the next minor. */
const isStep = (from: Version, to: Version): boolean => compareVersions(from, to) < 0 && (minorSteps(from, to) ?? 2) <= 1

const named = (text: string): Version | undefined => FINALS.find(version => version.text === text)

/** What one can upgrade to from a release, oldest first, with `v`; empty for what is no release. */
export const targetsFrom = (from: string): readonly string[] => {
  const version = named(from)
  return version ? FINALS.filter(other => isStep(version, other)).map(({ text }) => text) : []
}

/** From what one can upgrade to a release, oldest first, with `v`; empty for what is no release. */
export const sourcesOf = (to: string): readonly string[] => {
  const version = named(to)
  return version ? FINALS.filter(other => isStep(other, version)).map(({ text }) => text) : []
}

/**
 * The versions of `--from` and `--to`, with or without `v`: final releases that the simulated registries have, and one step apart. What is not said is the
 * default where that fits, else the release before `--to`. Throws a Problem that names what is possible.
 */
export const versionPair = (
  said: { readonly from?: string | undefined; readonly to?: string | undefined },
  defaults: { readonly from: string; readonly to: string },
): { readonly from: string; readonly to: string } => {
  const to = said.to === undefined ? defaults.to : finalRelease('--to', said.to)
  const sources = sourcesOf(to)
  if (sources.length === 0) throw new Problem(`--to ${to}: there is nothing older to begin with; ${known}`)
  const before = to === defaults.to ? defaults.from : (sources.at(-1) ?? '')
  const from = said.from === undefined ? before : finalRelease('--from', said.from)
  if (sources.includes(from)) return { from, to }

  const targets = targetsFrom(from)
  const wrong = isAhead(from, to) ? 'skips a minor' : `${to} is not newer`
  const possible = [
    ...(targets.length > 0 ? [`from ${from} --to can be ${range(targets)}`] : []),
    `for --to ${to} --from can be ${range(sources)}`,
  ]
  throw new Problem(`--from ${from} --to ${to}: ${wrong}; ${possible.join(', and ')}`)
}

/** Where a pair is no step, either its order is wrong or its width. */
const isAhead = (from: string, to: string): boolean => FINAL_NAMES.indexOf(from) < FINAL_NAMES.indexOf(to)

const finalRelease = (option: string, text: string): string => {
  if (RELEASE_NAMES.includes(`v${text.replace(/^v/, '')}`) && parseVersion(text)?.prerelease !== '')
    throw new Problem(`${option} ${text}: is a pre-release, and only final ones will do; ${known}`)
  return release(option, text, FINAL_NAMES)
}

const range = (names: readonly string[]): string => (names.length > 1 ? `${names[0]} to ${names.at(-1)}` : `${names[0]}`)

const known = `the simulated registries have ${range(FINAL_NAMES)}`
