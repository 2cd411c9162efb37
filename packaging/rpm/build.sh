#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the .rpm packages of this tree into a folder:  packaging/rpm/build.sh OUT [RELEASE]
# On the Fedora family, with what the spec names under BuildRequires. On Debian, too, to try the spec: rpm then does not know
# what is installed, and a few macros come from macros.debian.
set -eu
[ $# -ge 1 ] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022

version=$(sed -n 's/^Version: *//p' "$here/vesper.spec")
mkdir -p "$scratch/SOURCES"
tar -C "$top" --anchored --exclude=./.git --exclude=./build --exclude='./build-*' --transform "s,^\.,vesper-$version," \
    -czf "$scratch/SOURCES/vesper-$version.tar.gz" .
options=(--define "_topdir $scratch" --define "vesper_release ${2:-1}")
if [ -e /etc/debian_version ]; then
    options+=(--nodeps --define "_smp_mflags -j${VESPER_JOBS:-$(nproc)}" --load "$here/macros.debian")
fi
rpmbuild -bb "${options[@]}" "$here/vesper.spec"
mv "$scratch"/RPMS/*/*.rpm "$out"
