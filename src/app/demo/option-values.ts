import { RELEASE_NAMES, parseVersion } from '../../world/releases.ts'

/** What is wrong with a command line, in one sentence. */
export class Problem extends Error {}

/** The answer of a reader of options, or what is wrong with them. */
export const orProblem = <T>(read: () => T): T | Problem => {
  try {
    return read()
  } catch (error) {
    if (error instanceof Problem) return error
    if ((error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS'))
      return new Problem((error as Error).message.split('. To specify')[0]!.replace(/\n.*/s, ''))
    throw error
  }
}

/** `3+3`: control planes and workers. Throws a Problem. */
export const machinesOf = (text: string): { readonly controlPlanes: number; readonly workers: number } => {
  const [, controlPlanes, workers] = /^(\d{1,3})\+(\d{1,3})$/.exec(text) ?? []
  if (controlPlanes === undefined || !within(Number(controlPlanes), 1, 7) || !within(Number(workers), 0, 100))
    throw new Problem(`--machines ${text}: must be 1 to 7 control planes + 0 to 100 workers, for example 3+3`)
  return { controlPlanes: Number(controlPlanes), workers: Number(workers) }
}

const within = (value: number, least: number, most: number): boolean => value >= least && value <= most

/** Throws a Problem. Without a `most` that matters, no upper bound is named. */
export const numberOf = (option: string, text: string, least: number, most: number): number => {
  const value = Number(text)
  if (text.trim() === '' || !within(value, least, most))
    throw new Problem(`${option} ${text}: must be a number from ${least}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`}`)
  return value
}

/** With or without `v`. Only one of `names`, which the simulated registries have, oldest first; throws a Problem. */
export const release = (option: string, text: string, names = RELEASE_NAMES): string => {
  const version = `v${text.replace(/^v/, '')}`
  if (names.includes(version)) return version
  const [major, minor] = parseVersion(version) ?? []
  const near = names.filter(name => name.startsWith(`v${major}.${minor}.`))
  const known = near.length > 0 ? near : names
  throw new Problem(`${option} ${text}: there is no such Talos release; the simulated registries have ${known[0]} to ${known.at(-1)}`)
}
