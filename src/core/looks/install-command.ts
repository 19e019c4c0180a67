import type { InstallationSight } from './installation-sight.ts'

/**
 * The line that installs again what is here, with the flags of that installation as far as they can be seen: where it is left to be filled in, in capital
 * letters. `image`: another than the one that runs.
 */
export const installCommand = (sight: InstallationSight, image?: string): string => {
  const { namespace, deployment, policiesFor, self } = sight
  const there = deployment.ok ? deployment.value : undefined
  if (there?.release !== undefined) return `helm upgrade ${there.release} charts/ichor -n ${namespace} --reuse-values`
  const flags =
    deployment.ok && !there
      ? ['--no-controller', ...(policiesFor === undefined || policiesFor === self ? [] : [`--controller-user ${policiesFor}`])]
      : [
          `--image ${image ?? (there?.image || 'IMAGE')}`,
          ...(there === undefined || there.replicas === USUAL_REPLICAS ? [] : [`--replicas ${there.replicas}`]),
          ...(there?.isEverywhere ? ['--all-namespaces'] : []),
        ]
  return ['ichor install', ...flags, `-n ${namespace}`].join(' ')
}

/** Without a word of how many. */
const USUAL_REPLICAS = 2
