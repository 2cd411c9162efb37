#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What vesper does, to look at. Installs what building needs (as root, on Debian), builds, and plays the main
# job.
#
#   bash tests/demo.sh           on the embedded fake cluster, a good minute
#   bash tests/demo.sh --real    on a real Kubernetes control plane (built once, some minutes; needs Go)
#
# VESPER_BUILD=DIR builds elsewhere than build/. Nothing is left running, and nothing is written outside of
# the build folder, /tmp and, for --real, ~/.cache/vesper-tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD
export VESPER_BUILD=${VESPER_BUILD:-$top/build}
log=$VESPER_BUILD.log

say() { printf '%s\n' "$*"; }

real=
case ${1:-} in
'') ;;
--real) real=--real ;;
*) sed -n '3,10p' "$0" | cut -c3-; exit 2 ;;
esac

# Shows the last "[done/all]" of ninja's in place on a terminal, else only its end.
progress() {
    local line last=
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        case $line in
        '['*/*']'*) last=${line%%]*}]; [ ! -t 1 ] || printf '\rbuilding %s ' "$last" ;;
        esac
    done
    [ -t 1 ] && [ -n "$last" ] && printf '\r\033[K'
    return 0
}

build() {
    [ -f "$VESPER_BUILD/build.ninja" ] || meson setup "$VESPER_BUILD" >"$log" 2>&1 || return 1
    ninja -C "$VESPER_BUILD" agent/vesper-agent coordinator/vesper-coordinator coordinator/vesperctl \
        tests/fake/fake-cluster 2>&1 | progress
}

say "vesper takes Kubernetes nodes out of service gracefully. This plays its main job."
say
bash tests/setup.sh build
start=$SECONDS
: >"$log"
if ! build; then
    tail -n 40 "$log"
    say "The build failed: the whole output is in $log"
    exit 1
fi
rm -f "$log"
say "Built into $VESPER_BUILD ($((SECONDS - start)) s)."

if [ -n "$real" ]; then
    bash tests/setup.sh go >/dev/null
    say "The control plane: built once into the cache, about 5 minutes the first time."
    bash tests/cluster/build.sh >/dev/null
fi
exec python3 tests/demo/story.py $real
