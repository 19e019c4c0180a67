/** Whether a Talos version (`v1.13.0-rc.1` counts as 1.13) is of this minor or newer; false where it cannot be read. */
export function isAtLeast(version: string, major: number, minor: number): boolean {
  const [, ownMajor, ownMinor] = /^v?(\d+)\.(\d+)(?:[.\-+]|$)/.exec(version) ?? []
  if (ownMajor === undefined || ownMinor === undefined) return false
  return Number(ownMajor) > major || (Number(ownMajor) === major && Number(ownMinor) >= minor)
}
