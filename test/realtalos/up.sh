#!/bin/bash
# Starts a cluster of real Talos machines: up.sh [CONTROLPLANES [WORKERS [older]]] (default 3 1), with the older Kubernetes where asked for.
# Everything lives in one network namespace; in.sh runs commands there, down.sh ends it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

controlplanes=${1:-3}
workers=${2:-1}
case ${3:-} in
"") begins_with=$kubernetes_version ;;
older) begins_with=$older_kubernetes_version ;;
*) die "the third argument can only be older" ;;
esac
[ "$(id -u)" = 0 ] || die "needs root"
[ -d "$rootfs" ] || die "nothing built in $cache; run build.sh first"
[ ! -e /run/netns/$netns ] && [ ! -e "$state" ] || die "already up; run down.sh first"
[ "$controlplanes" -ge 1 ] && [ "$controlplanes" -le 8 ] || die "1 to 8 control planes"
[ "$workers" -le 200 ] || die "at most 200 workers"
[ -n "$(cgroup2)" ] || die "no cgroup v2 file system is mounted"

since() { say "$(printf '%4d s  %s' $SECONDS "$*")"; }

# wait_for SECONDS WHAT COMMAND… repeats a command until it succeeds.
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || die "gave up waiting for: $what"
    sleep 0.5
  done
  since "$what"
}

in_time() { timeout 20 "$here/in.sh" "$@" 2>/dev/null; }

# service NAME COMMAND… starts one of the programs that serve the machines.
service() {
  local name=$1
  shift
  nsenter --net=/run/netns/$netns setsid "$@" >"$state/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$state/$name.pid"
  disown
}

# Whatever happens, nothing stays. Where a signal comes, standard error may be redirected.
exec 9>&2
stopped=
tidy_up() {
  local code=$?
  exec 2>&9
  [ $code = 0 ] && exit
  [ -n "$stopped" ] || { save_logs; say "failed: the logs are in $cache/failed"; }
  "$here/down.sh"
  exit $code
}
trap tidy_up EXIT
trap 'stopped=1; exit 130' INT TERM HUP
save_logs() {
  rm -rf "$cache/failed"
  mkdir -p "$cache/failed"
  cp "$state"/*.log "$cache/failed/" 2>/dev/null || true
  for log in "$state"/machines/*/log; do
    cp "$log" "$cache/failed/$(basename "$(dirname "$log")").log" 2>/dev/null || true
  done
}

mkdir -p "$state/machines"
chmod 700 "$state"
system_settings >"$state/system-settings"

ip netns add $netns
in_netns ip link set lo up
in_netns ip link add $bridge type bridge
in_netns ip address add $gateway/24 dev $bridge
in_netns ip link set $bridge up

# The kubelet image also needs mount(8): take the host's with its libraries, and a user database.
printf 'root:x:0:0:root:/root:/sbin/nologin\n' >"$state/passwd"
printf 'root:x:0:\n' >"$state/group"
mount_files() {
  local program library
  for program in mount umount; do
    printf '%s:/usr/bin/%s\n' "$(readlink -f "$(command -v $program)")" $program
    for library in $(ldd "$(command -v $program)" | grep -oE '/[^ ]+\.so[^ ]*'); do
      printf '%s:%s\n' "$(readlink -f "$library")" "$library"
    done
  done | sort -u
}
mapfile -t kubelet_files < <(mount_files)

# images VERSION FOLDER: what imgreg is told of one Kubernetes, whose programs lie there.
images() {
  local program
  for program in kube-apiserver kube-controller-manager kube-scheduler; do
    printf '%s\n' $program:"$1" "$2/$program:/usr/local/bin/$program" --
  done
  printf '%s\n' siderolabs/kubelet:"$1"=/usr/local/bin/kubelet "$2/kubelet:/usr/local/bin/kubelet" \
    "${kubelet_files[@]}" @/run:/var/run "$state/passwd:/etc/passwd" "$state/group:/etc/group" --
}
mapfile -t kubernetes_images < <(
  images "$kubernetes_version" "$bin"
  [ "$begins_with" = "$kubernetes_version" ] || images "$begins_with" "$bin/older"
)
service registry "$bin/imgreg" -listen $registry "${kubernetes_images[@]}" \
  etcd:$etcd_version "$bin/etcd:/usr/local/bin/etcd" -- \
  pause:3.10=/pause "$bin/pause:/pause"
service discovery "$bin/discovery-service" -addr $discovery -landing-addr "" -metrics-addr "" -snapshots-enabled=false

for kind in all controlplane; do
  sed "s/@registry@/$registry/; s/@discovery@/$discovery/; s/@kubernetes@/$begins_with/; s/@etcd@/$etcd_version/" \
    "$here/machines/patch-$kind.yaml" >"$state/patch-$kind.yaml"
done
talosctl gen config home https://$endpoint --output "$state" --with-docs=false --with-examples=false \
  --kubernetes-version "${begins_with#v}" --additional-sans $gateway \
  --config-patch "@$state/patch-all.yaml" --config-patch-control-plane "@$state/patch-controlplane.yaml" 2>/dev/null

cp_addresses=() worker_addresses=()
for i in $(seq "$controlplanes"); do cp_addresses+=("10.5.0.$((i + 1))"); done
for i in $(seq "$workers"); do worker_addresses+=("10.5.0.$((i + 10))"); done
talosctl config endpoint "${cp_addresses[@]}"
talosctl config node "${cp_addresses[0]}"

# The Kubernetes endpoint must outlive any one control plane; Talos brings a TCP load balancer.
service loadbalancer "$bin/talosctl" loadbalancer-launch --loadbalancer-addr $gateway \
  --loadbalancer-upstreams "$(IFS=,; echo "${cp_addresses[*]}")"

wait_for 60 "images are served" grep -q ^serving "$state/registry.log"
for i in $(seq "$controlplanes"); do "$here/machine.sh" add "cp-$i" controlplane "${cp_addresses[$((i - 1))]}"; done
for i in $(seq "$workers"); do "$here/machine.sh" add "wk-$i" worker "${worker_addresses[$((i - 1))]}"; done
since "$((controlplanes + workers)) machines started"

for address in "${cp_addresses[@]}" "${worker_addresses[@]}"; do
  wait_for 120 "Talos API of $address answers" in_time talosctl -n "$address" version
done
wait_for 120 "bootstrap accepted" in_time talosctl bootstrap
# Members join one after the other, first as learners ("true" in the last column).
voters() { [ "$(in_time talosctl etcd members | awk '$NF == "false"' | wc -l)" = "$controlplanes" ]; }
nodes_ready() { [ "$(in_time kubectl get nodes --no-headers | awk '$2 == "Ready"' | wc -l)" = $((controlplanes + workers)) ]; }
pods_ready() { [ "$(in_time kubectl -n kube-system get pods -l tier=control-plane --no-headers | awk '$2 == "1/1"' | wc -l)" = $((controlplanes * 3)) ]; }
machine_ready() { in_time talosctl -n "$1" get machinestatus | grep -q ' running  *true'; }

wait_for 180 "Kubernetes API answers" in_time sh -c 'talosctl kubeconfig --force "$KUBECONFIG" && kubectl get nodes'
wait_for 300 "all nodes are Ready" nodes_ready
wait_for 300 "all etcd members are voters" voters
wait_for 300 "all control plane pods are Ready" pods_ready
for address in "${cp_addresses[@]}" "${worker_addresses[@]}"; do
  wait_for 120 "machine $address is running and ready" machine_ready "$address"
done
