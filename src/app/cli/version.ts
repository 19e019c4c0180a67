import manifest from '../../../package.json' with { type: 'json' }

/** Ichor's own version, without v. */
export const { version } = manifest
