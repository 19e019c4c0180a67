/** Patches of the images by which a configuration names versions of Kubernetes' programs, past the kind that is for these: some go together with what runs, some do not. */

const PROGRAMS = [
  { block: 'machine', section: 'kubelet', image: 'ghcr.io/siderolabs/kubelet' },
  { block: 'cluster', section: 'apiServer', image: 'registry.k8s.io/kube-apiserver' },
  { block: 'cluster', section: 'controllerManager', image: 'registry.k8s.io/kube-controller-manager' },
  { block: 'cluster', section: 'scheduler', image: 'registry.k8s.io/kube-scheduler' },
  { block: 'cluster', section: 'proxy', image: 'registry.k8s.io/kube-proxy' },
] as const

/** Minors away from what runs. */
const STEPS = [-4, -2, -1, 0, 1, 2] as const

export const versionPatches = (kubernetes: string): readonly string[] => {
  const [, minor = '', patch = ''] = /^v1\.(\d+)\.(\d+)$/.exec(kubernetes) ?? []
  const versions = [...STEPS.map(step => `v1.${Number(minor) + step}.${patch}`), `v1.${minor}.${Number(patch) + 1}`, 'v2.0.0']
  return PROGRAMS.flatMap(({ block, section, image }) => {
    const named = (text: string): string => `${block}: {${section}: {image: ${text}}}\n`
    return [
      ...versions.map(version => named(`"${image}:${version}"`)),
      named(`"${image}:${kubernetes}@sha256:${'e'.repeat(64)}"`),
      // Talos' own, whichever that is.
      named('{$patch: delete}'),
      // Its version is told nowhere. What only the manifests of a cluster name need not start.
      ...(section === 'proxy' ? [named(`"${image}:latest"`), named(image)] : []),
    ]
  })
}

/** What each machine has to have for itself, given to all of them. */
export const SHARED_PATCHES: readonly string[] = [
  'machine: {network: {hostname: one}}\n',
  'machine: {network: {hostname: CP-1}}\n',
  'machine: {network: {hostname: wk-1}}\n',
  'apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: one\n',
  'apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n',
  'machine: {network: {interfaces: [{interface: eth1, cidr: 192.0.2.9/24}, {interface: dummy1, dummy: true, addresses: [192.0.2.9/32]}]}}\n',
]
