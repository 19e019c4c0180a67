/** From when until when something is valid, milliseconds since 1970. */
export type Validity = { readonly begins: number; readonly expires: number }

const MOST_MS = 30 * 24 * 3_600_000
/** Of its life. Talos renews the short-lived ones of its own ServiceAccounts when a sixth of it is left, so those are told of only where that was not done. */
const LAST_PART = 1 / 10

/** As long as there is time to do something about it: 30 days before the end, or in the last tenth of what does not live long. */
export const isExpiring = ({ begins, expires }: Validity, now: number): boolean =>
  expires - now <= Math.min(MOST_MS, LAST_PART * (expires - begins))
