/**
 * The fields of machine configurations as 1.13 knows them; a plus marks what came with it. One type a line, and more where a line begins with blanks:
 * `field=type` is a mapping of that type, `field[]=type` a list and `field{}=type` a mapping of such, and below a field without a type anything may
 * stand. Types of documents have the name of their kind.
 */
const SHAPES = `
v1alpha1: version debug persist machine=machineConfig cluster=clusterConfig
machineConfig: type token ca=certificateAndKey acceptedCAs[]=certificate certSANs controlPlane=machineControlPlaneConfig
  kubelet=kubeletConfig pods network=networkConfig disks[]=machineDisk install=installConfig files[]=machineFile env time=timeConfig
  sysctls sysfs registries=registriesConfig systemDiskEncryption=systemDiskEncryptionConfig features=featuresConfig udev=udevConfig
  logging=loggingConfig kernel=kernelConfig seccompProfiles[]=machineSeccompProfile baseRuntimeSpecOverrides nodeLabels nodeAnnotations
  nodeTaints
certificateAndKey: crt key
certificate: crt
machineControlPlaneConfig: controllerManager=machineControllerManagerConfig scheduler=machineSchedulerConfig
machineControllerManagerConfig: disabled
machineSchedulerConfig: disabled
kubeletConfig: image clusterDNS extraArgs extraMounts[]=extraMount extraConfig credentialProviderConfig
  defaultRuntimeSeccompProfileEnabled registerWithFQDN nodeIP=kubeletNodeIPConfig skipNodeRegistration disableManifestsDirectory
extraMount: destination type source options uidMappings[]=linuxIDMapping gidMappings[]=linuxIDMapping
linuxIDMapping: containerID hostID size
kubeletNodeIPConfig: validSubnets
networkConfig: hostname interfaces[]=device nameservers searchDomains extraHostEntries[]=extraHost kubespan=networkKubeSpan
  disableSearchDomain
device: interface deviceSelector=networkDeviceSelector addresses cidr routes[]=route bond=bond bridge=bridge bridgePort=bridgePort
  vlans[]=vlan mtu dhcp ignore dummy dhcpOptions=dHCPOptions wireguard=deviceWireguardConfig vip=deviceVIPConfig
networkDeviceSelector: busPath hardwareAddr permanentAddr pciID driver physical
route: network gateway source metric mtu
bond: interfaces deviceSelectors[]=networkDeviceSelector arpIPTarget mode xmitHashPolicy lacpRate adActorSystem arpValidate
  arpAllTargets primary primaryReselect failOverMac adSelect miimon updelay downdelay arpInterval resendIgmp minLinks lpInterval
  packetsPerSlave numPeerNotif tlbDynamicLb allSlavesActive useCarrier adActorSysPrio adUserPortKey peerNotifyDelay
bridge: interfaces stp=sTP vlan=bridgeVLAN
sTP: enabled
bridgeVLAN: vlanFiltering
bridgePort: master
vlan: addresses cidr routes[]=route dhcp vlanId mtu vip=deviceVIPConfig dhcpOptions=dHCPOptions
deviceVIPConfig: ip equinixMetal=vIPEquinixMetalConfig hcloud=vIPHCloudConfig
vIPEquinixMetalConfig: apiToken
vIPHCloudConfig: apiToken
dHCPOptions: routeMetric ipv4 ipv6 duidv6
deviceWireguardConfig: privateKey listenPort firewallMark peers[]=deviceWireguardPeer
deviceWireguardPeer: publicKey endpoint persistentKeepaliveInterval allowedIPs
extraHost: ip aliases
networkKubeSpan: enabled advertiseKubernetesNetworks allowDownPeerBypass harvestExtraEndpoints mtu filters=kubeSpanFilters
kubeSpanFilters: endpoints +excludeAdvertisedNetworks
machineDisk: device partitions[]=diskPartition
diskPartition: size mountpoint
installConfig: disk diskSelector=installDiskSelector extraKernelArgs image extensions[]=installExtensionConfig bootloader wipe
  legacyBIOSSupport grubUseUKICmdline
installDiskSelector: size name model serial modalias uuid wwid type busPath
installExtensionConfig: image
machineFile: content permissions path op
timeConfig: disabled servers bootTimeout
registriesConfig: mirrors{}=registryMirrorConfig config{}=registryConfig
registryMirrorConfig: endpoints overridePath skipFallback
registryConfig: tls=registryTLSConfig auth=registryAuthConfig
registryTLSConfig: clientIdentity=certificateAndKey ca insecureSkipVerify
registryAuthConfig: username password auth identityToken
systemDiskEncryptionConfig: state=encryptionConfig ephemeral=encryptionConfig
encryptionConfig: provider keys[]=encryptionKey cipher keySize blockSize options
encryptionKey: static=encryptionKeyStatic nodeID kms=encryptionKeyKMS slot tpm=encryptionKeyTPM
encryptionKeyStatic: passphrase
encryptionKeyKMS: endpoint
encryptionKeyTPM: checkSecurebootStatusOnEnroll
featuresConfig: rbac stableHostname kubernetesTalosAPIAccess=kubernetesTalosAPIAccessConfig apidCheckExtKeyUsage diskQuotaSupport
  kubePrism=kubePrism hostDNS=hostDNSConfig imageCache=imageCacheConfig nodeAddressSortAlgorithm
kubernetesTalosAPIAccessConfig: enabled allowedRoles allowedKubernetesNamespaces
kubePrism: enabled port
hostDNSConfig: enabled forwardKubeDNSToHost resolveMemberNames
imageCacheConfig: localEnabled
udevConfig: rules
loggingConfig: destinations[]=loggingDestination
loggingDestination: endpoint format extraTags
kernelConfig: modules[]=kernelModuleConfig
kernelModuleConfig: name parameters
machineSeccompProfile: name value
clusterConfig: id secret controlPlane=controlPlaneConfig clusterName network=clusterNetworkConfig token aescbcEncryptionSecret
  secretboxEncryptionSecret ca=certificateAndKey acceptedCAs[]=certificate aggregatorCA=certificateAndKey serviceAccount=key
  apiServer=aPIServerConfig controllerManager=controllerManagerConfig proxy=proxyConfig scheduler=schedulerConfig
  discovery=clusterDiscoveryConfig etcd=etcdConfig coreDNS=coreDNS externalCloudProvider=externalCloudProviderConfig extraManifests
  extraManifestHeaders inlineManifests[]=clusterInlineManifest adminKubeconfig=adminKubeconfigConfig allowSchedulingOnMasters
  allowSchedulingOnControlPlanes
controlPlaneConfig: endpoint localAPIServerPort
clusterNetworkConfig: cni=cNIConfig dnsDomain podSubnets serviceSubnets
cNIConfig: name urls flannel=flannelCNIConfig
flannelCNIConfig: extraArgs +kubeNetworkPoliciesEnabled
key: key
aPIServerConfig: image extraArgs extraVolumes[]=volumeMountConfig env certSANs disablePodSecurityPolicy
  admissionControl[]=admissionPluginConfig auditPolicy resources=resourcesConfig
  authorizationConfig[]=authorizationConfigAuthorizerConfig
volumeMountConfig: hostPath mountPath readonly
admissionPluginConfig: name configuration
resourcesConfig: requests limits
authorizationConfigAuthorizerConfig: type name webhook
controllerManagerConfig: image extraArgs extraVolumes[]=volumeMountConfig env resources=resourcesConfig
proxyConfig: disabled image mode extraArgs
schedulerConfig: image extraArgs extraVolumes[]=volumeMountConfig env resources=resourcesConfig config
clusterDiscoveryConfig: enabled registries=discoveryRegistriesConfig
discoveryRegistriesConfig: kubernetes=registryKubernetesConfig service=registryServiceConfig
registryKubernetesConfig: disabled
registryServiceConfig: disabled endpoint
etcdConfig: image ca=certificateAndKey extraArgs subnet advertisedSubnets listenSubnets
coreDNS: disabled image
externalCloudProviderConfig: enabled manifests
clusterInlineManifest: name contents
adminKubeconfigConfig: certLifetime
BlackholeRouteConfig: name metric
BondConfig: name hardwareAddr links bondMode miimon updelay downdelay useCarrier xmitHashPolicy arpInterval arpIpTargets nsIp6Targets
  arpValidate arpAllTargets lacpRate failOverMac adSelect adActorSysPrio adUserPortKey adLACPActive primaryReselect resendIGMP minLinks
  lpInterval packetsPerSlave numPeerNotif tlbLogicalLb allSlavesActive peerNotifDelay missedMax up mtu addresses[]=networkAddressConfig
  routes[]=networkRouteConfig multicast
networkAddressConfig: address routePriority
networkRouteConfig: destination gateway source metric mtu table
BridgeConfig: name hardwareAddr links stp=networkBridgeSTPConfig vlan=networkBridgeVLANConfig up mtu addresses[]=networkAddressConfig
  routes[]=networkRouteConfig multicast
networkBridgeSTPConfig: enabled
networkBridgeVLANConfig: filtering
DHCPv4Config: name routeMetric ignoreHostname clientIdentifier duidRaw
DHCPv6Config: name routeMetric ignoreHostname clientIdentifier duidRaw
NetworkDefaultActionConfig: ingress
DummyLinkConfig: name hardwareAddr up mtu addresses[]=networkAddressConfig routes[]=networkRouteConfig multicast
EnvironmentConfig: variables
EthernetConfig: name features rings=networkEthernetRingsConfig channels=networkEthernetChannelsConfig wakeOnLan
networkEthernetRingsConfig: rx tx rx-mini rx-jumbo rx-buf-len cqe-size tx-push rx-push tx-push-buf-len tcp-data-split
networkEthernetChannelsConfig: rx tx other combined
EventSinkConfig: endpoint
ExistingVolumeConfig: name discovery=blockVolumeDiscoverySpec mount=blockExistingMountSpec
blockVolumeDiscoverySpec: volumeSelector=blockVolumeSelector
blockVolumeSelector: match
blockExistingMountSpec: readOnly +disableAccessTime +secure
ExtensionServiceConfig: name configFiles[]=extensionsConfigFile environment
extensionsConfigFile: content mountPath
ExternalVolumeConfig: name filesystemType mount=blockExternalMountSpec
blockExternalMountSpec: readOnly disableAccessTime secure virtiofs=blockVirtiofsMountSpec
blockVirtiofsMountSpec: tag
HCloudVIPConfig: name link apiToken
HostnameConfig: auto hostname
ImageVerificationConfig: rules[]=securityImageVerificationRule
securityImageVerificationRule: image skip deny keyless=securityImageKeylessVerifier publicKey=securityImagePublicKeyVerifier
securityImageKeylessVerifier: issuer subject subjectRegex
securityImagePublicKeyVerifier: certificate
SideroLinkConfig: apiUrl uniqueToken
KmsgLogConfig: name url
KubeSpanConfig: enabled advertiseKubernetesNetworks allowDownPeerBypass harvestExtraEndpoints mtu filters=networkKubeSpanFiltersConfig
networkKubeSpanFiltersConfig: endpoints excludeAdvertisedNetworks
KubeSpanEndpointsConfig: extraAnnouncedEndpoints
Layer2VIPConfig: name link
LinkAliasConfig: name selector=networkLinkSelector
networkLinkSelector: match
LinkConfig: name up mtu addresses[]=networkAddressConfig routes[]=networkRouteConfig multicast
NetworkRuleConfig: name portSelector=networkRulePortSelector ingress[]=networkIngressRule
networkRulePortSelector: ports protocol
networkIngressRule: subnet except
OOMConfig: triggerExpression cgroupRankingExpression +strictCgroupClassOrdering sampleInterval
PCIDriverRebindConfig: name targetDriver
RawVolumeConfig: name provisioning=blockProvisioningSpec encryption=blockEncryptionSpec
blockProvisioningSpec: diskSelector=blockDiskSelector grow minSize maxSize
blockDiskSelector: match
blockEncryptionSpec: provider keys[]=blockEncryptionKey cipher keySize blockSize options
blockEncryptionKey: slot static=blockEncryptionKeyStatic nodeID kms=blockEncryptionKeyKMS tpm=blockEncryptionKeyTPM lockToState
blockEncryptionKeyStatic: passphrase
blockEncryptionKeyKMS: endpoint
blockEncryptionKeyTPM: options=blockEncryptionKeyTPMOptions checkSecurebootStatusOnEnroll
blockEncryptionKeyTPMOptions: pcrs
RegistryAuthConfig: name username password auth identityToken
RegistryMirrorConfig: name endpoints[]=criRegistryEndpoint skipFallback
criRegistryEndpoint: url overridePath
RegistryTLSConfig: name clientIdentity=metaCertificateAndKey ca insecureSkipVerify
metaCertificateAndKey: cert key
ResolverConfig: nameservers[]=networkNameserverConfig searchDomains=networkSearchDomainsConfig
networkNameserverConfig: address
networkSearchDomainsConfig: domains disableDefault
RoutingRuleConfig: name src dst table action iifName oifName fwMark fwMask
StaticHostConfig: name hostnames
SwapVolumeConfig: name provisioning=blockProvisioningSpec encryption=blockEncryptionSpec
TCPProbeConfig: name interval failureThreshold endpoint timeout
TimeSyncConfig: enabled bootTimeout ntp=networkNTPConfig ptp=networkPTPConfig
networkNTPConfig: servers
networkPTPConfig: devices
TrustedRootsConfig: name certificates
UserVolumeConfig: name volumeType provisioning=blockProvisioningSpec filesystem=blockFilesystemSpec encryption=blockEncryptionSpec
  +mount=blockUserMountSpec
blockFilesystemSpec: type projectQuotaSupport
blockUserMountSpec: disableAccessTime secure
VLANConfig: name vlanID vlanMode parent up mtu addresses[]=networkAddressConfig routes[]=networkRouteConfig multicast
VRFConfig: name hardwareAddr links table up mtu addresses[]=networkAddressConfig routes[]=networkRouteConfig multicast
VolumeConfig: name provisioning=blockProvisioningSpec encryption=blockEncryptionSpec +mount=blockMountSpec
blockMountSpec: secure
WatchdogTimerConfig: device timeout
WireguardConfig: name privateKey listenPort firewallMark peers[]=networkWireguardPeer up mtu addresses[]=networkAddressConfig
  routes[]=networkRouteConfig multicast
networkWireguardPeer: publicKey presharedKey endpoint persistentKeepaliveInterval allowedIPs
ZswapConfig: maxPoolPercent shrinkerEnabled
`

