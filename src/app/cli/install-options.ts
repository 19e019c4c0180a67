import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Wanted } from './install-objects.ts'
import { Stop } from './stop.ts'

export type InstallOptions = {
  readonly crdsOnly?: boolean
  readonly controller: boolean
  readonly controllerUser?: string
  readonly image?: string
  readonly replicas?: number
  readonly allNamespaces?: boolean
  readonly talosCluster?: string
  readonly talosPatch?: boolean
  readonly output?: 'yaml'
  readonly withoutPolicies?: boolean
  readonly dryRun?: boolean
  readonly wait: boolean
  readonly timeout: string
}

/** What an installation is; of no meaning where none is asked for. */
const CHOICES = ['image', 'replicas', 'controller', 'controllerUser', 'allNamespaces', 'talosCluster', 'withoutPolicies']

/** As registries and container runtimes read it: a host with its port, a path, a tag, a digest. */
const IMAGE =
  /^([a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?\/|\[[0-9a-f:]+\](:\d{1,5})?\/)?[a-z0-9]+([._-]+[a-z0-9]+)*(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/

export const withInstallOptions = (install: Command): Command =>
  install
    .addOption(
      new Option('--image <image>', 'the container image of the controller, with its tag or digest').argParser(text => {
        if (!IMAGE.test(text)) throw new InvalidArgumentError('It must be an image such as registry.example.org/ichor:0.1.0.')
        return text
      }),
    )
    .addOption(
      new Option('--replicas <n>', 'how many controllers run; one leads (default: 2)').argParser(text => {
        const n = Number(text)
        if (!/^\d$/.test(text)) throw new InvalidArgumentError('It must be a number from 0 to 9.')
        return n
      }),
    )
    .option(
      '--all-namespaces',
      "look after TalosClusters in all namespaces, not only in the controller's own; it may then read all Secrets",
    )
    .option('--talos-cluster <name>', 'in a Talos cluster: a TalosCluster for it, with a talosconfig that Talos writes and renews')
    .addOption(
      new Option('--talos-patch', 'only print what Talos has to be told before --talos-cluster: a patch for its control planes').conflicts([
        ...CHOICES,
        'crdsOnly',
        'output',
        'dryRun',
      ]),
    )
    .option('--without-policies', 'leave out the admission policies; the controller then refuses what can take a cluster down')
    .addOption(
      new Option('--no-controller', 'all but the controller, for one that you run yourself (ichor controller)').conflicts([
        'image',
        'replicas',
      ]),
    )
    .addOption(
      new Option(
        '--controller-user <name>',
        'with --no-controller: the user of the API server that it runs as (default: the one who installs)',
      ).conflicts(['image', 'replicas']),
    )
    .addOption(new Option('--crds-only', 'only the resource types').conflicts(CHOICES))
    .addOption(
      new Option('-o, --output <format>', 'print the objects, for Git, ask no API server and write nothing')
        .choices(['yaml'])
        .conflicts('dryRun'),
    )
    .option('--dry-run', 'let the API server judge everything and write nothing')
    .option('--no-wait', 'do not wait until a controller is available')
    .option('--timeout <duration>', 'how long to wait for it', '5m')

/** What the options ask for. `whoAmI` tells whom the controller runs as, where that is not said. */
export const wantedOf = (options: InstallOptions, namespace: string, whoAmI: () => string): Wanted => {
  if (options.controller && options.controllerUser !== undefined)
    throw new Stop('usage', '--controller-user is for a controller that you run yourself: add --no-controller')
  if (options.controller && !options.image)
    throw new Stop('usage', '--image is missing: there is no public image of Ichor yet', [
      'Build it from the Dockerfile of the project, push it, and name it here; or run the controller yourself, with --no-controller.',
    ])
  return {
    namespace,
    controller: options.controller
      ? { image: options.image ?? '', ...(options.replicas === undefined ? {} : { replicas: options.replicas }) }
      : { user: options.controllerUser ?? whoAmI() },
    policies: !options.withoutPolicies,
    allNamespaces: options.allNamespaces === true,
    ...(options.talosCluster === undefined ? {} : { talosCluster: options.talosCluster }),
  }
}
