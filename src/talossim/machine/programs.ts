/** A socket that a program waits at. The address is the one it binds: `::` is everything. */
export type Socket = { readonly protocol: 'tcp' | 'tcp6' | 'udp' | 'udp6'; readonly ip: string; readonly port: number }

/** What a program takes of its machine, about. */
export type Program = {
  /** As /proc tells it: the path of the file, and the arguments after the name. */
  readonly executable: string
  readonly args: string
  readonly memoryMiB: number
  /** Of one core, on average. */
  readonly cores: number
  readonly threads: number
  readonly sockets: readonly Socket[]
}

const everywhere = (port: number): Socket => ({ protocol: 'tcp6', ip: '::', port })
const local = (port: number): Socket => ({ protocol: 'tcp', ip: '127.0.0.1', port })

type Line = readonly [executable: string, args: string, memoryMiB: number, cores: number, threads: number, sockets?: readonly Socket[]]

const TABLE: Readonly<Record<string, Line>> = {
  machined: ['/usr/bin/init', '/sbin/init', 120, 0.04, 14],
  containerd: ['/bin/containerd', '/bin/containerd --address /system/run/containerd/containerd.sock', 42, 0.01, 12],
  cri: [
    '/bin/containerd',
    '/bin/containerd --address /run/containerd/containerd.sock --config /etc/cri/containerd.toml',
    70,
    0.02,
    14,
    [local(41_773)],
  ],
  apid: ['/apid', '/apid', 38, 0.01, 9, [everywhere(50_000)]],
  trustd: ['/trustd', '/trustd', 24, 0.002, 8, [everywhere(50_001)]],
  etcd: ['/usr/local/bin/etcd', '/usr/local/bin/etcd --data-dir=/var/lib/etcd', 140, 0.05, 13, [everywhere(2379), everywhere(2380)]],
  kubelet: [
    '/usr/local/bin/kubelet',
    '/usr/local/bin/kubelet --config=/etc/kubernetes/kubelet.yaml',
    95,
    0.05,
    15,
    [everywhere(10_250), local(10_248)],
  ],
  udevd: ['/usr/lib/systemd/systemd-udevd', '/usr/lib/systemd/systemd-udevd --resolve-names=never', 10, 0.0005, 1],
  dashboard: ['/sbin/dashboard', '/sbin/dashboard', 36, 0.005, 9],
  'containerd-shim': ['/bin/containerd-shim-runc-v2', '/bin/containerd-shim-runc-v2 -namespace k8s.io', 12, 0.0005, 11],
  pause: ['/pause', '/pause', 0.5, 0, 1],
  'kube-apiserver': [
    '/usr/local/bin/kube-apiserver',
    '/usr/local/bin/kube-apiserver --etcd-servers=https://127.0.0.1:2379 --secure-port=6443',
    420,
    0.12,
    13,
    [everywhere(6443)],
  ],
  'kube-controller-manager': [
    '/usr/local/bin/kube-controller-manager',
    '/usr/local/bin/kube-controller-manager',
    92,
    0.03,
    9,
    [local(10_257)],
  ],
  'kube-scheduler': ['/usr/local/bin/kube-scheduler', '/usr/local/bin/kube-scheduler', 56, 0.01, 9, [local(10_259)]],
  'kube-proxy': ['/usr/local/bin/kube-proxy', '/usr/local/bin/kube-proxy', 46, 0.004, 8, [everywhere(10_256), local(10_249)]],
  'kube-flannel': ['/opt/bin/flanneld', '/opt/bin/flanneld --ip-masq --kube-subnet-mgr', 38, 0.005, 9],
  cilium: ['/usr/bin/cilium-agent', 'cilium-agent --config-dir=/tmp/cilium/config-map', 180, 0.05, 17, [everywhere(4244), local(9879)]],
  coredns: ['/coredns', '/coredns -conf /etc/coredns/Corefile', 32, 0.005, 8, [everywhere(53), everywhere(8080), everywhere(9153)]],
}

/** A program by the name of its service or container; one that nobody knows is small. */
export const programOf = (name: string): Program => {
  const [executable, args, memoryMiB, cores, threads, sockets = []] = TABLE[name] ?? [`/${name}`, `/${name}`, 48, 0.01, 6]
  return { executable, args, memoryMiB, cores, threads, sockets }
}
