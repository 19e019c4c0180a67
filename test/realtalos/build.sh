#!/bin/bash
# Builds everything the machines need into $REALTALOS_CACHE (default .cache/realtalos of the checkout): Talos, Kubernetes,
# etcd, containerd and the discovery service from their Go modules, our own small tools, and the machines' root file system.
# What is there and made of the same sources is kept. Programs named as arguments (paths to etcd, kubectl, …, built from
# ../real) are taken instead of built. Where the first argument is "older", the older Kubernetes is built, too.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

older=
[ "${1:-}" != older ] || { older=1; shift; }

[ ! -x /usr/local/go/bin/go ] || PATH=$PATH:/usr/local/go/bin
for tool in go apt-get dpkg-deb ldd; do
  command -v $tool >/dev/null || die "$tool is missing"
done
mkdir -p "$bin/older" "$cache/debs"
export CGO_ENABLED=0 GOOS=linux GOARCH=amd64 GOWORK=off GOFLAGS="-mod=readonly -buildvcs=false"

for program in "$@"; do
  [ "$program" -ef "$bin/$(basename "$program")" ] && continue
  ln -f "$program" "$bin/" 2>/dev/null || cp "$program" "$bin/"
  echo "$program" >"$bin/$(basename "$program").sources"
done
taken=" ${*##*/} "

# sources FOLDER… prints a hash of all files below.
sources() { find "$@" -type f | LC_ALL=C sort | xargs cat | sha256sum; }

# go_build FOLDER PACKAGE OUTPUT [BUILD FLAG...]
go_build() {
  local folder=$1 package=$2 output=$bin/$3 begin=$SECONDS made_of
  case $taken in *" $3 "*) return ;; esac
  shift 3
  made_of="$(sources "$folder") $*"
  [ -x "$output" ] && [ "$(cat "$output.sources" 2>/dev/null)" = "$made_of" ] && return
  say "building $(basename "$output") …"
  (cd "$folder" && nice -n 10 go build -trimpath "$@" -o "$output.new" "$package" 2> >(grep -v '^go: downloading' >&2))
  mv "$output.new" "$output"
  echo "$made_of" >"$output.sources"
  say "  $((SECONDS - begin)) s"
}

for tool in talosbox runcwrap imgreg pause; do
  go_build "$here/tools" ./$tool $tool -ldflags "-s -w"
done

go_build "$here/discovery" github.com/siderolabs/discovery-service/cmd/discovery-service discovery-service -ldflags "-s -w"
go_build "$real/etcd" go.etcd.io/etcd/server/v3 etcd -ldflags "-s -w"

for tool in containerd containerd-shim-runc-v2 ctr; do
  go_build "$here/containerd" github.com/containerd/containerd/v2/cmd/$tool $tool \
    -tags no_btrfs,no_zfs,no_devmapper,no_aufs \
    -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$containerd_version"
done

