#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds schedcheck (../cluster/schedcheck: kube-scheduler's own code, asked on stdin) once into a cache directory named
# after its sources, and prints the path of the program. When it is there already, nothing is built and no Go is
# needed. VESPER_CACHE and GO as in ../cluster/build.sh, whose Go module it belongs to. It has a key of its own, so that
# a change to it leaves the built control plane alone; of what both link, Go's build cache has all compiled once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
module=$here/../cluster
cache=${VESPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vesper-tests}
dir=$cache/schedcheck-$(
    (cd "$module" && sha256sum schedcheck/*.go go.mod go.sum; cd "$here" && sha256sum build.sh) | sha256sum | cut -c1-16)

done_already() {
    [ -x "$dir/schedcheck" ] || return 1
    echo "$dir/schedcheck"
}

if done_already; then exit 0; fi
go=${GO:-$(bash "$here/../setup.sh" go)}
mkdir -p "$cache"

# Whoever comes while another builds waits for it, and finds the result. The lock ends with the process.
exec 9>"$cache/schedcheck.lock"
flock 9
if done_already; then exit 0; fi
rm -rf "$cache"/building-schedcheck-*
new=$(mktemp -d "$cache/building-schedcheck-XXXXXX")
trap 'rm -rf "$new"' EXIT

echo "Building schedcheck into $dir (a few minutes where the control plane has not been built, else seconds)..." >&2
started=$SECONDS
export CGO_ENABLED=0 GOTOOLCHAIN=auto GOFLAGS='-mod=readonly -trimpath -buildvcs=false' GOWORK=off
if ! (cd "$module" && "$go" build -p 2 -ldflags '-s -w' -o "$new/schedcheck" ./schedcheck) >"$new/log" 2>&1; then
    grep -v '^go: downloading' "$new/log" | tail -n 40 >&2
    echo "$0: building schedcheck with $go failed" >&2
    exit 1
fi
rm "$new/log"
chmod 755 "$new"
mv -T "$new" "$dir"
trap - EXIT
echo "Built in $((SECONDS - started)) s." >&2
echo "$dir/schedcheck"
