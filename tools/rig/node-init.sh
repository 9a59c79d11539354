#!/bin/bash
# First process of a lab node, in mount, pid, uts, ipc and cgroup namespaces of its own (see src/node.ts): gives the node
# its own view of /sys, /run and the state folders at their usual paths, then runs containerd, kubelet and kube-proxy.
# Environment: NODE (name), DIR (state folder), CNI_PLUGINS; and for Kubernetes IMAGE_STORE (of containerd), BIN (its programs),
# LABELS, NODE_IP. Without BIN nothing is run.
set -euo pipefail
hostname "$NODE"
mount --make-rprivate /

# /sys of this network namespace, and cgroups whose root is the node's group (by the cgroup namespace).
cgroup2=; [ ! -f /sys/fs/cgroup/cgroup.controllers ] || cgroup2=yes
umount -R /sys/fs/cgroup
umount -l /sys
mount -t sysfs sysfs /sys
if [ -n "$cgroup2" ]; then mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  mount -t tmpfs -o mode=755,size=1m tmpfs /sys/fs/cgroup
  for controller in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir "/sys/fs/cgroup/$controller"; mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
  done
  mkdir /sys/fs/cgroup/systemd; mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
mount -t bpf bpf /sys/fs/bpf

# kubelet wants these set for the whole machine; the node sees files with the wanted values instead.
mkdir -p "$DIR/sysctl"
shadow() { echo "$2" >"$DIR/sysctl/${1//\//.}"; mount --bind "$DIR/sysctl/${1//\//.}" "/proc/sys/$1"; }
shadow vm/overcommit_memory 1; shadow vm/panic_on_oom 0; shadow kernel/panic 10; shadow kernel/panic_on_oops 1
shadow kernel/keys/root_maxkeys 1000000; shadow kernel/keys/root_maxbytes 25000000

# Each start of the node is a boot of its own: the machine's boot id would say that it never ended.
cat /proc/sys/kernel/random/uuid >"$DIR/boot_id"; mount --bind "$DIR/boot_id" /proc/sys/kernel/random/boot_id

# Pods on the host's network get the node's /etc/hosts, which is not the machine's.
[ -z "${BIN-}" ] || { chmod 644 "$DIR/hosts"; mount --bind "$DIR/hosts" /etc/hosts; }

# Hard links to what was imported once for all nodes; but databases are changed in place. Below $DIR, where both are in one mount.
if [ -n "${IMAGE_STORE-}" ] && [ ! -e "$DIR/root/var/lib/containerd" ]; then
  mkdir -p "$DIR/root/var/lib"; rm -rf "$DIR/root/var/lib/containerd.new"
  cp -al "$IMAGE_STORE" "$DIR/root/var/lib/containerd.new"
  for database in io.containerd.metadata.v1.bolt/meta.db io.containerd.snapshotter.v1.overlayfs/metadata.db; do
    cp --remove-destination "$IMAGE_STORE/$database" "$DIR/root/var/lib/containerd.new/$database"
  done
  mv "$DIR/root/var/lib/containerd.new" "$DIR/root/var/lib/containerd"
fi

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/containerd /run/netns /run/lock
for folder in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/lib/unbounded /var/lib/tailscale-cni /var/log/pods /var/log/containers \
  /etc/cni /etc/wireguard /etc/containerd /opt/cni; do
  # The folders must exist on the machine to be mounted upon; src/node.ts made (and down removes) what was missing.
  mkdir -p "$DIR/root$folder"; mount --bind "$DIR/root$folder" "$folder"
done
mkdir -p /opt/cni/bin /etc/cni/net.d
cp -n "$CNI_PLUGINS"/{bridge,host-local,portmap,loopback} /opt/cni/bin/
mount --make-rshared /
: >"$DIR/made"
# Without Kubernetes: only holds the namespaces, and reaps what is orphaned in them.
while [ -z "${BIN-}" ]; do sleep infinity & wait; done

cp "$DIR/containerd.toml" /etc/containerd/config.toml
cp "$DIR/kubelet.yaml" /var/lib/kubelet/config.yaml
cp "$DIR/kube-proxy.yaml" /var/lib/kubelet/kube-proxy.yaml

containerd --config /etc/containerd/config.toml >"$DIR/containerd.log" 2>&1 </dev/null &
until ctr version >/dev/null 2>&1; do kill -0 $!; sleep 0.05; done
until [ -e "$DIR/../../control-plane/ready" ]; do sleep 0.1; done
# What fails is started again, as systemd and kubelet do it on other nodes; the log keeps the reason. Usage: keep_running NAME ARGUMENT...
keep_running() {
  until "$BIN/$1" "${@:2}"; do echo "$1 ended with $?"; sleep 1; done >>"$DIR/$1.log" 2>&1 </dev/null
}
keep_running kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig="$DIR/kubelet.kubeconfig" --hostname-override="$NODE" \
  --node-ip="$NODE_IP" --cloud-provider=external --node-labels="$LABELS" &
keep_running kube-proxy --config=/var/lib/kubelet/kube-proxy.yaml &
# Reaps what is orphaned in this pid namespace; ends with the last of the three.
while wait -n || [ -n "$(jobs -rp)" ]; do :; done
