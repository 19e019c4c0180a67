import type { InstallationSight } from './installation-sight.ts'
import { fine, type Look, wrong } from './look.ts'

/** Whether Ichor is installed at all, and where. */
export const place: Look<InstallationSight> = {
  name: 'installation',
  look: sight => {
    const { namespace, asked, deployment } = sight
    if (isAbsent(sight))
      return [
        wrong('Ichor is not installed here.', {
          remedy: 'docs/install.md tells how it is installed; for a controller that you run yourself:',
          command: `ichor install --no-controller -n ${namespace}`,
        }),
      ]
    if (asked === namespace) return []
    if (deployment.ok && deployment.value?.isEverywhere) return [fine(`In namespace ${namespace}, for all namespaces.`)]
    return [
      wrong(`Ichor is installed in namespace ${namespace}, not in ${asked}.`, {
        remedy: 'It looks after its own namespace only, unless it was installed with --all-namespaces.',
        command: `ichor doctor -n ${namespace}`,
      }),
    ]
  },
}

/** Nothing of it is here: then one line says more than what each look would miss. */
export const isAbsent = ({ crds, deployment, lease }: InstallationSight): boolean =>
  Object.values(crds).every(found => found.ok && found.value === undefined) &&
  deployment.ok &&
  deployment.value === undefined &&
  lease.ok &&
  lease.value === undefined

/** A look at what is installed, made where something is. */
export const whereInstalled = ({ name, look }: Look<InstallationSight>): Look<InstallationSight> => ({
  name,
  look: sight => (isAbsent(sight) ? [] : look(sight)),
})
