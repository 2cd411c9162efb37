#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds helm, as helm/go.mod names it, once, and prints the path of the program.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../cluster/build-once.sh"

compile() {
    local version
    version=$(sed -n 's|^require helm.sh/helm/v3 \(v[0-9.]*\)$|\1|p' "$here/helm/go.mod")
    cd "$here/helm"
    "$1" build -p 2 -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$version" -o "$2" helm.sh/helm/v3/cmd/helm
}

key=$(cd "$here" && sha256sum helm/go.mod helm/go.sum build.sh | sha256sum | cut -c1-16)
build_once helm "$key" "a few minutes, once" compile
