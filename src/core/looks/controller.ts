import { formatDuration } from '../../api/duration.ts'
import { CONTROLLER } from '../../api/names.ts'
import { iso } from '../ledger.ts'
import { installCommand } from './install-command.ts'
import type { DeploymentSight, InstallationSight } from './installation-sight.ts'
import { fine, type Finding, listed, type Look, seen, unseenFor, warning, wrong } from './look.ts'

/** What a clock may be wrong, and a renewal late, before a leader is taken for dead. */
const GRACE_MS = 15_000

/** Whether the controller runs, where it is run by a Deployment. */
export const deployment: Look<InstallationSight> = {
  name: 'controller',
  look: sight =>
    seen('The Deployment of the controller', sight.deployment, found => {
      if (found) return running(sight, found)
      if (isLed(sight)) return [fine('It runs without a Deployment.')]
      // Somebody has run it: the leader's Lease says more.
      if (sight.lease.ok && sight.lease.value) return []
      return [
        wrong(`There is no Deployment ${CONTROLLER} in namespace ${sight.namespace}.`, {
          remedy: 'Install it, or run one yourself (ichor controller); -n chooses another namespace.',
          command: installCommand(sight),
        }),
      ]
    }),
}

const running = (sight: InstallationSight, { replicas, available, image, pods }: DeploymentSight): readonly Finding[] => {
  const { namespace, program } = sight
  const see = { command: `kubectl -n ${namespace} describe pods -l app.kubernetes.io/name=ichor` }
  const scale = { command: `kubectl -n ${namespace} scale deployment ${CONTROLLER} --replicas 2` }
  if (replicas === 0) return [wrong('Its Deployment is scaled to nothing: no operation goes on.', scale)]
  const found: Finding[] = []
  const why = pods.ok ? [...new Set(pods.value.filter(({ ready }) => !ready).map(pod => pod.why || `${pod.name} is not ready`))] : []
  if (available === 0)
    found.push(wrong(`None of its ${replicas} replicas is available${why.length > 0 ? `: ${why.join('; ')}` : ''}.`, see))
  else if (available < replicas)
    found.push(warning(`${available} of its ${replicas} replicas are available${why.length > 0 ? `: ${why.join('; ')}` : ''}.`, see))
  if (replicas === 1)
    found.push(warning('It has one replica: while its machine is drained or away, nothing goes on.', { remedy: 'Let two run.', ...scale }))
  const nodes = pods.ok ? [...new Set(pods.value.filter(({ ready }) => ready).map(({ node }) => node))] : []
  if (available > 1 && nodes.length === 1)
    found.push(
      warning(`All of its replicas run on ${nodes[0]}: they go away together.`, {
        remedy: 'Let the scheduler place them anew, once there is room on another machine.',
        command: `kubectl -n ${namespace} rollout restart deployment ${CONTROLLER}`,
      }),
    )
  if (!pods.ok) found.push(unseenFor('Where its replicas run', pods.fault))
  const version = /:v?(\d+\.\d+\.\d+[^@]*)/.exec(image)?.[1]
  if (version !== undefined && version !== program)
    found.push(
      warning(`It is Ichor ${version}, this program is ${program}.`, {
        remedy: 'Bring the older of the two up to date.',
        command: installCommand(sight, 'IMAGE'),
      }),
    )
  return found.length > 0 ? found : [fine(`${available} of ${replicas} replicas, on ${listed(nodes)}; ${image}.`)]
}

/** Whether somebody leads: without a leader no operation advances. */
export const leader: Look<InstallationSight> = {
  name: 'leader',
  look: sight =>
    seen('The Lease of the leader', sight.lease, lease => {
      const none =
        sight.deployment.ok && !sight.deployment.value
          ? {
              remedy: 'See whether its process still runs and reaches the API server: its log. One that is started anew takes the lead.',
              command: `ichor controller --namespace ${sight.namespace} --lease-namespace ${sight.namespace}`,
            }
          : {
              remedy: 'See why no controller takes the lead: its log, and whether it reaches the API server.',
              command: `kubectl -n ${sight.namespace} logs deployment/${CONTROLLER}`,
            }
      if (!lease) return [wrong(`Nobody has ever led in namespace ${sight.namespace}.`, none)]
      const idle = serverNow(sight) - lease.renewed
      if (lease.holder === '') return [wrong(`Nobody leads since ${formatDuration(idle)}: no operation goes on.`, none)]
      if (!isLed(sight))
        return [
          wrong(
            `The controller ${lease.holder} has not renewed its Lease since ${iso(lease.renewed).replace(/\.\d+Z$/, 'Z')} (${formatDuration(idle)} ago), and nobody took over.`,
            none,
          ),
        ]
      return [fine(`${lease.holder} leads.`)]
    }),
}

/** How long no controller has been at work that once was; undefined where one is, or nobody knows. */
export const controllerSilence = (sight: InstallationSight): number | undefined =>
  sight.lease.ok && sight.lease.value && !isLed(sight) ? serverNow(sight) - sight.lease.value.renewed : undefined

const isLed = (sight: InstallationSight): boolean => {
  const lease = sight.lease.ok ? sight.lease.value : undefined
  return lease !== undefined && lease.holder !== '' && serverNow(sight) - lease.renewed <= lease.lastsMs + GRACE_MS
}

/** By the API server's clock, which more agree with than with ours. */
const serverNow = ({ now, serverClock }: InstallationSight): number => now + (serverClock.ok ? serverClock.value : 0)
