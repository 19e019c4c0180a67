import { Command } from 'commander'
import { CONTROLLER, GROUP, VERSION } from '../../../api/names.ts'
import type { Output } from '../output.ts'
import { outputOption, printValue } from '../output.ts'
import { CRD, DEPLOYMENT, OPERATION } from '../resource-types.ts'
import type { GlobalOptions, Outside } from '../session.ts'
import { nextCommand } from '../typed.ts'
import { openSession } from '../session.ts'
import { Stop } from '../stop.ts'
import type { Shell } from './command.ts'
import { withExamples } from './command.ts'

type Versions = { readonly client: string; readonly server?: string; readonly crds?: string; readonly controller?: string }

export const versionCommand = ({ outside, leave }: Shell): Command => {
  const command = new Command('version')
    .description(
      'Show the version of this program and, where they can be reached, of the API server, of the resource types and of the controller that runs in the namespace. ichor --version says only the first',
    )
    .option('--client', 'only of this program')
    .addOption(outputOption(['table', 'json', 'yaml']))
    .action(async () => {
      const options = command.optsWithGlobals<GlobalOptions & { client?: boolean; output: Output }>()
      await show(outside, options)
      leave('ok')
    })
  return withExamples(command, { outside, leave }, ['version', 'version --client -o json'])
}

const show = async (outside: Outside, options: GlobalOptions & { client?: boolean; output: Output }): Promise<void> => {
  const { terminal } = outside
  const { versions, trouble } = options.client ? { versions: { client: outside.version }, trouble: '' } : await found(outside, options)
  if (trouble) terminal.err(trouble)
  if (options.output === 'json' || options.output === 'yaml') return printValue(outside, options.output, versions)
  terminal.out(`Client      ${versions.client}`)
  if (versions.server) terminal.out(`Kubernetes  ${versions.server}`)
  if (versions.crds) terminal.out(`CRDs        ${versions.crds}`)
  if (versions.controller) terminal.out(`Controller  ${versions.controller}`)
}

// The client's own version is always an answer; what cannot be reached is said, and is no failure.
const found = async (outside: Outside, options: GlobalOptions): Promise<{ versions: Versions; trouble: string }> => {
  const client = outside.version
  try {
    const session = await openSession(outside, options)
    const { api, namespace } = session
    const server = await api.serverVersion()
    if (!server.ok) return { versions: { client }, trouble: `No server: ${server.fault.message}` }
    const [crd, deployment] = await Promise.all([
      api.get(CRD, undefined, `${OPERATION.plural}.${GROUP}`),
      api.get(DEPLOYMENT, namespace, CONTROLLER),
    ])
    const versionsServed = crd.ok
      ? ((crd.value.spec as { versions?: { name: string }[] } | undefined)?.versions ?? []).map(one => one.name)
      : []
    const image = deployment.ok
      ? (deployment.value.spec as { template?: { spec?: { containers?: { image?: string }[] } } } | undefined)?.template?.spec
          ?.containers?.[0]?.image
      : undefined
    return {
      versions: {
        client,
        server: server.value,
        crds: crd.ok
          ? `${GROUP}/${versionsServed.join(', ') || VERSION}`
          : crd.fault.kind === 'notFound'
            ? `not installed (${nextCommand(session, `install --no-controller -n ${namespace}`)})`
            : 'cannot be read',
        controller:
          image ??
          (deployment.ok || deployment.fault.kind === 'notFound'
            ? `not found (no Deployment ${CONTROLLER} in namespace ${namespace})`
            : 'cannot be read'),
      },
      trouble: '',
    }
  } catch (error) {
    if (error instanceof Stop) return { versions: { client }, trouble: `No server: ${error.message}` }
    throw error
  }
}
