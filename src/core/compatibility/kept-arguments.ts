import type { Component } from '../../ports/components.ts'

/**
 * Arguments that Talos gives to a program itself and lets nobody change. It takes a configuration with one of them; but then it renders no static pod of the
 * machine any more, or starts its kubelet with nothing new, and says so in its own log alone (seen with Talos 1.12.1).
 */
export const KEPT_ARGUMENTS: Readonly<Partial<Record<Component, readonly string[]>>> = {
  'kube-apiserver': [
    ...['etcd-servers', 'client-ca-file', 'requestheader-client-ca-file', 'proxy-client-cert-file', 'proxy-client-key-file'],
    ...['encryption-provider-config', 'etcd-cafile', 'etcd-certfile', 'etcd-keyfile', 'kubelet-client-certificate', 'kubelet-client-key'],
    ...['service-account-key-file', 'service-account-signing-key-file', 'tls-cert-file', 'tls-private-key-file', 'authorization-config'],
  ],
  'kube-controller-manager': [
    ...['cluster-signing-cert-file', 'cluster-signing-key-file', 'authentication-kubeconfig', 'authorization-kubeconfig', 'root-ca-file'],
    'service-account-private-key-file',
  ],
  'kube-scheduler': ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig', 'config'],
  kubelet: ['bootstrap-kubeconfig', 'kubeconfig', 'container-runtime', 'container-runtime-endpoint', 'config', 'cert-dir'],
}
