# Shared by the scripts of this folder; not to be run by itself.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
real=$here/../real       # the Go modules of etcd, Kubernetes and Talos
cache=$(realpath -m "${REALTALOS_CACHE:-$here/../../.cache/realtalos}")
bin=$cache/bin           # what build.sh made
rootfs=$cache/rootfs     # the machines' shared, read-only root file system
state=$cache/run         # the running cluster; removed by down.sh

# required FOLDER MODULE: the version of a module that the go.mod of the folder requires.
required() { awk -v module="$2" '{ sub(/^require /, "") } $1 == module && $2 ~ /^v/ { print $2; exit }' "$1/go.mod"; }

etcd_version=$(required "$real/etcd" go.etcd.io/etcd/server/v3)
kubernetes_version=$(required "$real/kubernetes" k8s.io/kubernetes)
older_kubernetes_version=$(required "$here/older-kubernetes" k8s.io/kubernetes) # to be upgraded from
containerd_version=$(required "$here/containerd" github.com/containerd/containerd/v2)

netns=realtalos          # the network namespace that holds everything
bridge=talos0
gateway=10.5.0.1         # address of the bridge: registry, discovery service, load balancer
registry=$gateway:5000
discovery=$gateway:3000
endpoint=$gateway:6443

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# Like "ip netns exec", which would replace /sys and so hide the cgroup file system.
in_netns() { nsenter --net=/run/netns/$netns "$@"; }

# The mount point of the cgroup v2 tree: /sys/fs/cgroup, or /sys/fs/cgroup/unified on a hybrid host.
cgroup2() { awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts; }

talosctl() { HOME=$state TALOSCONFIG=$state/talosconfig in_netns "$bin/talosctl" "$@"; }
kubectl() { HOME=$state KUBECONFIG=$state/kubeconfig in_netns "$bin/kubectl" "$@"; }

# Ends the process a pid file names, if it is still one of our programs.
end_process() {
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 0
  case $(readlink "/proc/$pid/exe") in
  "$bin"/*) kill -KILL "$pid" 2>/dev/null || true ;;
  esac
}

# The system-wide settings (not those of a network namespace) as "file value" lines.
# Left out: counters, and what changes by itself.
system_settings() {
  find /proc/sys \( -path /proc/sys/net -o -path /proc/sys/user \) -prune -o -type f -perm -u+w -print 2>/dev/null |
    grep -vE '/(ns_last_pid|hostname|domainname|drop_caches|compact_memory|stat_refresh|.*random/.*|.*sched_domain.*)$' |
    sort | while read -r file; do
      value=$({ tr '\n' ' ' <"$file"; } 2>/dev/null) || continue
      printf '%s %s\n' "$file" "$value"
    done
}

# Writes back every setting that differs from the saved list.
restore_system_settings() {
  system_settings | diff "$1" - | sed -n 's/^< //p' | while read -r file value; do
    { echo "$value" >"$file"; } 2>/dev/null && say "restored $file to $value"
  done
}
