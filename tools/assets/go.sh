# How programs of Go modules are compiled; sourced by build, which has the names.
# shellcheck shell=bash disable=SC2154

# Compiling is most of a first start. So nothing is made that is not used: no DWARF (the linker leaves it out in any case). And
# a program that is not noticeably slower without them is compiled without inlining, which takes a third of the time, and
# without proofs that save a comparison, which take a tenth. Both stay where packets and allocations pass: Go's own packages,
# golang.org/x, wireguard-go, tailscale.com and our programs. The last pattern that matches counts.
compile_flags=(-trimpath '-gcflags=all=-dwarf=false -l -d=ssa/prove/off')
for pattern in std golang.org/... golang.zx2c4.com/... gvisor.dev/... tailscale.com/... github.com/tailscale/... unbounded.local/...; do compile_flags+=("-gcflags=$pattern=-dwarf=false"); done
# What we are measured next to is compiled as its users have it; in a device, packets also pass packages that others do not have.
flags_of() { # GROUP
  local pattern
  case $1 in tailscaled) echo -trimpath ;; *) printf '%s\n' "${compile_flags[@]}" ;; esac
  [ "$1" != tailnet-device ] || for pattern in go4.org/... github.com/gaissmai/... github.com/golang/... github.com/klauspost/...; do echo "-gcflags=$pattern=-dwarf=false"; done
}

pinned() { sed -n "s|^\t$1 \(v[^ ]*\).*|\1|p" "$here/go.mod"; }
# What programs say of their version.
link_flags() { # PROGRAM
  local version minor variable; version=$(pinned k8s.io/kubernetes) version=${version#v}
  case $1 in kube-apiserver-*) version=${1#kube-apiserver-}.0 ;; esac
  minor=${version#1.} minor=${minor%%.*}
  printf -- '-s -w'
  for variable in k8s.io/{component-base/version,client-go/pkg/version}.gitVersion=v$version \
    {k8s.io/component-base/version.git,helm.sh/helm/v3/pkg/{lint/rules,chartutil}.k8sVersion}{Major=1,Minor=$minor} \
    helm.sh/helm/v3/internal/version.version=$(pinned helm.sh/helm/v3); do printf -- ' -X %s' "$variable"; done
}

# Go as the modules ask for it. Debian's own is too old to build them, but fetches the right one as a module.
find_go() {
  set -e # a command substitution has it not
  local want=1.26.6 have version
  for have in go "$cache/go/bin/go"; do
    version=$(GOTOOLCHAIN=local "$have" env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//') || continue
    [ -n "$version" ] || continue
    [ "$(printf '%s\n' "$want" "$version" | sort -V | head -1)" = "$want" ] && { echo "$have"; return; }
  done
  echo "fetching Go 1.26.8 as a module" >&2
  command -v go >/dev/null || apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends golang-go >&2
  local arch; arch=$(dpkg --print-architecture)
  local module="golang.org/toolchain@v0.0.1-go1.26.8.linux-$arch" folder said
  said=$(cd "$(mktemp -d)" && go mod download -json "$module") || { sed -n 's/.*"Error": "\(.*\)".*/\1/p' <<<"$said" >&2; return 1; }
  folder=$(sed -n 's/.*"Dir": "\(.*\)",/\1/p' <<<"$said")
  [ -d "$folder" ] || { echo "no Go in what was fetched of $module" >&2; return 1; }
  rm -rf "$cache/go" "$cache/go.part"; cp -r "$folder" "$cache/go.part"
  chmod -R u+w "$cache/go.part"; chmod -R +x "$cache/go.part/bin" "$cache/go.part/pkg/tool"
  mv "$cache/go.part" "$cache/go"
  echo "$cache/go/bin/go"
}

# A compiler lives for less than a second: collecting its garbage is a quarter of its work. The few that are large collect
# it when all of them together would take half of the memory.
compiler_memory() {
  local mebibytes; mebibytes=$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
  mebibytes=$((mebibytes / 4 / $(nproc)))
  echo "$((mebibytes < 256 ? 256 : mebibytes > 1024 ? 1024 : mebibytes))MiB"
}
run_go() { # GROUP ARGUMENT...
  local folder; folder=$(folder_of "$1"); shift
  cd "$folder"
  CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=readonly -buildvcs=false" GOGC=off GOMEMLIMIT=$(compiler_memory) exec "$go" "$@"
}
packages_of() { local name; for name in "$@"; do package_of "$name"; done; }
# What a program of tailscale.com leaves out (its cmd/featuretags), where its folder says so.
tags_of() { local file; file=$(folder_of "$1")/tags; [ ! -f "$file" ] || echo "-tags=$(cat "$file")"; }
modfile_of() { case $1 in kube-apiserver-*) echo "-modfile=v${1#kube-apiserver-}.mod" ;; esac; }

# Fetches what a group needs, in the background, and lists its packages: as many are to be compiled.
declare -A fetching=()
fetch_modules() { # GROUP PROGRAM...
  local group=$1; shift
  # shellcheck disable=SC2046 # words
  (run_go "$group" list $(modfile_of "$group") $(tags_of "$group") -deps $(packages_of "$@") >"$cache/$group.packages") 2>"$cache/$group.fetched" &
  fetching[$group]=$!
}

# A Go that has no phase of this name compiles without the flag.
accepted_flags() { # GROUP
  local folder; folder=$(mktemp -d)
  echo 'package none' >"$folder/none.go"
  if (cd "$folder" && "$go" tool compile -d=ssa/prove/off -o none.o none.go) >/dev/null 2>&1; then flags_of "$1"
  else flags_of "$1" | sed 's| -d=ssa/prove/off||'; fi
  rm -rf "$folder"
}

# The end-to-end suite is the tests of a package, which "go build" does not build.
build_suite() { # FOLDER FLAG...
  local made=$1 log=$cache/e2e.test.compiled; shift
  (run_go programs test -c -p "$(nproc)" "$@" -ldflags "$(link_flags e2e.test)" -o "$made/e2e.test" "$(package_of e2e.test)") >"$log" 2>&1 &
  follow $! "$log" "compiling e2e.test"
  rm -f "$log"
}

compile() { # GROUP FOLDER PROGRAM...
  local group=$1 made=$2 name=$3 log=$cache/$1.compiled flags; shift 2
  mapfile -t flags < <(accepted_flags "$group")
  follow "${fetching[$group]}" "$cache/$group.fetched" "fetching Go modules"
  case $group in kube-apiserver-*) made=$made/$name ;; esac # its package has another name
  # What an interrupted build has compiled stays in the log, as it does in Go's cache.
  # shellcheck disable=SC2046
  (run_go "$group" build -v $(modfile_of "$group") $(tags_of "$group") -p "$(nproc)" "${flags[@]}" -ldflags "$(link_flags "$name")" -o "$made" \
    $(packages_of "$@")) >>"$log" 2>&1 &
  follow $! "$log" "compiling $*" "$(wc -l <"$cache/$group.packages")"
  [[ " $* " != *" e2e.test "* ]] || build_suite "$made" "${flags[@]}"
  rm -f "$log" "$cache/$group".{fetched,packages}
}
