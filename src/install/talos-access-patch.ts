/**
 * What control planes have to be told before Talos hands out a talosconfig for a namespace (talos-api 1.8): a patch of the machine configuration, as text.
 * It takes no reboot, but for one that has no machine.features at all (Talos before 1.14). A list of a patch is added to the list that is there, so what
 * others were allowed stays allowed.
 */
export const talosAccessPatch = (namespace: string): string =>
  `machine:
  features:
    kubernetesTalosAPIAccess:
      enabled: true
      allowedRoles: [os:admin]
      allowedKubernetesNamespaces: [${namespace}]
`
