import { changesAny, isOfControlPlane, type Change } from './change.ts'
import type { ConfigSpec } from './spec.ts'

/** What a machine takes at once, and what has no effect by that alone (talos-api.md 4.2, procedures.md 6). */
type Row = {
  readonly places: readonly string[]
  /** Only these machines make something of it. */
  readonly of?: 'controlplane'
  /** It is read when the machine boots. */
  readonly atBoot?: true
  readonly note: string
}

const MANIFESTS =
  'changes only the manifests from which Talos brings objects into a cluster once. `ichor upgrade kubernetes` to the version that runs applies them'

const ROWS: readonly Row[] = [
  { places: ['cluster.proxy', 'KubeProxyConfig'], of: 'controlplane', note: MANIFESTS },
  { places: ['cluster.network.cni', 'KubeFlannelCNIConfig'], of: 'controlplane', note: MANIFESTS },
  { places: ['cluster.coreDNS', 'KubeCoreDNSConfig'], of: 'controlplane', note: MANIFESTS },
  { places: ['cluster.inlineManifests', 'KubeInlineManifestConfig'], of: 'controlplane', note: MANIFESTS },
  { places: ['cluster.extraManifests', 'KubeExternalManifestConfig'], of: 'controlplane', note: MANIFESTS },
  { places: ['machine.install', 'UnattendedInstallConfig'], note: 'has no effect before the next installation' },
  {
    ...{ places: ['cluster.etcd'], of: 'controlplane', atBoot: true },
    note: 'does not reach the etcd that runs, which nobody can restart by itself: it takes effect with the next boot. Use the mode reboot',
  },
  {
    ...{ places: ['machine.env', 'EnvironmentConfig'], atBoot: true },
    note: 'takes effect with the next boot. Use the mode reboot',
  },
  {
    ...{ places: ['machine.systemDiskEncryption', 'VolumeConfig.encryption'], atBoot: true },
    note: 'takes effect with the next boot. Use the mode reboot',
  },
  {
    ...{ places: ['machine.kernel', 'KernelModuleConfig'], atBoot: true },
    note: 'may take effect with the next boot only: a module that is loaded stays as it is. Use the mode reboot',
  },
]

/** What has to be done besides, so that a change has its effect; a sentence for each place. */
export const follows = (mode: ConfigSpec['mode'], changes: readonly Change[]): readonly string[] =>
  ROWS.filter(({ atBoot }) => !atBoot || mode === 'try' || mode === 'no-reboot').flatMap(({ places, of, note }) =>
    places
      .filter(place => changes.some(change => (of === undefined || isOfControlPlane(change)) && changesAny(change, [place])))
      .map(place => `${place} ${note}.`),
  )