/** What stands below a field: its type, and whether that is of the value or of the items in it. Undefined: anything. */
export type Below = { readonly type: string; readonly each: boolean } | undefined
type Shape = ReadonlyMap<string, { readonly isNew: boolean; readonly below: Below }>

const fieldOf = (word: string): readonly [string, { readonly isNew: boolean; readonly below: Below }] => {
  const [, plus, name = '', many, type] = /^(\+?)([\w-]+)(\[\]|\{\})?(?:=(\w+))?$/.exec(word) ?? []
  return [name, { isNew: plus === '+', below: type === undefined ? undefined : { type, each: many !== undefined } }]
}

const BY_TYPE: ReadonlyMap<string, Shape> = new Map(
  SHAPES.replaceAll('\n  ', ' ')
    .trim()
    .split('\n')
    .map(line => {
      const [type = '', ...words] = line.split(/:? /)
      return [type, new Map(words.map(fieldOf))] as const
    }),
)

/** The fields of a type before or since 1.13; undefined where nothing is known of the type. */
export const fieldsOf = (type: string, since13: boolean): ReadonlyMap<string, Below> | undefined => {
  const shape = BY_TYPE.get(type)
  return shape && new Map([...shape].flatMap(([name, { isNew, below }]) => (isNew && !since13 ? [] : [[name, below] as const])))
}

