import { installCommand } from './install-command.ts'
import type { InstallationSight } from './installation-sight.ts'
import { fine, listed, type Look, seen, warning, wrong } from './look.ts'

/** Whether the API server itself enforces who may start what (spec 8). */
export const policies: Look<InstallationSight> = {
  name: 'policies',
  look: sight =>
    seen('The admission policies', sight.policies, ({ gaps, controller }) =>
      gaps.length > 0
        ? gaps.map((gap, index) => wrong(`${gap}.`, index === gaps.length - 1 ? whole(sight) : {}))
        : [fine(`They hold, for the controller ${controller}.`)],
    ),
}

/** The same for all of them. */
const whole = (sight: InstallationSight) => ({
  remedy: 'Until it is mended, Ichor refuses what can take a cluster down.',
  command: installCommand(sight),
})

/** What we ourselves may do. Nobody has to have any right but to see. */
export const ownRights: Look<InstallationSight> = {
  name: 'your rights',
  look: ({ own, namespace }) =>
    seen('Your own rights', own, abilities => {
      const [may, mayNot] = [true, false].map(is => abilities.filter(one => one.may === is).map(({ what }) => what))
      const text = `You may ${listed(may ?? [])}${mayNot && mayNot.length > 0 ? `; not ${listed(mayNot)}` : ''}.`
      return may && may.length > 0
        ? [fine(text)]
        : [
            warning(`You may do nothing with Ichor in namespace ${namespace}.`, {
              remedy: 'Ask an administrator for one of the ClusterRoles ichor-viewer, ichor-operator or ichor-admin.',
              command: `kubectl create rolebinding NAME --clusterrole=ichor-viewer --user=USER -n ${namespace}`,
            }),
          ]
    }),
}

/** Whether the controller may do all that it does. */
export const controllerRights: Look<InstallationSight> = {
  name: "controller's rights",
  look: sight =>
    seen("The controller's rights", sight.controllerLacks, lacks =>
      lacks.length === 0
        ? [fine('It may do all that it does.')]
        : [
            wrong(`It may not ${listed(lacks.slice(0, 5))}${lacks.length > 5 ? ` and ${lacks.length - 5} things more` : ''}.`, {
              remedy: 'Its roles were changed, or are of another version.',
              command: installCommand(sight),
            }),
          ],
    ),
}
