/** By these Talos tells one rendering of a static pod from another: the versions of its configuration, of its secrets and of the files beside it. */
const VERSIONS = ['talos.dev/config-version', 'talos.dev/secrets-version', 'talos.dev/config-file-version'] as const

/** Which rendering a pod is, by its annotations; empty where it has none of Talos'. */
export const renderingOf = (annotations: Readonly<Record<string, unknown>>): string =>
  VERSIONS.flatMap(name => (typeof annotations[name] === 'string' ? [annotations[name]] : [])).join('/')
