#!/bin/bash
# Imports images into a folder of containerd, for src/substrate/cluster/image-store.ts; in mount and pid namespaces of its own.
# usage: image-store.sh FOLDER TAR...
set -euo pipefail
store=$1; shift
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
echo "disabled_plugins = ['cri']" >/run/containerd.toml
rm -rf "$store" "$store.new"
trap 'tail -n 3 "$store.log" >&2' ERR
containerd --config /run/containerd.toml --root "$store.new" >"$store.log" 2>&1 </dev/null &
until ctr version >/dev/null 2>&1; do kill -0 $!; sleep 0.05; done
for image in "$@"; do ctr -n k8s.io images import "$image" >>"$store.log" 2>&1; done
kill $!; wait $! || true
rm -r "$store.new/io.containerd.grpc.v1.introspection" # by which a containerd is known
mv "$store.new" "$store"
