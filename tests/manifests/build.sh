#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds helm, as helm/go.mod names it, once into a cache directory named after its sources, and prints the path of the program.
# When it is there already, nothing is built and no Go is needed. VESPER_CACHE and GO as in ../cluster/build.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${VESPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vesper-tests}
dir=$cache/helm-$(cd "$here" && sha256sum helm/go.mod helm/go.sum build.sh | sha256sum | cut -c1-16)

done_already() {
    [ -x "$dir/helm" ] || return 1
    echo "$dir/helm"
}

if done_already; then exit 0; fi
go=${GO:-$(bash "$here/../setup.sh" go)}
mkdir -p "$cache"

# Whoever comes while another builds waits for it, and finds the result. The lock ends with the process.
exec 9>"$cache/helm.lock"
flock 9
if done_already; then exit 0; fi
rm -rf "$cache"/building-helm-*
new=$(mktemp -d "$cache/building-helm-XXXXXX")
trap 'rm -rf "$new"' EXIT

echo "Building helm into $dir (a few minutes, once)..." >&2
started=$SECONDS
version=$(sed -n 's|^require helm.sh/helm/v3 \(v[0-9.]*\)$|\1|p' "$here/helm/go.mod")
export CGO_ENABLED=0 GOTOOLCHAIN=auto GOFLAGS='-mod=readonly -trimpath -buildvcs=false' GOWORK=off
if ! (cd "$here/helm" && "$go" build -p 2 -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$version" \
    -o "$new/helm" helm.sh/helm/v3/cmd/helm) >"$new/log" 2>&1; then
    grep -v '^go: downloading' "$new/log" | tail -n 40 >&2
    echo "$0: building helm with $go failed" >&2
    exit 1
fi
rm "$new/log"
chmod 755 "$new"
mv -T "$new" "$dir"
trap - EXIT
echo "Built in $((SECONDS - started)) s." >&2
echo "$dir/helm"