/** Kinds of documents by the minor that brought them. */
const KINDS: Readonly<Record<number, string>> = {
  5: 'EventSinkConfig KmsgLogConfig SideroLinkConfig',
  6: 'NetworkDefaultActionConfig NetworkRuleConfig',
  7: 'ExtensionServiceConfig WatchdogTimerConfig',
  8: 'KubeSpanEndpointsConfig TrustedRootsConfig VolumeConfig',
  10: 'EthernetConfig PCIDriverRebindConfig UserVolumeConfig',
  11: 'ExistingVolumeConfig RawVolumeConfig SwapVolumeConfig ZswapConfig',
  12:
    'BondConfig BridgeConfig DHCPv4Config DHCPv6Config DummyLinkConfig HCloudVIPConfig HostnameConfig Layer2VIPConfig LinkAliasConfig LinkConfig ' +
    'OOMConfig RegistryAuthConfig RegistryMirrorConfig RegistryTLSConfig ResolverConfig StaticHostConfig TimeSyncConfig VLANConfig WireguardConfig',
  13: 'BlackholeRouteConfig EnvironmentConfig ExternalVolumeConfig ImageVerificationConfig KubeSpanConfig RoutingRuleConfig TCPProbeConfig VRFConfig',
  14:
    'BGPInstanceConfig CRIBaseRuntimeSpecConfig CRICustomizationConfig ContainerConfig DiscoveryIdentityConfig DiscoveryServiceConfig EtcFileConfig ' +
    'FilesystemScrubConfig FilesystemTrimConfig HTTPProbeConfig ImageCacheConfig KernelModuleConfig KubeAPIServerCAConfig KubeAPIServerConfig ' +
    'KubeAdmissionControlConfig KubeAggregatorCAConfig KubeAuditPolicyConfig KubeAuthenticationConfig KubeAuthorizerConfig KubeClusterConfig ' +
    'KubeControllerManagerConfig KubeCoreDNSConfig KubeCredentialProviderConfig KubeEtcdEncryptionConfig KubeExternalManifestConfig ' +
    'KubeFlannelCNIConfig KubeInlineManifestConfig KubeNetworkConfig KubeNodeConfig KubePrismConfig KubeProxyConfig KubeSchedulerConfig ' +
    'KubeServiceAccountConfig KubeStaticPodConfig KubeTalosAPIAccessConfig KubeletConfig LVMLogicalVolumeConfig LVMVolumeGroupConfig ' +
    'RAIDArrayConfig SecurityProfileConfig SysctlConfig SysfsConfig UdevRulesConfig UnattendedInstallConfig VethConfig',
}

/** Since which minor of Talos 1 a kind of document is known. */
export const KIND_SINCE: ReadonlyMap<string, number> = new Map(
  Object.entries(KINDS).flatMap(([minor, kinds]) => kinds.split(' ').map(kind => [kind, Number(minor)] as const)),
)