# build_kubernetes MODULE VERSION FOLDER PROGRAM...: into a folder below $bin.
build_kubernetes() {
  local module=$1 version=$2 folder=$3 tool
  local minor=${version#v1.}
  shift 3
  for tool in "$@"; do
    go_build "$module" k8s.io/kubernetes/cmd/$tool "$folder$tool" -ldflags "-s -w \
    -X k8s.io/component-base/version.gitVersion=$version \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=${minor%%.*} \
    -X k8s.io/component-base/version.gitTreeState=clean \
    -X k8s.io/client-go/pkg/version.gitVersion=$version"
  done
}
build_kubernetes "$real/kubernetes" "$kubernetes_version" "" \
  kubelet kube-apiserver kube-controller-manager kube-scheduler kubectl
[ -z "$older" ] || build_kubernetes "$here/older-kubernetes" "$older_kubernetes_version" older/ \
  kubelet kube-apiserver kube-controller-manager kube-scheduler

go_build "$real/talos" github.com/siderolabs/talos/cmd/talosctl talosctl -ldflags "-s -w"
go_build "$real/talos" github.com/siderolabs/talos/internal/app/machined machined -tags tcell_minimal,grpcnotrace -ldflags "-s -w"

# runc and the CNI plugins come from Debian, unpacked but not installed.
fetch() { (cd "$cache/debs" && apt-get download -qq -o APT::Sandbox::User=root "$1" >/dev/null 2>&1); }
for package in runc libseccomp2 containernetworking-plugins; do
  [ -e "$cache/debs/$package" ] && continue
  say "fetching Debian's $package"
  # A fresh machine has no lists of packages.
  fetch $package || { apt-get update -qq && fetch $package; } || die "cannot download the Debian package $package"
  dpkg-deb -x "$cache/debs/$package"_*.deb "$cache/debs/unpacked"
  touch "$cache/debs/$package"
done

# The libraries a program needs, one path a line.
libraries() { ldd "$1" | grep -oE '/[^ ]+\.so[^ ]*' || true; }

make_rootfs() {
  local root=$1 debs=$cache/debs/unpacked talos machinery file dir
  talos=$(cd "$real/talos" && go list -m -f '{{.Dir}}' github.com/siderolabs/talos)
  machinery=$(cd "$real/talos" && go list -m -f '{{.Dir}}' github.com/siderolabs/talos/pkg/machinery)
  rm -rf "$root"
  mkdir -p "$root"/usr/{bin,lib/x86_64-linux-gnu,lib64,lib/modules,etc,libexec/kubernetes} \
    "$root"/usr/{local/lib/kubelet/credentialproviders,share/zoneinfo/Etc,share/ca-certificates,share/spdx} \
    "$root"/{dev,proc,sys,run,system,tmp,var,mnt,root,boot,.extra} \
    "$root"/opt/{cni/bin,containerd/bin,containerd/lib} \
    "$root"/etc/{iscsi,nvme,lvm,ssl/certs,containerd,cri/conf.d/hosts,kubernetes/manifests,cni/net.d} \
    "$root"/etc/selinux/targeted/contexts/files
  ln -s usr/bin "$root/bin"
  ln -s usr/bin "$root/sbin"
  ln -s bin "$root/usr/sbin"
  ln -s usr/lib "$root/lib"
  ln -s usr/lib64 "$root/lib64"

  install "$bin/machined" "$root/usr/bin/init"
  for file in poweroff shutdown dashboard; do
    ln "$root/usr/bin/init" "$root/usr/bin/$file"
  done
  install "$bin"/{containerd,containerd-shim-runc-v2,ctr} "$root/usr/bin/"
  install "$debs/usr/sbin/runc" "$root/usr/bin/runc.real"
  install "$bin/runcwrap" "$root/usr/bin/runc"
  for file in $(libraries "$debs/usr/sbin/runc"); do
    case $file in
    *ld-linux*) dir=lib64 ;;
    *) dir=lib/x86_64-linux-gnu ;;
    esac
    install -m 755 "$file" "$root/usr/$dir/$(basename "$file")"
  done
  install "$debs"/usr/lib/x86_64-linux-gnu/libseccomp.so.2 "$root/usr/lib/x86_64-linux-gnu/"
  install "$debs"/usr/lib/cni/* "$root/opt/cni/bin/"
  install -m 644 "$here/machines/cni.conflist" "$root/etc/cni/net.d/10-bridge.conflist"

  # The files of the Talos image that are in its source tree.
  install -m 644 "$talos/hack/nfsmount.conf" "$root/etc/nfsmount.conf"
  install -m 644 "$talos/hack/containerd.toml" "$root/etc/containerd/config.toml"
  install -m 644 "$talos/hack/cri-containerd.toml" "$root/etc/cri/containerd.toml"
  install -m 644 "$talos/hack/cri-plugin.part" "$root/etc/cri/conf.d/00-base.part"
  install -m 644 "$talos/hack/lvm.conf" "$root/etc/lvm/lvm.conf"
  install -m 644 "$talos/hack/zoneinfo/Etc/UTC" "$root/usr/share/zoneinfo/Etc/UTC"
  install -m 644 "$machinery/version/os-release" "$root/etc/os-release"
  ln -s /usr/share/zoneinfo/Etc/UTC "$root/etc/localtime"

  # Empty files that machined mounts its own over.
  touch "$root"/etc/{extensions.yaml,resolv.conf,hosts,hostname,machine-id,iscsi/initiatorname.iscsi,nvme/hostid,nvme/hostnqn} \
    "$root"/etc/cri/conf.d/{cri.toml,01-registries.part,20-customization.part,base-spec.json} \
    "$root/etc/selinux/targeted/contexts/files/file_contexts"
  touch "$root/etc/ssl/certs/ca-certificates.crt"
  [ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
    install -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  ln -s ca-certificates.crt "$root/etc/ssl/certs/ca-certificates"
  echo true >"$root/usr/etc/in-container"
}

made_of=$(cat "$here/build.sh" "$here/machines/cni.conflist" "$bin"/{machined,containerd,containerd-shim-runc-v2,ctr,runcwrap}.sources | sha256sum)
if [ ! -d "$rootfs" ] || [ "$(cat "$rootfs.sources" 2>/dev/null)" != "$made_of" ]; then
  say "making the root file system"
  make_rootfs "$rootfs.new"
  rm -rf "$rootfs"
  mv "$rootfs.new" "$rootfs"
  echo "$made_of" >"$rootfs.sources"
fi
