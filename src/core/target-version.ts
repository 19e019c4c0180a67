import { finalOf, parseVersion } from './versions.ts'

export type TargetVersion = { readonly ok: true; readonly version: string } | { readonly ok: false; readonly problem: string }

const no = (problem: string): TargetVersion => ({ ok: false, problem })

/**
 * The version to upgrade to, as a person wrote it: exactly `vX.Y.Z`. Where the text is wrong `problem` is one sentence that says what would be
 * right; nothing is repaired silently, because the text ends up in image tags. `example`: a version that there is of what is upgraded.
 */
export const parseTarget = (text: string, example: string): TargetVersion => {
  const quoted = JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
  if (text.trim() === '') return no(`The target version is empty; write it like ${example}.`)
  const bare = text.trim().replace(/^[vV]+\.?/, '')
  const version = parseVersion(bare)
  if (version === undefined)
    return no(`${quoted} is not a version${guess(bare)}; write it with a leading v and three numbers, like ${example}.`)
  const final = `v${finalOf(version)}`
  if (version.development) return no(`${quoted} is a development build; only final releases can be a target, like ${final}.`)
  if (version.prerelease !== '') return no(`${quoted} is a pre-release; only final releases can be a target, like ${final}.`)
  if (bare !== finalOf(version)) return no(`${quoted} carries a suffix that no release has; did you mean ${final}?`)
  if (text !== final)
    return no(
      /^\d/.test(text)
        ? `${quoted} lacks the leading v; did you mean ${final}?`
        : `${quoted} is not written as a version; did you mean ${final}?`,
    )
  return { ok: true, version: final }
}

/** Completes what is obviously meant: a missing patch, a comma, a letter O. */
const guess = (bare: string): string => {
  if (/^\d+\.\d+$/.test(bare)) return ` (the patch number is missing: v${bare}.0?)`
  const mended = bare
    .replace(/[,;:_\s]+/g, '.')
    .replace(/[oO]/g, '0')
    .replace(/\.{2,}/g, '.')
    .replace(/^\.|\.$/g, '')
    .replace(/(^|\.)0+(?=\d)/g, '$1')
  const version = parseVersion(mended)
  return version === undefined || version.prerelease !== '' ? '' : ` (did you mean v${finalOf(version)}?)`
}
