/** The Talos minor from which on there is a kind of document. One that is older than all of these is not told from the first. */
const KINDS_SINCE: Readonly<Record<string, string>> = {
  '1.5': 'EventSinkConfig KmsgLogConfig SideroLinkConfig',
  '1.6': 'NetworkDefaultActionConfig NetworkRuleConfig',
  '1.7': 'ExtensionServiceConfig WatchdogTimerConfig',
  '1.8': 'KubeSpanEndpointsConfig TrustedRootsConfig VolumeConfig',
  '1.10': 'EthernetConfig PCIDriverRebindConfig UserVolumeConfig',
  '1.11': 'ExistingVolumeConfig RawVolumeConfig SwapVolumeConfig ZswapConfig',
  '1.12':
    'BondConfig BridgeConfig DHCPv4Config DHCPv6Config DummyLinkConfig HCloudVIPConfig HostnameConfig Layer2VIPConfig LinkAliasConfig LinkConfig OOMConfig ' +
    'RegistryAuthConfig RegistryMirrorConfig RegistryTLSConfig ResolverConfig StaticHostConfig TimeSyncConfig VLANConfig WireguardConfig',
  '1.13':
    'BlackholeRouteConfig EnvironmentConfig ExternalVolumeConfig ImageVerificationConfig KubeSpanConfig RoutingRuleConfig TCPProbeConfig VRFConfig',
  '1.14':
    'BGPInstanceConfig CRIBaseRuntimeSpecConfig CRICustomizationConfig ContainerConfig DiscoveryIdentityConfig DiscoveryServiceConfig EtcFileConfig ' +
    'FilesystemScrubConfig FilesystemTrimConfig HTTPProbeConfig ImageCacheConfig KernelModuleConfig KubeAPIServerCAConfig KubeAPIServerConfig ' +
    'KubeAdmissionControlConfig KubeAggregatorCAConfig KubeAuditPolicyConfig KubeAuthenticationConfig KubeAuthorizerConfig KubeClusterConfig ' +
    'KubeControllerManagerConfig KubeCoreDNSConfig KubeCredentialProviderConfig KubeEtcdEncryptionConfig KubeExternalManifestConfig ' +
    'KubeFlannelCNIConfig KubeInlineManifestConfig KubeNetworkConfig KubeNodeConfig KubePrismConfig KubeProxyConfig KubeSchedulerConfig ' +
    'KubeServiceAccountConfig KubeStaticPodConfig KubeTalosAPIAccessConfig KubeletConfig LVMLogicalVolumeConfig LVMVolumeGroupConfig ' +
    'RAIDArrayConfig SecurityProfileConfig SysctlConfig SysfsConfig UdevRulesConfig UnattendedInstallConfig VethConfig',
}

const since: ReadonlyMap<string, string> = new Map(
  Object.entries(KINDS_SINCE).flatMap(([minor, kinds]) => kinds.split(' ').map(kind => [kind, minor] as const)),
)

export const knownKinds: readonly string[] = [...since.keys()]

/** The Talos minor that brought a kind of document, such as `1.12`; undefined for a kind that none has. */
export const kindSince = (kind: string): string | undefined => since.get(kind)
