#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the control plane of the tests (etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
# kubelet, kubectl, kwok) once, into a cache directory named after its sources, and prints that directory.
# When it is there already, nothing is built and no Go is needed.
#
#   VESPER_CACHE   where the cache is     (default: ${XDG_CACHE_HOME:-$HOME/.cache}/vesper-tests)
#   GO             the go command to use  (default: what tests/setup.sh go finds)
#
# Cold it takes about 5 minutes on 2 cores, 4 GB of Go's own build cache and 1 GB of its module cache.
#
# build.sh --dir only prints the directory, and fails when it has not been built.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${VESPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vesper-tests}
names="etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl"

# File names are part of the key, paths are not: the same sources in two checkouts share one build.
sources_hash() {
    (cd "$here" && sha256sum main.go go.mod go.sum kwok/go.mod kwok/go.sum build.sh | sha256sum | cut -c1-16)
}

# kubectl and the servers parse their own version: it must be set, and must be the module's.
version_flags() {
    local version minor package
    version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$here/go.mod")
    minor=${version#v1.}
    minor=${minor%%.*}
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        printf -- '-X %s.%s ' \
            "$package" "gitVersion=$version" \
            "$package" "gitMajor=1" \
            "$package" "gitMinor=$minor" \
            "$package" "gitTreeState=clean" \
            "$package" "gitCommit=test" \
            "$package" "buildDate=2026-01-01T00:00:00Z"
    done
}

# compile MODULE LDFLAGS OUTPUT PACKAGE: quiet, unless it fails. Two compilers at once, on any machine.
compile() {
    (cd "$1" && "$go" build -p 2 -ldflags "$2" -o "$new/$3" "$4") >"$new/log" 2>&1 && return
    grep -v '^go: downloading' "$new/log" | tail -n 40 >&2
    echo "$0: building $3 with $go failed" >&2
    exit 1
}

dir=$cache/cluster-$(sources_hash)
if [ -x "$dir/kwok" ]; then
    echo "$dir"
    exit 0
fi
if [ "${1:-}" = --dir ]; then
    echo "$0: not built yet: $dir" >&2
    exit 1
fi

go=${GO:-$(bash "$here/../setup.sh" go)}
mkdir -p "$cache"

# Whoever comes while another builds waits for it, and finds the result. The lock ends with the process.
exec 9>"$cache/build.lock"
flock 9
if [ -x "$dir/kwok" ]; then
    echo "$dir"
    exit 0
fi

# Leftovers of a build that was killed are ours to remove, since the lock is held.
rm -rf "$cache"/building-*
new=$(mktemp -d "$cache/building-XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

export CGO_ENABLED=0 GOTOOLCHAIN=auto GOFLAGS='-mod=readonly -trimpath -buildvcs=false' GOWORK=off
echo "Building the control plane of the tests into $dir (several minutes, once)..." >&2
started=$SECONDS
compile "$here" "-s -w $(version_flags)" cluster .
compile "$here/kwok" '-s -w' kwok sigs.k8s.io/kwok/cmd/kwok
for name in $names; do
    ln -s cluster "$new/$name"
done

rm "$new/log"
chmod 755 "$new"
mv -T "$new" "$dir"
trap - EXIT
echo "Built in $((SECONDS - started)) s." >&2
echo "$dir"
