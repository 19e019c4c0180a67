import {
  EtcdRootSpecSchema,
  KubernetesRootSpecSchema,
  OSRootSpecSchema,
} from '../../../proto/gen/talos/resource/definitions/secrets/secrets_pb.ts'
import type { Machine } from '../../world/machine.ts'
import { readScalar } from '../../world/machine-config.ts'
import type { Site } from '../../world/site.ts'
import type { Authorities, KeyPair } from '../call.ts'
import type { Drawn, ResourceKind } from './kind.ts'
import { drawn, ipBytes } from './kind.ts'
import { endpointOf } from '../../world/machine-config.ts'
import { bootstrapToken } from '../../world/manifests.ts'
import { NETWORK } from './static-pods.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const base64 = (text: string): string => Buffer.from(text).toString('base64')

const pairProto = ({ crt, key }: KeyPair) => ({ crt: bytes(crt), key: bytes(key) })
const pairYaml = ({ crt, key }: KeyPair) => ({ crt: base64(crt), key: base64(key) })

/** A worker knows whom to trust, and not how to sign. */
const osRoot = (machine: Machine, { talos }: Authorities): readonly Drawn[] => {
  const signs = machine.role === 'controlplane'
  const token = readScalar(machine.config, ['machine', 'token']) ?? ''
  return [
    drawn(
      'os',
      OSRootSpecSchema,
      { ...(signs ? { issuingCa: pairProto(talos) } : {}), acceptedCAs: [{ crt: bytes(talos.crt) }], token },
      {
        issuingCA: signs ? pairYaml(talos) : null,
        acceptedCAs: [{ crt: base64(talos.crt) }],
        certSANIPs: [],
        certSANDNSNames: [],
        token,
      },
    ),
  ]
}

/** As Go prints the parts of a URL. */
const urlYaml = (url: string) => ({
  ...{ scheme: 'https', opaque: '', user: null, host: url.replace(/^https:\/\//, ''), path: '', fragment: '', rawquery: '', rawpath: '' },
  ...{ rawfragment: '', forcequery: false, omithost: false },
})

const kubernetesRoot = (site: Site, machine: Machine, { kubernetes, aggregator }: Authorities): readonly Drawn[] => {
  if (!kubernetes || machine.role !== 'controlplane') return []
  const endpoint = endpointOf(machine.config)
  const local = 'https://localhost:6443'
  const token = bootstrapToken(site)
  return [
    drawn(
      'k8s',
      KubernetesRootSpecSchema,
      {
        name: site.clusterName,
        endpoint: { fullPath: endpoint },
        localEndpoint: { fullPath: local },
        apiServerIps: [{ ip: ipBytes(NETWORK.apiService) }],
        dnsDomain: NETWORK.domain,
        issuingCa: pairProto(kubernetes),
        acceptedCAs: [{ crt: bytes(kubernetes.crt) }],
        ...(aggregator ? { aggregatorCa: pairProto(aggregator) } : {}),
        bootstrapTokenId: token.id,
        bootstrapTokenSecret: token.secret,
      },
      {
        name: site.clusterName,
        endpoint: urlYaml(endpoint),
        local_endpoint: urlYaml(local),
        certSANs: [],
        apiServerIPs: [NETWORK.apiService],
        dnsDomain: NETWORK.domain,
        issuingCA: pairYaml(kubernetes),
        acceptedCAs: [{ crt: base64(kubernetes.crt) }],
        serviceAccount: null,
        aggregatorCA: aggregator ? pairYaml(aggregator) : null,
        aesCBCEncryptionSecret: '',
        bootstrapTokenID: token.id,
        bootstrapTokenSecret: token.secret,
        secretboxEncryptionSecret: '',
      },
    ),
  ]
}

const etcdRoot = (machine: Machine, { etcd }: Authorities): readonly Drawn[] =>
  etcd && machine.role === 'controlplane'
    ? [drawn('etcd', EtcdRootSpecSchema, { etcdCa: pairProto(etcd) }, { etcdCA: pairYaml(etcd) })]
    : []

/** The roots of trust, as far as the simulation was given them. */
export const secretKinds: readonly ResourceKind[] = [
  {
    type: 'OSRootSecrets.secrets.talos.dev',
    display: 'OSRootSecret',
    namespace: 'secrets',
    owner: 'secrets.RootOSController',
    sensitiveSince: 0,
    since: 0,
    draw: (_, machine, { authorities }) => (authorities ? osRoot(machine, authorities) : []),
  },
  {
    type: 'KubernetesRootSecrets.secrets.talos.dev',
    display: 'KubernetesRootSecret',
    namespace: 'secrets',
    owner: 'secrets.RootKubernetesController',
    sensitiveSince: 0,
    since: 0,
    draw: (site, machine, { authorities }) => (authorities ? kubernetesRoot(site, machine, authorities) : []),
  },
  {
    type: 'EtcdRootSecrets.secrets.talos.dev',
    display: 'EtcdRootSecret',
    namespace: 'secrets',
    owner: 'secrets.RootEtcdController',
    sensitiveSince: 0,
    since: 0,
    draw: (_, machine, { authorities }) => (authorities ? etcdRoot(machine, authorities) : []),
  },
]
