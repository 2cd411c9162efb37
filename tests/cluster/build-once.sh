# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# To be sourced. build_once NAME KEY NOTE FUNCTION prints the path of one Go program that is built once, into a cache directory
# named NAME-KEY. When it is there already, nothing is built and no Go is needed. Else FUNCTION is called with the go command and
# the path of the program to make; NOTE says how long that takes. VESPER_CACHE and GO as in build.sh.
build_once() {
    local name=$1 key=$2 note=$3 compile=$4 cache dir go new started
    cache=${VESPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vesper-tests}
    dir=$cache/$name-$key
    if [ -x "$dir/$name" ]; then echo "$dir/$name"; return; fi
    go=${GO:-$(bash "$(dirname "${BASH_SOURCE[0]}")/../setup.sh" go)}
    mkdir -p "$cache"

    # Whoever comes while another builds waits for it, and finds the result. The lock ends with the process.
    exec 9>"$cache/$name.lock"
    flock 9
    if [ -x "$dir/$name" ]; then echo "$dir/$name"; return; fi
    rm -rf "$cache/building-$name"-*
    new=$(mktemp -d "$cache/building-$name-XXXXXX")
    # shellcheck disable=SC2064 # as it is now
    trap "rm -rf '$new'" EXIT

    echo "Building $name into $dir ($note)..." >&2
    started=$SECONDS
    export CGO_ENABLED=0 GOTOOLCHAIN=auto GOFLAGS='-mod=readonly -trimpath -buildvcs=false' GOWORK=off
    if ! "$compile" "$go" "$new/$name" >"$new/log" 2>&1; then
        grep -v '^go: downloading' "$new/log" | tail -n 40 >&2
        echo "$0: building $name with $go failed" >&2
        exit 1
    fi
    rm "$new/log"
    chmod 755 "$new"
    mv -T "$new" "$dir"
    trap - EXIT
    echo "Built in $((SECONDS - started)) s." >&2
    echo "$dir/$name"
}
