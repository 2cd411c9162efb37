#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds schedcheck (../cluster/schedcheck: kube-scheduler's own code, asked on stdin) once, and prints the path of the program.
# It belongs to the Go module of the control plane and has a key of its own, so that a change to it leaves the built control
# plane alone; of what both link, Go's build cache has all compiled once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
module=$here/../cluster
. "$module/build-once.sh"

compile() {
    cd "$module"
    "$1" build -p 2 -ldflags '-s -w' -o "$2" ./schedcheck
}

key=$( (cd "$module" && sha256sum schedcheck/*.go go.mod go.sum; cd "$here" && sha256sum build.sh) | sha256sum | cut -c1-16)
build_once schedcheck "$key" "a few minutes where the control plane has not been built, else seconds" compile
