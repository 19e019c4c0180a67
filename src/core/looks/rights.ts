import { installCommand } from './install-command.ts'
import type { InstallationSight } from './installation-sight.ts'
import { fine, type Finding, listed, type Look, seen, warning, wrong } from './look.ts'

/** Whether the API server itself enforces who may start what (spec 8). */
export const policies: Look<InstallationSight> = {
  name: 'policies',
  look: sight =>
    seen('The admission policies', sight.policies, ({ gaps, controller }) =>
      gaps.length > 0
        ? toldTogether(gaps).map((gap, index, all) => wrong(`${gap}.`, index === all.length - 1 ? whole(sight) : {}))
        : [held(sight, controller)],
    ),
}

/** Where all are missing, nobody wants to read it of each. */
const toldTogether = (gaps: readonly string[]): readonly string[] =>
  gaps.length > 1 && gaps.every(gap => gap.endsWith(MISSING))
    ? [
        `${listed(gaps.map(gap => gap.slice(0, -MISSING.length).replace(/^\w+ /, '')).filter((name, index, all) => all.indexOf(name) === index))} are not there`,
      ]
    : gaps
const MISSING = ' is not there'

/** They let everything pass that the controller's user writes, whoever sits behind it. */
const held = ({ self, namespace }: InstallationSight, controller: string): Finding =>
  controller === self
    ? {
        ...fine(`They hold, for the controller ${controller}: that is you, so they do not hold for you.`),
        remedy: 'Where others share this cluster, let the controller be a user of its own.',
        command: `ichor install --no-controller --controller-user USER -n ${namespace}`,
      }
    : fine(`They hold, for the controller ${controller}.`)

/** The same for all of them. */
const whole = (sight: InstallationSight) => ({
  remedy: 'Until it is mended, Ichor refuses what can take a cluster down.',
  command: installCommand(sight),
})

/** What we ourselves may do. Nobody has to have any right but to see. */
export const ownRights: Look<InstallationSight> = {
  name: 'your rights',
  look: ({ own, asked: namespace }) =>
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
    // Of nobody there is nothing to tell.
    sight.deployment.ok && !sight.deployment.value && sight.policiesFor === undefined
      ? []
      : seen("The controller's rights", sight.controllerLacks, lacks =>
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
