import { eastAsianWidth } from 'get-east-asian-width'

/**
 * How many columns of a terminal a text takes; escape sequences that colour it take none. Emoji joined from several count for each of them.
 *
 * Not the package string-width: what it prepares for every emoji there is costs 50 ms at each start, more than all the rest of a command.
 */
export const textWidth = (text: string): number => {
  const bare = text.includes('\x1b') ? text.replaceAll(/\x1b\[[0-9;]*m/g, '') : text
  if (isAscii(bare)) return bare.length
  let width = 0
  for (const character of bare) if (!/^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]$/u.test(character)) width += eastAsianWidth(character.codePointAt(0) ?? 0)
  return width
}

const isAscii = (text: string): boolean => {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 126) return false
  return true
}
